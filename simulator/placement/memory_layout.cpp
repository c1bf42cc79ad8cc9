#include "simulator/placement/memory_layout.h"

#include <algorithm>
#include <cstddef>
#include <unordered_map>

#include "simulator/allocator/allocation_sequence.h"

namespace stowage::simulator {
namespace {

class Builder {
 public:
  Builder(const StepIndex& index, const Schedule& schedule)
      : index_(index),
        trace_(index.trace()),
        storages_(trace_.storages.size()),
        stays_(schedule.stays.size()),
        sequence_(allocation_sequence(index, schedule)) {}

  MemoryLayout run(RanBefore ran) && {
    out_.live = live_ranges(sequence_, trace_);
    is_made_.assign(out_.live.ranges.size(), false);
    for (std::size_t stay = 0; stay < stays_; ++stay) {
      out_.of_stay.push_back(out_.live.of_slot[storages_ + stay]);
      if (out_.of_stay.back() >= 0) is_made_[static_cast<std::size_t>(out_.of_stay.back())] = true;
    }
    for (const AllocationSequence::Step& step : sequence_.period) {
      const std::int32_t range = out_.live.of_slot[static_cast<std::size_t>(step.slot)];
      if (step.free || range < 0 || static_cast<std::size_t>(step.slot) >= storages_) continue;
      is_made_[static_cast<std::size_t>(range)] = true;
      out_.hand_outs.push_back({step.event, range, bytes(range)});
    }
    for (std::size_t r = 0; r < is_made_.size(); ++r) {
      const LiveRange& range = out_.live.ranges[r];
      const bool lasts = range.begin == 0 && range.end == out_.live.instants && !range.is_second;
      if (!is_made_[r] && lasts) {
        out_.lasting.push_back(static_cast<std::int32_t>(r));
      }
    }
    std::vector<HandOut> extras =
        trace_.setup.size() > 0 ? recorded_extras() : extras_of_training();
    if (ran == RanBefore::steps) {
      std::erase_if(extras, [](const HandOut& each) { return each.range < 0; });
    }
    if (!extras.empty()) merge(extras);
    return std::move(out_);
  }

 private:
  [[nodiscard]] Bytes bytes(std::int32_t range) const {
    return out_.live.ranges[static_cast<std::size_t>(range)].bytes;
  }
  [[nodiscard]] std::int32_t range_of(StorageId storage) const {
    return storage.valid() ? out_.live.of_slot[storage.index()] : -1;
  }

  // What the first step of the recording's process allocated besides.
  [[nodiscard]] std::vector<HandOut> recorded_extras() const {
    const Setup& setup = trace_.setup;
    const UpdateOf update_of = updates();
    std::vector<HandOut> extras;
    for (std::size_t row = 0; row < setup.size(); ++row) {
      if (setup.free_of[row] >= 0 || !setup.event[row].valid() || setup.bytes[row] <= 0) continue;
      const std::int32_t range =
          setup.storage[row].valid() ? range_of(setup.storage[row]) : out_.live.of_setup[row];
      const EventId next = next_of_memory(setup.event[row]);
      const EventId update = update_that_makes(setup.storage[row], update_of);
      extras.push_back({std::max(next, update), range, setup.bytes[row]});
    }
    sort(extras);
    return extras;
  }

  // The next allocation or free behind an event. A setup says of the first step no more than that
  // it was between the two: whatever else is there may have come ahead of it (the updates of a
  // parameter's state).
  [[nodiscard]] EventId next_of_memory(EventId event) const {
    const auto is_of_memory = [&](std::size_t e) {
      const EventKind kind = trace_.events.kind[e];
      return kind == EventKind::alloc || kind == EventKind::free;
    };
    std::size_t next = event.index() + 1;
    while (next + 1 < trace_.events.size() && !is_of_memory(next)) ++next;
    return EventId(std::min(next, trace_.events.size() - 1));
  }

  using UpdateOf = std::unordered_map<std::int32_t, EventId>;  // by row of a parameter
  [[nodiscard]] UpdateOf updates() const {
    UpdateOf update_of;
    for (std::size_t e = 0; e < trace_.events.size(); ++e) {
      if (trace_.events.kind[e] == EventKind::parameter_update_begin) {
        update_of.emplace(trace_.events.ref[e], EventId(e));
      }
    }
    return update_of;
  }

  // An optimizer makes its state where it first updates: the event behind the begin of that. None:
  // it is no state, or that is not known.
  [[nodiscard]] EventId update_that_makes(StorageId storage, const UpdateOf& update_of) const {
    if (!storage.valid()) return {};
    const std::size_t s = storage.index();
    if (trace_.storages.storage_class[s] != StorageClass::optimizer_state) return {};
    const auto update = update_of.find(trace_.storages.parameter[s].value);
    return update == update_of.end() ? EventId() : EventId(update->second.index() + 1);
  }

