#include "simulator/hazards/shared_memory_check.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>

#include "simulator/hazards/happens_before.h"
#include "simulator/schedule/departures.h"
#include "simulator/schedule/tenant_kind.h"

namespace stowage::simulator {
namespace {

// A range is there, once.
struct Occurrence {
  Access first;
  std::optional<Access> last;  // none: it goes on behind the two periods
};

// The ranges of a step, by slot as in an AllocationSequence: storages, then stays.
class MemoryWalk {
 public:
  MemoryWalk(const StepIndex& index, const Schedule& schedule, const LiveRanges& live)
      : trace_(index.trace()),
        s_(schedule),
        live_(live),
        departures_(departures(trace_, schedule)),
        leaves_at_(schedule.instructions.size(), -1),
        moved_(trace_.storages.size(), false),
        loads_(schedule.stays.size()),
        stores_(schedule.stays.size()),
        there_(live.ranges.size()),
        is_open_(live.ranges.size(), false) {
    for (std::size_t d = 0; d < departures_.size(); ++d) {
      const Departure& departure = departures_[d];
      const auto row = static_cast<std::int32_t>(d);
      if (!departure.stay.valid()) moved_[departure.storage.index()] = true;
      if (departure.instruction >= 0) {
        leaves_at_[static_cast<std::size_t>(departure.instruction)] = row;
      } else if (departure.event.valid()) {
        behind_.push_back(row);
      }
    }
    std::stable_sort(behind_.begin(), behind_.end(),
                     [&](std::int32_t a, std::int32_t b) { return at(a).event < at(b).event; });
  }

  // By range.
  std::vector<std::vector<Occurrence>> run() && {
    for (std::size_t period = 0; period < kPeriods; ++period) walk();
    return std::move(there_);
  }

 private:
  [[nodiscard]] const Departure& at(std::int32_t row) const {
    return departures_[static_cast<std::size_t>(row)];
  }
  [[nodiscard]] std::int32_t range_of(StorageId storage) const {
    return live_.of_slot[storage.index()];
  }
  [[nodiscard]] std::int32_t range_of(StayId stay) const {
    return live_.of_slot[trace_.storages.size() + stay.index()];
  }

  void walk() {
    begin_ = streams_.on_compute(EventId(0));
    std::size_t next = 0;
    auto behind = behind_.begin();
    for (std::size_t e = 0; e < trace_.events.size(); ++e) {
      const EventId event(e);
      own_action(event);
      for (; next < s_.instructions.size() && s_.instructions[next].anchor.event == event; ++next) {
        execute(s_.instructions[next], leaves_at_[next]);
      }
      for (; behind != behind_.end() && at(*behind).event == event; ++behind) leave(*behind, event);
    }
    // What the next period does not begin with goes here.
    for (std::size_t r = 0; r < there_.size(); ++r) {
      const bool goes_on = live_.ranges[r].end > live_.instants;
      if (is_open_[r] && !goes_on) {
        end(static_cast<std::int32_t>(r), EventId(trace_.events.size() - 1));
      }
    }
  }

  void own_action(EventId event) {
    const EventKind kind = trace_.events.kind[event.index()];
    if (kind != EventKind::alloc && kind != EventKind::free) return;
    const StorageId storage(trace_.events.ref[event.index()]);
    if (trace_.storages.device[storage.index()] != 0) return;
    if (kind == EventKind::alloc) {
      begin(range_of(storage), streams_.on_compute(event));
    } else if (!moved_[storage.index()]) {
      end(range_of(storage), event);
    }
  }

  void execute(const Instruction& instruction, std::int32_t leaves) {
    const StayId id = instruction.stay;
    const EventId event = instruction.anchor.event;
    const Stay& stay = s_.stays[id.index()];
    switch (instruction.action) {
      case Action::load:
        loads_[id.index()] = copy(h2d, stay.load_mode, event);
        begin(range_of(id), loads_[id.index()]);
        break;
      case Action::await:
        streams_.wait_for(loads_[id.index()]);
        break;
      case Action::store:
        stores_[id.index()] = copy(d2h, stay.store_mode, event);
        break;
      case Action::evict:
        if (stay.is_stored) streams_.wait_for(stores_[id.index()]);
        if (leaves >= 0) leave(leaves, event);
        break;
      case Action::update:  // of host memory alone
        break;
    }
  }

