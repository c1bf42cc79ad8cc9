#include "profiler/assembly/resident_pass.h"

#include <algorithm>
#include <cstddef>
#include <unordered_map>
#include <vector>

#include "profiler/assembly/work_clock.h"

namespace stowage::profiler {

namespace {

// Who still holds a storage, as a count that falls to 0.
using Holders = std::unordered_map<std::int64_t, std::int64_t>;

std::int64_t storage_of(const RawPass& pass, std::int64_t saved) {
  return pass.saved[static_cast<std::size_t>(saved)].view.serial;
}

}  // namespace

RawPass resident_pass(const RawPass& offload_all) {
  RawPass resident = offload_all;
  resident.events.clear();
  Holders holders;
  std::unordered_map<std::int64_t, Bytes> bytes;
  Bytes live = 0;
  for (const RawStorage& storage : offload_all.live_at_begin) {
    holders[storage.serial] = 1;
    bytes[storage.serial] = storage.bytes;
    live += storage.bytes;
  }
  resident.requested_at_begin = live;
  resident.peak_requested = live;

  const auto let_go = [&](std::int64_t serial, const RawEvent& at) {
    const auto found = holders.find(serial);
    if (found == holders.end() || --found->second > 0) return;
    live -= bytes[serial];
    resident.events.push_back({RawKind::free, serial, at.time_ns, live, bytes[serial]});
    holders.erase(found);
  };
  const auto hold = [&](std::int64_t serial) {
    if (const auto found = holders.find(serial); found != holders.end()) ++found->second;
  };
  for (const RawEvent& event : offload_all.events) {
    switch (event.kind) {
      case RawKind::free:
        let_go(event.id, event);
        continue;
      case RawKind::hook_gone:
        let_go(storage_of(offload_all, event.id), event);
        continue;
      case RawKind::released:
        let_go(
            storage_of(offload_all, offload_all.unpacks[static_cast<std::size_t>(event.id)].saved),
            event);
        continue;
      case RawKind::pack:
        hold(storage_of(offload_all, event.id));
        break;
      case RawKind::unpack:
        hold(
            storage_of(offload_all, offload_all.unpacks[static_cast<std::size_t>(event.id)].saved));
        break;
      case RawKind::alloc:
        holders[event.id] = 1;
        bytes[event.id] = event.bytes;
        live += event.bytes;
        resident.peak_requested = std::max(resident.peak_requested, live);
        break;
      default:
        break;
    }
    resident.events.push_back(event);
    if (event.kind == RawKind::alloc) resident.events.back().requested = live;
  }
  const WorkClock clock(offload_all.hook_spans);
  for (RawEvent& event : resident.events) event.time_ns = clock.at(event.time_ns);
  resident.hook_spans.clear();
  resident.step_ns = resident.events.back().time_ns - resident.events.front().time_ns;
  return resident;
}

}  // namespace stowage::profiler