  // A gradient that is kept is made where later steps make what they add to it, which the op ahead
  // of its first report is given. By storage; none: it is no such gradient, or that is not known.
  [[nodiscard]] std::vector<EventId> makers_of_kept_gradients() const {
    std::vector<EventId> makers(storages_);
    const Storages& storages = trace_.storages;
    std::unordered_map<std::int32_t, std::size_t> kept;  // by row of a parameter
    for (std::size_t s = 0; s < storages_; ++s) {
      const bool lasts = !storages.alloc_event[s].valid() && !storages.free_event[s].valid();
      if (lasts && storages.storage_class[s] == StorageClass::gradient) {
        kept.emplace(storages.parameter[s].value, s);
      }
    }
    std::unordered_map<std::int32_t, std::size_t> added_to;  // by row of an op
    for (std::size_t e = 0; !kept.empty() && e < trace_.events.size(); ++e) {
      if (trace_.events.kind[e] != EventKind::gradient_accumulated) continue;
      const auto found = kept.find(trace_.events.ref[e]);
      if (found == kept.end()) continue;
      const OpId op = last_op_of(StorageId(found->second), EventId(e));
      if (op.valid()) added_to.emplace(op.value, found->second);
      kept.erase(found);
    }
    const Uses& uses = trace_.uses;
    for (std::size_t u = 0; !added_to.empty() && u < uses.size(); ++u) {
      const auto found = added_to.find(uses.op[u].value);
      if (found == added_to.end()) continue;
      const StorageId given = trace_.tensors.storage[uses.tensor[u].index()];
      if (!given.valid() || storages.bytes[given.index()] != storages.bytes[found->second])
        continue;
      const EventId made = storages.alloc_event[given.index()];
      if (made.valid()) makers[found->second] = made;
    }
    return makers;
  }

  // The outermost op that touches it last ahead of this event.
  [[nodiscard]] OpId last_op_of(StorageId storage, EventId before) const {
    OpId op;
    for (const ModelStateTouch& touch : index_.model_state_uses().touches_of(storage)) {
      if (touch.begin >= before) break;
      if (trace_.events.kind[touch.begin.index()] != EventKind::op_begin) continue;
      op = OpId(trace_.events.ref[touch.begin.index()]);
    }
    return op;
  }

  // A recording of a device without a setup.
  [[nodiscard]] std::vector<HandOut> extras_of_training() const {
    const UpdateOf update_of = updates();
    const std::vector<EventId> makers = makers_of_kept_gradients();
    std::vector<HandOut> extras;
    for (std::size_t s = 0; s < storages_; ++s) {
      const std::int32_t range = range_of(StorageId(s));
      const EventId event = std::max(makers[s], update_that_makes(StorageId(s), update_of));
      if (range < 0 || !event.valid()) continue;
      extras.push_back({event, range, bytes(range)});
    }
    sort(extras);
    return extras;
  }

  static void sort(std::vector<HandOut>& extras) {
    std::stable_sort(extras.begin(), extras.end(),
                     [](const HandOut& a, const HandOut& b) { return a.event < b.event; });
  }

  // Ahead of what the period itself allocates at the same event.
  void merge(const std::vector<HandOut>& extras) {
    std::merge(extras.begin(), extras.end(), out_.hand_outs.begin(), out_.hand_outs.end(),
               std::back_inserter(out_.first_hand_outs),
               [](const HandOut& a, const HandOut& b) { return a.event < b.event; });
    std::vector<bool> is_gradient(out_.live.ranges.size(), false);
    for (std::size_t s = 0; s < storages_; ++s) {
      const std::int32_t range = range_of(StorageId(s));
      if (range < 0 || trace_.storages.storage_class[s] != StorageClass::gradient) continue;
      const auto r = static_cast<std::size_t>(range);
      is_gradient[r] = !is_made_[r];
    }
    for (std::size_t i = 0; i + 1 < out_.first_hand_outs.size(); ++i) {
      HandOut& each = out_.first_hand_outs[i];
      const HandOut& next = out_.first_hand_outs[i + 1];
      if (each.range < 0 || next.range < 0 || each.bytes != next.bytes) continue;
      each.is_for_next = is_gradient[static_cast<std::size_t>(each.range)] &&
                         is_made_[static_cast<std::size_t>(next.range)];
    }
  }

  const StepIndex& index_;
  const Trace& trace_;
  std::size_t storages_;
  std::size_t stays_;
  AllocationSequence sequence_;
  std::vector<bool> is_made_;  // by range: a period allocates it
  MemoryLayout out_;
};

}  // namespace

MemoryLayout memory_layout(const StepIndex& index, const Schedule& schedule,
                           const PageChoice& choice, RanBefore ran) {
  MemoryLayout layout = Builder(index, schedule).run(ran);
  layout.placement = place(layout.live, page_bytes(layout.live, choice));
  for (std::size_t r = 0; r < layout.live.ranges.size(); ++r) {
    layout.address.push_back(layout.region_bytes + layout.placement.offset[r]);
    layout.region_bytes +=
        static_cast<Bytes>(layout.placement.pages_of[r].size()) * layout.placement.page_bytes;
  }
  return layout;
}

std::vector<Mapping> mappings(const MemoryLayout& layout, std::int32_t begin, std::int32_t end) {
  std::vector<Mapping> all;
  const Bytes page = layout.placement.page_bytes;
  for (auto r = static_cast<std::size_t>(begin); r < static_cast<std::size_t>(end); ++r) {
    Bytes address = layout.address[r] - layout.placement.offset[r];
    for (const std::int32_t number : layout.placement.pages_of[r]) {
      const Bytes offset = number * page;
      const bool goes_on = !all.empty() && all.back().address + all.back().bytes == address &&
                           all.back().offset + all.back().bytes == offset;
      if (goes_on) {
        all.back().bytes += page;
      } else {
        all.push_back({address, offset, page});
      }
      address += page;
    }
  }
  return all;
}

}  // namespace stowage::simulator
