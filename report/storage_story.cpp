#include "report/storage_story.h"

#include <algorithm>
#include <unordered_map>

#include "report/alive.h"
#include "simulator/schedule/departures.h"
#include "traces/result.h"

namespace stowage::report {

StorageStories::Touched::Touched(const Trace& trace)
    : first_use(trace.storages.size()),
      last_use(trace.storages.size()),
      first_pack(first_packs(trace)) {
  std::vector<EventId> begin(trace.ops.size());
  std::vector<EventId> end(trace.ops.size());
  for (std::size_t e = 0; e < trace.events.size(); ++e) {
    if (trace.events.kind[e] == EventKind::op_begin) {
      begin[static_cast<std::size_t>(trace.events.ref[e])] = EventId(e);
    } else if (trace.events.kind[e] == EventKind::op_end) {
      end[static_cast<std::size_t>(trace.events.ref[e])] = EventId(e);
    }
  }
  // An op inside another one has no end of its own.
  for (std::size_t i = 0; i < trace.ops.size(); ++i) {
    const OpId parent = trace.ops.parent[i];
    if (!end[i].valid() && parent.valid()) end[i] = end[parent.index()];
  }
  for (std::size_t i = 0; i < trace.uses.size(); ++i) {
    const std::size_t op = trace.uses.op[i].index();
    touch(trace.tensors.storage[trace.uses.tensor[i].index()], begin[op], end[op]);
  }
  for (std::size_t i = 0; i < trace.saved.size(); ++i) {
    touch(trace.saved.storage[i], trace.saved.event[i], {});
  }
  for (std::size_t i = 0; i < trace.unpacks.size(); ++i) {
    touch(trace.saved.storage[trace.unpacks.saved[i].index()], trace.unpacks.event[i],
          trace.unpacks.released_event[i]);
  }
}

void StorageStories::Touched::touch(StorageId storage, EventId first, EventId last) {
  if (!storage.valid() || !first.valid()) return;
  EventId& earliest = first_use[storage.index()];
  EventId& latest = last_use[storage.index()];
  if (!earliest.valid() || first < earliest) earliest = first;
  latest = std::max({latest, first, last});
}

// Adds to the stories what a plan does: makes one for each storage that it moves.
class StorageStories::Planned {
 public:
  Planned(const simulator::Schedule& schedule, StorageStories& stories)
      : trace_(*stories.trace_), schedule_(schedule), stories_(stories) {}

  void run(const simulator::ReplayResult& result, const simulator::ReplayDetail& detail) {
    row_of_stay_.assign(schedule_.stays.size(), -1);
    gone_.assign(schedule_.stays.size(), {});
    add_wrapped();
    const std::vector<simulator::Departure> leaving = simulator::departures(trace_, schedule_);
    for (const simulator::Departure& each : leaving) {
      if (each.stay.valid()) gone_[each.stay.index()] = end_of(each);
    }
    for (const simulator::Instruction& each : schedule_.instructions) follow(each);
    for (const simulator::Departure& each : leaving) {
      if (each.storage.valid()) story_of(each.storage).device_free = end_of(each);
    }
    for (const simulator::Transfer& each : detail.transfers) add_times(each);
    for (const simulator::Stall& each : result.stalls) {
      story_of(schedule_.tenant(each.stay).storage).stall += each.duration;
    }
    std::sort(stories_.moving_.begin(), stories_.moving_.end(),
              [](const StorageStory& a, const StorageStory& b) { return a.storage < b.storage; });
    stories_.moving_.shrink_to_fit();
  }

 private:
  // Until the next one is asked for.
  StorageStory& story_of(StorageId storage) {
    const auto [at, is_new] = row_.try_emplace(storage, stories_.moving_.size());
    if (is_new) {
      stories_.moving_.push_back(stories_.still(storage.index()));
      stories_.moving_.back().moves = true;
    }
    return stories_.moving_[at->second];
  }

  // Stays that began in the period before come first.
  void add_wrapped() {
    for (std::size_t i = 0; i < schedule_.stays.size(); ++i) {
      if (schedule_.stays[i].wraps) return_of(StayId(i));
    }
  }

