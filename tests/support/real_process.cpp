#include "tests/support/real_process.h"

#include <algorithm>

namespace stowage::testing {

RealProcess::RealProcess(const simulator::StepIndex& index, const simulator::Schedule& schedule,
                         simulator::AddressOrder order)
    : trace_(index.trace()),
      storages_(static_cast<std::int64_t>(index.trace().storages.size())),
      sequence_(simulator::allocation_sequence(index, schedule)),
      allocator_(-1, order) {
  setup_until(-1);
  for (const Slot slot : sequence_.adopted) drop(slot);
}

void RealProcess::reserve(const std::vector<Bytes>& buffers) {
  std::vector<Block> held;
  for (const Bytes bytes : buffers) held.push_back(allocate(bytes, -2));
  for (const Block block : held) free(block);
}

void RealProcess::step() {
  for (const Slot slot : sequence_.wrapping) make(slot);
  for (const Slot slot : sequence_.made_before) make(slot);
  first_serial_ = next_serial_;
  for (const auto& each : sequence_.period) {
    setup_until(each.event.value - 1);
    if (each.free) {
      drop(each.slot);
    } else {
      make(each.slot);
    }
  }
  setup_until(static_cast<std::int64_t>(trace_.events.size()));
  for (const Slot slot : sequence_.freed_behind) drop(slot);
  for (const auto& [old, made] : sequence_.carried) {
    drop(old);
    if (slots_.count(made) == 0) continue;
    slots_[old] = slots_[made];
    slots_.erase(made);
  }
}

simulator::ObservedAllocator RealProcess::observed() const {
  simulator::ObservedAllocator now{allocator_.observed(), Bytes{1} << 40};
  for (simulator::ObservedBlock& block : now.blocks) {
    const auto known = known_.find(block.address);
    if (known == known_.end()) continue;
    block.serial = known->second.serial;
    block.requested = known->second.requested;
    block.tag = known->second.tag;
  }
  return now;
}

RealProcess::Block RealProcess::allocate(Bytes bytes, std::int64_t tag) {
  const Block block = allocator_.allocate(bytes);
  if (block >= 0) known_[allocator_.address_of(block)] = {next_serial_++, bytes, tag};
  return block;
}

void RealProcess::free(Block block) {
  if (block < 0) return;
  known_.erase(allocator_.address_of(block));
  allocator_.free(block);
}

void RealProcess::make(Slot slot) {
  if (slots_.count(slot) > 0) return;
  slots_[slot] = allocate(sequence_.bytes[static_cast<std::size_t>(slot)],
                          slot < storages_ ? -1 : slot - storages_);
}

void RealProcess::drop(Slot slot) {
  if (slots_.count(slot) == 0) return;
  free(slots_[slot]);
  slots_.erase(slot);
}

void RealProcess::setup_row() {
  const Setup& setup = trace_.setup;
  const std::size_t row = next_row_++;
  if (setup.free_of[row] >= 0) return free(rows_[setup.free_of[row]]);
  // Optimizer state that streams is at home when the first step comes to make it.
  const bool streams =
      std::count(sequence_.adopted.begin(), sequence_.adopted.end(), setup.storage[row].value) > 0;
  if (streams && setup.event[row].valid()) return;
  const Block block = allocate(setup.bytes[row], -1);
  rows_[static_cast<std::int32_t>(row)] = block;
  if (setup.storage[row].valid()) slots_[setup.storage[row].value] = block;
}

// Including what stands behind `event`.
void RealProcess::setup_until(std::int64_t event) {
  while (next_row_ < trace_.setup.size() && trace_.setup.event[next_row_].value <= event) {
    setup_row();
  }
}

}  // namespace stowage::testing
