#include "report/storage_story.h"

#include <algorithm>

#include "report/alive.h"
#include "report/transfers.h"
#include "simulator/lifetimes.h"

namespace stowage::report {
namespace {

void touch(StorageStory& story, EventId first, EventId last) {
  if (!first.valid()) return;
  if (!story.first_use.valid() || first < story.first_use) story.first_use = first;
  story.last_use = std::max({story.last_use, first, last});
}

void add_uses(const Trace& trace, std::vector<StorageStory>& stories) {
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
    const StorageId storage = trace.tensors.storage[trace.uses.tensor[i].index()];
    if (!storage.valid()) continue;
    const std::size_t op = trace.uses.op[i].index();
    touch(stories[storage.index()], begin[op], end[op]);
  }
  for (std::size_t i = 0; i < trace.saved.size(); ++i) {
    const StorageId storage = trace.saved.storage[i];
    if (storage.valid()) touch(stories[storage.index()], trace.saved.event[i], {});
  }
  for (std::size_t i = 0; i < trace.unpacks.size(); ++i) {
    const StorageId storage = trace.saved.storage[trace.unpacks.saved[i].index()];
    if (!storage.valid()) continue;
    touch(stories[storage.index()], trace.unpacks.event[i], trace.unpacks.released_event[i]);
  }
}

class Planned {
 public:
  Planned(const Trace& trace, const simulator::Schedule& schedule,
          std::vector<StorageStory>& stories)
      : trace_(trace), schedule_(schedule), stories_(stories) {}

  void run(const simulator::ReplayResult& result, const simulator::ReplayDetail& detail) {
    // Which of a storage's returns a reload or a residency is.
    reload_row_.assign(schedule_.reloads.size(), 0);
    stay_row_.assign(schedule_.residencies.size(), -1);
    add_wrapped();
    for (const simulator::Instruction& each : schedule_.instructions) follow(each);
    for (const simulator::Departure& departure : simulator::departures(trace_, schedule_)) {
      StorageStory& story = stories_[departure.storage.index()];
      story.device_free = departure.event;
      if (departure.instruction >= 0) {
        const auto row = static_cast<std::size_t>(departure.instruction);
        story.device_free = schedule_.instructions[row].anchor.event;
      }
    }
    for (const simulator::Transfer& each : detail.transfers) add_times(each);
    for (const simulator::Stall& each : result.stalls) {
      const StorageId storage = storage_of_copy(schedule_, each.offload, each.residency);
      if (storage.valid()) stories_[storage.index()].stall += each.duration;
    }
  }

 private:
  StorageStory& story_of(const simulator::Instruction& each) {
    OffloadId offload = each.offload;
    if (each.reload.valid()) offload = schedule_.reloads[each.reload.index()].offload;
    StorageStory& story =
        stories_[storage_of_copy(schedule_, offload, each.residency).index()];
    story.moves = true;
    return story;
  }

  // Stays that began in the period before come first.
  void add_wrapped() {
    for (std::size_t r = 0; r < schedule_.residencies.size(); ++r) {
      if (!schedule_.residencies[r].wraps) continue;
      StorageStory& story = stories_[storage_of_copy(schedule_, {}, ResidencyId(r)).index()];
      stay_row_[r] = static_cast<std::int32_t>(story.returns.size());
      story.returns.push_back({.reload = {}, .residency = ResidencyId(r), .start = {},
                               .needed = {}, .gone = {}});
    }
  }

  Return& stay(StorageStory& story, ResidencyId residency) {
    std::int32_t& row = stay_row_[residency.index()];
    if (row < 0) {
      row = static_cast<std::int32_t>(story.returns.size());
      story.returns.push_back({.reload = {}, .residency = residency, .start = {}, .needed = {},
                               .gone = {}});
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
    const StorageId storage = storage_of_copy(schedule_, each.offload, each.residency);
    StorageStory& story = stories_[storage.index()];
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
  std::vector<StorageStory>& stories_;
  std::vector<std::size_t> reload_row_;
  std::vector<std::int32_t> stay_row_;  // -1: no open one
};

}  // namespace

std::vector<StorageStory> storage_stories(const Trace& trace) {
  std::vector<StorageStory> stories(trace.storages.size());
  const std::vector<SavedId> first = first_packs(trace);
  for (std::size_t s = 0; s < stories.size(); ++s) {
    StorageStory& story = stories[s];
    story.storage = StorageId(s);
    story.saved = first[s];
    story.made_by = trace.storages.alloc_op[s];
    story.made = trace.storages.alloc_event[s];
    story.natural_free = trace.storages.natural_free_event[s];
    story.recorded_free = trace.storages.free_event[s];
    story.device_free = story.recorded_free;
  }
  add_uses(trace, stories);
  return stories;
}

std::vector<StorageStory> storage_stories(const Trace& trace, const simulator::Schedule& schedule,
                                          const simulator::ReplayResult& result,
                                          const simulator::ReplayDetail& detail) {
  std::vector<StorageStory> stories = storage_stories(trace);
  Planned(trace, schedule, stories).run(result, detail);
  return stories;
}

}  // namespace stowage::report
