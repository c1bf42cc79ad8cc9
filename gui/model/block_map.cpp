#include "gui/model/block_map.h"

#include <algorithm>
#include <utility>

#include "report/address_map.h"
#include "report/alive.h"
#include "simulator/allocator/allocator_replay.h"
#include "simulator/replay/replay.h"
#include "simulator/schedule/departures.h"
#include "simulator/step/block_bytes.h"
#include "traces/result.h"

namespace stowage::gui {

BlockMap::BlockMap(SimulatedPtr simulated, bool recorded) : simulated_(std::move(simulated)) {
  const simulator::StepIndex& index = recorded ? simulated_->trace->index : *simulated_->index;
  trace_ = &index.trace();
  schedule_ = recorded ? simulator::resident_schedule(index, simulator::PlacementMode::caching)
                       : simulated_->schedule;
  sequence_ = simulator::allocation_sequence(index, schedule_);
  first_saved_ = report::first_packs(*trace_);
  goes_in_gap_.resize(sequence_.bytes.size(), false);
  for (const simulator::Departure& departure : simulator::departures(*trace_, schedule_)) {
    if (!departure.event.valid()) continue;
    const std::size_t slot = departure.stay.valid()
                                 ? trace_->storages.size() + departure.stay.index()
                                 : departure.storage.index();
    goes_in_gap_[slot] = true;
  }
  if (schedule_.placement == simulator::PlacementMode::planned) {
    layout_ = simulator::memory_layout(index, schedule_, simulator::kDevicePages);
    memory_ = layout_->placement.bytes();
    is_second_.resize(sequence_.bytes.size(), false);
    for (const auto& [old, made] : sequence_.carried) {
      const auto slot = static_cast<std::size_t>(made);
      const std::int32_t range = layout_->live.of_slot[slot];
      is_second_[slot] = range >= 0 && simulator::takes_turns(layout_->live, range);
    }
    return;
  }
  source_ = trace_->setup.size() > 0 ? BlockSource::caching : BlockSource::first_fit;
  if (source_ == BlockSource::caching) {
    (void)simulator::replay_allocator(index, schedule_, -1, &trail_);
  } else {
    place_first_fit();
  }
  lay_out_segments();
}

// One period, with what it begins with ahead of it.
void BlockMap::place_first_fit() {
  report::AddressMap map;
  std::vector<Place> now(sequence_.bytes.size());
  const auto take = [&](Slot slot) {
    const Bytes size = simulator::block_bytes(sequence_.bytes[static_cast<std::size_t>(slot)]);
    if (size > 0) now[static_cast<std::size_t>(slot)] = {map.take(size), size};
  };
  for (const Slot slot : sequence_.lasting) take(slot);
  for (const auto& [old, made] : sequence_.carried) take(old);
  for (const Slot slot : sequence_.made_before) take(slot);
  for (const Slot slot : sequence_.wrapping) take(slot);
  trail_.at_begin = now;
  trail_.made.resize(now.size());
  for (const simulator::AllocationSequence::Step& step : sequence_.period) {
    const auto slot = static_cast<std::size_t>(step.slot);
    if (!step.free) {
      take(step.slot);
      trail_.made[slot] = now[slot];
    } else if (now[slot].size > 0) {
      const Place gone = std::exchange(now[slot], {});
      map.give_back(gone.address, gone.size);
    }
  }
  if (map.end() > 0) trail_.segments.push_back({0, map.end()});
}

void BlockMap::lay_out_segments() {
  for (const Place& segment : trail_.segments) {
    segment_begin_.push_back(memory_);
    memory_ += segment.size;
  }
}

std::vector<BlockMap::There> BlockMap::there_at(EventId event) const {
  std::vector<There> there(sequence_.bytes.size(), There::no);
  const auto set = [&](Slot slot, There how) { there[static_cast<std::size_t>(slot)] = how; };
  for (const Slot slot : sequence_.lasting) set(slot, There::since_before);
  // What has a home of its own is there in its stays alone.
  for (const Slot slot : sequence_.adopted) set(slot, There::no);
  for (const auto& [old, made] : sequence_.carried) set(old, There::since_before);
  for (const Slot slot : sequence_.made_before) set(slot, There::since_before);
  for (const Slot slot : sequence_.wrapping) set(slot, There::since_before);
  const auto& period = sequence_.period;
  const auto apply = [&](std::size_t i) {
    set(period[i].slot, period[i].free ? There::no : There::made);
  };
  std::size_t next = 0;
  for (; next < period.size() && period[next].event < event; ++next) apply(next);
  // What goes ahead of the event, or by it.
  const bool is_free = trace_->events.kind[event.index()] == EventKind::free;
  const Slot own = is_free ? trace_->events.ref[event.index()] : -1;
  const auto goes_first = [&](const simulator::AllocationSequence::Step& step) {
    return step.event == event && step.free &&
           (step.slot == own || goes_in_gap_[static_cast<std::size_t>(step.slot)]);
  };
  for (; next < period.size() && goes_first(period[next]); ++next) apply(next);
  Bytes change = 0;
  Bytes most = 0;
  std::size_t stop = next;
  for (std::size_t i = next; i < period.size() && period[i].event == event; ++i) {
    const Bytes bytes = sequence_.bytes[static_cast<std::size_t>(period[i].slot)];
    change += period[i].free ? -bytes : bytes;
    if (change <= most) continue;
    most = change;
    stop = i + 1;
  }
  for (; next < stop; ++next) apply(next);
  return there;
}

std::vector<MemoryBlock> BlockMap::at(EventId event) const {
  std::vector<MemoryBlock> blocks;
  const std::vector<There> there = there_at(event);
  for (std::size_t slot = 0; slot < there.size(); ++slot) {
    if (there[slot] == There::no || sequence_.bytes[slot] == 0) continue;
    blocks.push_back(block_of(slot, there[slot]));
  }
  add_setup(blocks);
  std::stable_sort(blocks.begin(), blocks.end(), [](const MemoryBlock& a, const MemoryBlock& b) {
    // -1, not known, last.
    return static_cast<std::uint64_t>(a.address) < static_cast<std::uint64_t>(b.address);
  });
  return blocks;
}

MemoryBlock BlockMap::block_of(std::size_t slot, There there) const {
  MemoryBlock block;
  block.bytes = sequence_.bytes[slot];
  const std::size_t storages = trace_->storages.size();
  if (slot < storages) {
    block.storage = StorageId(slot);
    block.saved = first_saved_[slot];
  } else {
    const simulator::Stay& stay = schedule_.stays[slot - storages];
    const simulator::Tenant& tenant = schedule_.tenants[stay.tenant.index()];
    block.storage = tenant.storage;
    block.is_copy = true;
    if (!stay.unpacks.empty()) {
      block.saved = trace_->unpacks.saved[stay.unpacks.front().index()];
    } else if (!tenant.saved.empty()) {
      block.saved = tenant.saved.front();
    }
  }
  if (layout_) {
    const std::int32_t range = layout_->live.of_slot[slot];
    put_into_range(block, range >= 0 && is_second_[slot] ? range + 1 : range);
  } else {
    put_at(block, (there == There::made ? trail_.made : trail_.at_begin)[slot]);
  }
  return block;
}

void BlockMap::put_into_range(MemoryBlock& block, std::int32_t range) const {
  if (range < 0) return;
  const auto r = static_cast<std::size_t>(range);
  block.address = layout_->address[r];
  block.taken = simulator::placed_bytes(block.bytes);
  // Of its pages it has what lies between its begin and its end.
  const Bytes page = layout_->placement.page_bytes;
  Bytes ahead = layout_->placement.offset[r];
  Bytes left = block.taken;
  for (const std::int32_t number : layout_->placement.pages_of[r]) {
    const Bytes begin = number * page + ahead;
    const Bytes bytes = std::min(left, page - ahead);
    ahead = 0;
    left -= bytes;
    if (!block.pieces.empty() && block.pieces.back().begin + block.pieces.back().bytes == begin) {
      block.pieces.back().bytes += bytes;
    } else {
      block.pieces.push_back({begin, bytes});
    }
  }
}

void BlockMap::put_at(MemoryBlock& block, const Place& place) const {
  if (place.size == 0) return;
  block.address = place.address;
  block.taken = place.size;
  const auto behind = std::upper_bound(
      trail_.segments.begin(), trail_.segments.end(), place.address,
      [](Bytes address, const Place& segment) { return address < segment.address; });
  STOWAGE_ASSERT(behind != trail_.segments.begin());
  const auto segment = static_cast<std::size_t>(behind - trail_.segments.begin()) - 1;
  block.pieces.push_back(
      {segment_begin_[segment] + place.address - trail_.segments[segment].address, place.size});
}

void BlockMap::add_setup(std::vector<MemoryBlock>& blocks) const {
  for (std::size_t row = 0; row < trace_->setup.size(); ++row) {
    MemoryBlock block;
    block.bytes = trace_->setup.bytes[row];
    if (layout_) {
      put_into_range(block, layout_->live.of_setup[row]);
    } else {
      put_at(block, trail_.of_setup[row]);
    }
    if (block.taken > 0) blocks.push_back(std::move(block));
  }
}

}  // namespace stowage::gui