  Access copy(Stream lane, CopyMode mode, EventId event) {
    if (mode == CopyMode::compute) return streams_.on_compute(event);
    const Access access = streams_.on_stream(lane, event);
    if (mode == CopyMode::blocking) streams_.wait_for(access);
    return access;
  }

  void leave(std::int32_t row, EventId event) {
    const Departure& departure = at(row);
    end(departure.stay.valid() ? range_of(departure.stay) : range_of(departure.storage), event);
  }

  // What takes turns is there all the time, in one of its two places or the other.
  [[nodiscard]] bool comes_and_goes(std::int32_t range) const {
    return range >= 0 && !takes_turns(live_, range);
  }
  void begin(std::int32_t range, const Access& first) {
    if (!comes_and_goes(range)) return;
    there_[static_cast<std::size_t>(range)].push_back({first, {}});
    is_open_[static_cast<std::size_t>(range)] = true;
  }
  // What nothing in the period began was there at its begin.
  void end(std::int32_t range, EventId event) {
    if (!comes_and_goes(range)) return;
    const auto r = static_cast<std::size_t>(range);
    if (!is_open_[r]) there_[r].push_back({begin_, {}});
    there_[r].back().last = streams_.on_compute(event);
    is_open_[r] = false;
  }

  const Trace& trace_;
  const Schedule& s_;
  const LiveRanges& live_;
  const std::vector<Departure> departures_;
  std::vector<std::int32_t> leaves_at_;  // by instruction: row of departures_
  std::vector<std::int32_t> behind_;     // rows of those in gaps, by event
  std::vector<bool> moved_;              // by storage: it goes by a departure
  std::vector<Access> loads_;            // by stay
  std::vector<Access> stores_;
  std::vector<std::vector<Occurrence>> there_;  // by range
  std::vector<bool> is_open_;
  Access begin_;  // of the period
  Streams streams_;
};

// What a range has of a page, once.
struct Part {
  std::int32_t page = 0;
  std::int32_t range = 0;
  Bytes first = 0;  // bytes of the page
  Bytes last = 0;
  const Occurrence* when = nullptr;  // none: all the time

  [[nodiscard]] std::int64_t begin() const {
    return when == nullptr ? -1 : when->first.clock[compute];
  }
  [[nodiscard]] bool shares(const Part& other) const {
    return first < other.last && other.first < last;
  }
  [[nodiscard]] bool covers(const Part& other) const {
    return first <= other.first && last >= other.last;
  }
};

// By page, in order of their first accesses.
std::vector<Part> parts_of(const std::vector<std::vector<Occurrence>>& there,
                           const LiveRanges& live, const DevicePlacement& placement) {
  std::vector<Part> parts;
  for (std::size_t r = 0; r < live.ranges.size(); ++r) {
    const Bytes begin = placement.offset[r];
    const Bytes end = begin + placed_bytes(live.ranges[r].bytes);
    const auto pages = placement.pages_of[r];
    for (std::size_t k = 0; k < pages.size(); ++k) {
      const Bytes at = static_cast<Bytes>(k) * placement.page_bytes;
      Part part{pages[k], static_cast<std::int32_t>(r), std::max(begin, at) - at,
                std::min(end, at + placement.page_bytes) - at, nullptr};
      if (there[r].empty()) parts.push_back(part);
      for (const Occurrence& each : there[r]) {
        part.when = &each;
        parts.push_back(part);
      }
    }
  }
  std::stable_sort(parts.begin(), parts.end(), [](const Part& a, const Part& b) {
    return std::pair(a.page, a.begin()) < std::pair(b.page, b.begin());
  });
  return parts;
}

bool are_ordered(const Part& first, const Part& second) {
  if (first.when == nullptr || second.when == nullptr) return false;
  return first.when->last && ordered(*first.when->last, second.when->first);
}

class Names {
 public:
  Names(const Trace& trace, const Schedule& schedule, const LiveRanges& live)
      : trace_(trace), schedule_(schedule), slot_of_(live.ranges.size(), -1) {
    for (std::size_t s = live.of_slot.size(); s-- > 0;) {
      if (live.of_slot[s] < 0) continue;
      slot_of_[static_cast<std::size_t>(live.of_slot[s])] = static_cast<std::int32_t>(s);
    }
  }

