#include "report/storage_story.h"

#include <algorithm>
#include <unordered_map>

#include "report/alive.h"
#include "report/transfers.h"
#include "simulator/schedule/lifetimes.h"
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
    // Which of a storage's returns a reload or a residency is.
    reload_row_.assign(schedule_.reloads.size(), 0);
    stay_row_.assign(schedule_.residencies.size(), -1);
    add_wrapped();
    for (const simulator::Instruction& each : schedule_.instructions) follow(each);
    for (const simulator::Departure& departure : simulator::departures(trace_, schedule_)) {
      StorageStory& story = story_of(departure.storage);
      story.device_free = departure.event;
      if (departure.instruction >= 0) {
        const auto row = static_cast<std::size_t>(departure.instruction);
        story.device_free = schedule_.instructions[row].anchor.event;
      }
    }
    for (const simulator::Transfer& each : detail.transfers) add_times(each);
    for (const simulator::Stall& each : result.stalls) {
      const StorageId storage = storage_of_copy(schedule_, each.offload, each.residency);
      if (storage.valid()) story_of(storage).stall += each.duration;
    }
    std::sort(stories_.moving_.begin(), stories_.moving_.end(),
              [](const StorageStory& a, const StorageStory& b) { return a.storage < b.storage; });
    stories_.moving_.shrink_to_fit();
  }

 private:
  StorageStory& story_of(const simulator::Instruction& each) {
    OffloadId offload = each.offload;
    if (each.reload.valid()) offload = schedule_.reloads[each.reload.index()].offload;
    return story_of(storage_of_copy(schedule_, offload, each.residency));
  }
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
    for (std::size_t r = 0; r < schedule_.residencies.size(); ++r) {
      if (!schedule_.residencies[r].wraps) continue;
      StorageStory& story = story_of(storage_of_copy(schedule_, {}, ResidencyId(r)));
      stay_row_[r] = static_cast<std::int32_t>(story.returns.size());
      story.returns.push_back(
          {.reload = {}, .residency = ResidencyId(r), .start = {}, .needed = {}, .gone = {}});
    }
  }

  Return& stay(StorageStory& story, ResidencyId residency) {
    std::int32_t& row = stay_row_[residency.index()];
    if (row < 0) {
      row = static_cast<std::int32_t>(story.returns.size());
      story.returns.push_back(
          {.reload = {}, .residency = residency, .start = {}, .needed = {}, .gone = {}});
    }
    return story.returns[static_cast<std::size_t>(row)];
  }

  void follow(const simulator::Instruction& each) {
    StorageStory& story = story_of(each);
    const EventId event = each.anchor.event;
    switch (each.action) {
      case simulator::Action::start_offload:
      case simulator::Action::start_store:
        if (!story.copy_out.valid()) story.copy_out = event;
        break;
      case simulator::Action::release:
        story.release = event;
        break;
      case simulator::Action::start_reload:
        reload_row_[each.reload.index()] = story.returns.size();
        story.returns.push_back(
            {.reload = each.reload,
             .residency = {},
             .start = event,
             .needed = {},
             .gone = simulator::buffer_end(trace_, schedule_.reloads[each.reload.index()])});
        break;
      case simulator::Action::await:
        story.returns[reload_row_[each.reload.index()]].needed = event;
        break;
      case simulator::Action::drop:
        break;
      case simulator::Action::start_load:
        // The end of a stay that wraps is the one that was begun in the period before.
        if (stay_row_[each.residency.index()] >= 0) {
          stay_row_[each.residency.index()] = -1;
        }
        stay(story, each.residency).start = event;
        break;
      case simulator::Action::await_load:
        stay(story, each.residency).needed = event;
        break;
      case simulator::Action::evict:
        if (!story.release.valid()) story.release = event;
        stay(story, each.residency).gone = event;
        break;
    }
  }

  void add_times(const simulator::Transfer& each) {
    StorageStory& story = story_of(storage_of_copy(schedule_, each.offload, each.residency));
    if (!is_back(each)) {
      if (story.copy_out_start < 0) story.copy_out_start = each.start;
      story.copy_out_end = std::max(story.copy_out_end, each.end);
      return;
    }
    Return* row = nullptr;
    if (each.reload.valid()) {
      row = &story.returns[reload_row_[each.reload.index()]];
    } else {
      row = &stay(story, each.residency);
    }
    row->copy_start = each.start;
    row->copy_end = each.end;
  }

  const Trace& trace_;
  const simulator::Schedule& schedule_;
  StorageStories& stories_;
  std::unordered_map<StorageId, std::size_t> row_;  // of moving_
  std::vector<std::size_t> reload_row_;             // which of its storage's returns a reload is
  std::vector<std::int32_t> stay_row_;              // -1: no open one
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