  // Until the next one is asked for.
  Return& return_of(StayId stay) {
    StorageStory& story = story_of(schedule_.tenant(stay).storage);
    std::int32_t& row = row_of_stay_[stay.index()];
    if (row < 0) {
      row = static_cast<std::int32_t>(story.returns.size());
      story.returns.push_back({.stay = stay, .start = {}, .needed = {}, .gone = {}});
    }
    return story.returns[static_cast<std::size_t>(row)];
  }

  void follow(const simulator::Instruction& each) {
    StorageStory& story = story_of(schedule_.tenant(each.stay).storage);
    const EventId event = each.anchor.event;
    switch (each.action) {
      case simulator::Action::store:
        if (!story.copy_out.valid()) story.copy_out = event;
        break;
      case simulator::Action::load:
        // The end of a stay that wraps is the one that was begun in the period before.
        row_of_stay_[each.stay.index()] = -1;
        return_of(each.stay).start = event;
        break;
      case simulator::Action::await:
        return_of(each.stay).needed = event;
        break;
      case simulator::Action::evict:
        if (schedule_.stays[each.stay.index()].is_made || !story.release.valid()) {
          story.release = event;
        }
        if (!schedule_.stays[each.stay.index()].is_made) {
          return_of(each.stay).gone = gone_[each.stay.index()];
        }
        break;
      case simulator::Action::update:
        break;
    }
  }

  [[nodiscard]] EventId end_of(const simulator::Departure& departure) const {
    if (departure.instruction < 0) return departure.event;
    return schedule_.instructions[static_cast<std::size_t>(departure.instruction)].anchor.event;
  }

  void add_times(const simulator::Transfer& each) {
    if (!each.is_store) {
      Return& row = return_of(each.stay);
      row.copy_start = each.start;
      row.copy_end = each.end;
      return;
    }
    StorageStory& story = story_of(schedule_.tenant(each.stay).storage);
    if (story.copy_out_start < 0) story.copy_out_start = each.start;
    story.copy_out_end = std::max(story.copy_out_end, each.end);
  }

  const Trace& trace_;
  const simulator::Schedule& schedule_;
  StorageStories& stories_;
  std::unordered_map<StorageId, std::size_t> row_;  // of moving_
  std::vector<std::int32_t> row_of_stay_;           // of its storage's returns; -1: no open one
  std::vector<EventId> gone_;                       // by loaded stay: behind which its buffer goes
};

StorageStories::StorageStories(const Trace& trace)
    : trace_(&trace), touched_(std::make_shared<const Touched>(trace)) {}

StorageStories::StorageStories(const Trace& trace, const simulator::Schedule& schedule,
                               const simulator::ReplayResult& result,
                               const simulator::ReplayDetail& detail, const StorageStories* known)
    : trace_(&trace),
      touched_(known != nullptr ? known->touched_ : std::make_shared<const Touched>(trace)) {
  STOWAGE_ASSERT(known == nullptr || known->trace_ == trace_);
  Planned(schedule, *this).run(result, detail);
}

StorageStory StorageStories::operator[](std::size_t row) const {
  const auto at = std::lower_bound(
      moving_.begin(), moving_.end(), StorageId(row),
      [](const StorageStory& story, StorageId storage) { return story.storage < storage; });
  return at != moving_.end() && at->storage == StorageId(row) ? *at : still(row);
}

StorageStory StorageStories::still(std::size_t row) const {
  const Storages& storages = trace_->storages;
  StorageStory story;
  story.storage = StorageId(row);
  story.saved = touched_->first_pack[row];
  story.made_by = storages.alloc_op[row];
  story.made = storages.alloc_event[row];
  story.first_use = touched_->first_use[row];
  story.last_use = touched_->last_use[row];
  story.natural_free = storages.natural_free_event[row];
  story.recorded_free = storages.free_event[row];
  story.device_free = story.recorded_free;
  return story;
}

}  // namespace stowage::report