  [[nodiscard]] TenantId tenant(std::int32_t range) const {
    const std::int32_t stay = stay_of(range);
    return stay < 0 ? TenantId{} : schedule_.stays[static_cast<std::size_t>(stay)].tenant;
  }
  [[nodiscard]] std::string operator()(std::int32_t range) const {
    if (const TenantId loaded = tenant(range); loaded.valid()) {
      return "the buffer of " + label(trace_, schedule_, loaded);
    }
    const std::int32_t slot = slot_of_[static_cast<std::size_t>(range)];
    if (slot < 0) return "a workspace";
    const auto s = static_cast<std::size_t>(slot);
    const OpId op = trace_.storages.alloc_op[s];
    const LayerId layer = trace_.storages.layer[s];
    std::string text = "storage " + std::to_string(slot);
    if (op.valid()) text += ", made by " + trace_.string(trace_.ops.name[op.index()]);
    if (layer.valid()) text += " in " + trace_.string(trace_.layers.name[layer.index()]);
    return text;
  }

 private:
  [[nodiscard]] std::int32_t stay_of(std::int32_t range) const {
    const std::int32_t slot = slot_of_[static_cast<std::size_t>(range)];
    const auto storages = static_cast<std::int32_t>(trace_.storages.size());
    return slot < storages ? -1 : slot - storages;
  }

  const Trace& trace_;
  const Schedule& schedule_;
  std::vector<std::int32_t> slot_of_;  // by range: the first one, -1 = none
};

}  // namespace

std::vector<Hazard> shared_memory_hazards(const StepIndex& index, const Schedule& schedule,
                                          const LiveRanges& live,
                                          const DevicePlacement& placement) {
  const auto there = MemoryWalk(index, schedule, live).run();
  const std::vector<Part> parts = parts_of(there, live, placement);
  std::vector<std::pair<const Part*, const Part*>> pairs;
  for (std::size_t i = 0; i < parts.size(); ++i) {
    // Behind one that had all of these bytes everything earlier is ordered as that one is.
    for (std::size_t j = i; j-- > 0 && parts[j].page == parts[i].page;) {
      if (!parts[j].shares(parts[i])) continue;
      if (!are_ordered(parts[j], parts[i])) pairs.emplace_back(&parts[j], &parts[i]);
      if (parts[j].when != nullptr && parts[j].covers(parts[i])) break;
    }
  }
  const Names name(index.trace(), schedule, live);
  std::vector<Hazard> hazards;
  std::vector<std::pair<std::int32_t, std::int32_t>> known;  // a pair may share many pages
  for (const auto& [first, second] : pairs) {
    const std::pair ranges{first->range, second->range};
    if (std::find(known.begin(), known.end(), ranges) != known.end()) continue;
    known.push_back(ranges);
    const EventId event = second->when == nullptr ? EventId(0) : second->when->first.event;
    hazards.push_back(
        {HazardKind::memory_shared, name.tenant(first->range), name.tenant(second->range), event,
         name(second->range) + " takes bytes of page " + std::to_string(second->page) +
             " at event " + std::to_string(event.value) + " that " + name(first->range) +
             " may still have"});
  }
  return hazards;
}

}  // namespace stowage::simulator
