#include "simulator/allocator/allocator_periods.h"

#include <algorithm>
#include <utility>

namespace stowage::simulator {

AllocatorPeriods::AllocatorPeriods(const Trace& trace, const AllocationSequence& sequence,
                                   Bytes limit, AddressOrder order)
    : events_(trace.events.size()),
      setup_(trace.setup),
      sequence_(sequence),
      allocator_(limit, order),
      block_(sequence.bytes.size(), CachingAllocator::kNoBlock),
      setup_block_(setup_.size(), CachingAllocator::kNoBlock),
      is_complete_(trace.quality.adopted_allocations == 0) {}

AllocatorPeriods::AllocatorPeriods(const Trace& trace, const AllocationSequence& sequence,
                                   const std::vector<ObservedBlock>& blocks,
                                   const std::vector<std::pair<Slot, Block>>& slots)
    : events_(trace.events.size()),
      setup_(trace.setup),
      sequence_(sequence),
      allocator_(blocks),
      block_(sequence.bytes.size(), CachingAllocator::kNoBlock),
      next_setup_(setup_.size()) {
  for (const auto& [slot, at] : slots) block(slot) = at;
  allocate_all(sequence_.made_before);
}

std::vector<Bytes> AllocatorPeriods::start(const std::vector<Bytes>& segments) {
  set_up();
  for (const Slot slot : sequence_.adopted) free(slot);
  std::vector<Bytes> buffers = take_segments(segments);
  allocate_all(sequence_.wrapping);
  allocate_all(sequence_.made_before);
  return buffers;
}

std::vector<Bytes> AllocatorPeriods::take_segments(const std::vector<Bytes>& segments) {
  std::vector<Bytes> buffers;
  std::vector<Block> held;
  bool full = false;
  for (const Bytes segment : segments) {
    const std::size_t before = allocator_.segments_taken().size();
    const Bytes bytes = CachingAllocator::request_of_segment(segment);
    while (!full && allocator_.segments_taken().size() == before) {
      const Block made = allocator_.allocate(bytes);
      full = made == CachingAllocator::kOutOfMemory;
      if (full) break;
      held.push_back(made);
      buffers.push_back(bytes);
    }
  }
  for (const Block each : held) allocator_.free(each);
  return buffers;
}

void AllocatorPeriods::run(AllocatorTrail* trail) {
  if (trail != nullptr) note_begin(*trail = {});
  for (const AllocationSequence::Step& step : sequence_.period) {
    run_setup_behind(step.event.value - 1, trail);
    note_until(step.event.index(), trail);
    most_there_ = step.by_plan ? std::max(most_there_, allocator_.active()) : 0;
    if (step.free) {
      free(step.slot);
    } else {
      block(step.slot) = allocate(bytes_of(step.slot));
      if (trail != nullptr) {
        trail->made[static_cast<std::size_t>(step.slot)] = place_of(block(step.slot));
      }
    }
    if (out_of_memory_) return;
  }
  run_setup_behind(static_cast<std::int64_t>(events_) - 1, trail);
  note_until(events_, trail);
  if (trail != nullptr) note_segments(*trail);
  for (const Slot slot : sequence_.freed_behind) free(slot);
  for (const auto& [old, made] : sequence_.carried) {
    free(old);
    block(old) = std::exchange(block(made), CachingAllocator::kNoBlock);
  }
  allocate_all(sequence_.made_before);
}

AllocatorPeriods::State AllocatorPeriods::state() const {
  State now{allocator_.layout(), {}};
  for (const Slot slot : sequence_.made_before) now.carried.push_back(address(slot));
  for (const Slot slot : sequence_.wrapping) now.carried.push_back(address(slot));
  for (const auto& pair : sequence_.carried) now.carried.push_back(address(pair.old));
  return now;
}

Bytes AllocatorPeriods::address(Slot slot) const {
  const Block at = block_[static_cast<std::size_t>(slot)];
  return at == CachingAllocator::kNoBlock ? -1 : allocator_.address_of(at);
}

AllocatorPeriods::Block AllocatorPeriods::allocate(Bytes bytes) {
  const Block made = allocator_.allocate(bytes);
  if (made != CachingAllocator::kOutOfMemory) return made;
  out_of_memory_ = true;
  return CachingAllocator::kNoBlock;
}

void AllocatorPeriods::allocate_all(const std::vector<Slot>& slots) {
  for (const Slot slot : slots) {
    if (block(slot) == CachingAllocator::kNoBlock) block(slot) = allocate(bytes_of(slot));
  }
}

void AllocatorPeriods::set_up() {
  std::vector<bool> is_known(block_.size(), false);
  for (const StorageId storage : setup_.storage) {
    if (storage.valid()) is_known[storage.index()] = true;
  }
  while (has_setup_rows() && !setup_.event[next_setup_].valid()) run_setup_row();
  for (const Slot slot : sequence_.lasting) {
    if (is_known[static_cast<std::size_t>(slot)]) continue;
    is_complete_ = false;
    block(slot) = allocate(bytes_of(slot));
  }
}

void AllocatorPeriods::run_setup_row() {
  const std::size_t i = next_setup_++;
  if (setup_.free_of[i] >= 0) {
    const auto row = static_cast<std::size_t>(setup_.free_of[i]);
    allocator_.free(std::exchange(setup_block_[row], CachingAllocator::kNoBlock));
    return;
  }
  if (sequence_.is_born_at_home(setup_, i)) return;
  setup_block_[i] = allocate(setup_.bytes[i]);
  if (setup_.storage[i].valid()) block_[setup_.storage[i].index()] = setup_block_[i];
}

// What only the first period does, up to the gap behind `event`, its frees not included.
void AllocatorPeriods::run_setup_behind(std::int64_t event, AllocatorTrail* trail) {
  for (; has_setup_rows() && setup_.event[next_setup_].value <= event;) {
    note_until(setup_.event[next_setup_].index(), trail);
    run_setup_row();
  }
}

void AllocatorPeriods::note_until(std::size_t event, AllocatorTrail* trail) {
  if (trail == nullptr || trail->active.size() >= event) return;
  trail->active.push_back(std::max(std::exchange(most_there_, 0), allocator_.active()));
  trail->active.resize(event, allocator_.active());
  trail->reserved.resize(event, allocator_.reserved());
}

AllocatorTrail::Place AllocatorPeriods::place_of(Block block) const {
  if (block == CachingAllocator::kNoBlock) return {};
  return {allocator_.address_of(block), allocator_.size_of(block)};
}

void AllocatorPeriods::note_begin(AllocatorTrail& trail) const {
  trail.made.resize(block_.size());
  for (const Block each : block_) trail.at_begin.push_back(place_of(each));
  for (std::size_t row = 0; row < setup_.size(); ++row) {
    const bool is_storage = setup_.storage[row].valid();
    trail.of_setup.push_back(is_storage ? AllocatorTrail::Place{} : place_of(setup_block_[row]));
  }
}

void AllocatorPeriods::note_segments(AllocatorTrail& trail) const {
  for (const ObservedBlock& each : allocator_.observed()) {
    if (each.begins_segment) trail.segments.push_back({each.address, 0});
    trail.segments.back().size += each.size;
  }
}

}  // namespace stowage::simulator
