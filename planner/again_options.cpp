#include "planner/again_options.h"

#include <algorithm>
#include <utility>

#include "planner/footprint.h"
#include "simulator/plan/rule_match.h"
#include "simulator/step/lifetimes.h"
#include "simulator/step/op_chains.h"
#include "simulator/step/segments.h"

namespace stowage::planner {

AgainOptions::AgainOptions(const Footprints& footprints, bool allowed)
    : footprints_(footprints), index_(footprints.index()), spans_(index_.trace()) {
  if (!allowed) return;
  find_able();
}

void AgainOptions::find_able() {
  const Trace& trace = index_.trace();
  is_able_.assign(trace.saved.size(), false);
  const simulator::SegmentFinder finder(trace);
  for (const simulator::SegmentFinder::Named& call : finder.calls()) {
    if (!call.is_callable) continue;
    const auto& packs = trace.saved.event;
    const auto first = std::lower_bound(packs.begin(), packs.end(), call.first);
    const auto end = std::lower_bound(first, packs.end(), call.end);
    std::fill(is_able_.begin() + (first - packs.begin()), is_able_.begin() + (end - packs.begin()),
              true);
  }
  const simulator::ChainFinder chains(trace);
  for (std::size_t s = 0; s < trace.saved.size(); ++s) {
    if (trace.saved.storage[s].valid() && chains.check(SavedId(s))) is_able_[s] = true;
  }
}

// Events of a run again take the time that they took in forward, so up to the first pack inside of
// the op its work is that of its events.
Nanoseconds AgainOptions::least_work(StorageId storage) const {
  const Trace& trace = index_.trace();
  const OpId op = spans_.primitive(trace.storages.alloc_op[storage.index()]);
  if (!op.valid()) return 0;
  const EventId begin = spans_.begin(op);
  if (!begin.valid() || !spans_.end(op).valid()) return 0;
  const SavedId first = index_.saved_of(storage).front();
  const EventId until = std::min(spans_.end(op), trace.saved.event[first.index()]);
  if (until <= begin) return 0;
  const auto& work = index_.compute_until();
  return work[until.index()] - work[begin.index()];
}

std::optional<Option> AgainOptions::of(StorageId storage) const {
  const Trace& trace = index_.trace();
  if (is_able_.empty() || simulator::pre_existing(trace, storage)) return {};
  const auto saved = index_.saved_of(storage);
  if (std::none_of(saved.begin(), saved.end(),
                   [&](SavedId each) { return is_able_[each.index()]; })) {
    return {};
  }
  const simulator::Hold hold = simulator::hold_of(trace, storage);
  if (hold.outlives) return {};
  std::vector<std::pair<std::int32_t, std::int32_t>> there;
  // Frees stand elsewhere in other steps; behind the event ahead of them it is gone.
  const auto behind = [&](EventId event) {
    while (trace.events.kind[event.index()] == EventKind::free) --event.value;
    return 2 * event.value + 2;
  };
  there.emplace_back(2 * trace.storages.alloc_event[storage.index()].value + 1, behind(hold.event));
  for (const SavedId each : saved) {
    for (const UnpackId unpack : index_.unpacks_of(each)) {
      const EventId released = trace.unpacks.released_event[unpack.index()];
      there.emplace_back(2 * trace.unpacks.event[unpack.index()].value + 1,
                         released.valid() ? behind(released) : footprints_.positions());
    }
  }
  std::sort(there.begin(), there.end());
  Option option;
  option.choice = Choice::again;
  const Bytes bytes = footprints_.storage_bytes(storage);
  for (const auto& [first, last] : there) {
    if (first >= last) continue;
    if (!option.spans.empty() && first <= option.spans.back().last) {
      option.spans.back().last = std::max(option.spans.back().last, last);
    } else {
      option.spans.push_back({first, last, bytes});
    }
  }
  option.made_by = spans_.primitive(trace.storages.alloc_op[storage.index()]);
  option.compute = least_work(storage);
  return option;
}

}  // namespace stowage::planner
