#include "report/alive_spans.h"

#include <algorithm>
#include <numeric>

#include "simulator/schedule/departures.h"
#include "traces/result.h"

namespace stowage::report {
namespace {

StepPosition at_instruction(const simulator::Schedule& schedule, std::size_t i) {
  return schedule.instructions[i].anchor.event.value + 1 + static_cast<StepPosition>(i);
}

}  // namespace

const char* name_of(Holding value) {
  switch (value) {
    case Holding::original:
      return "original";
    case Holding::reloaded:
      return "reloaded";
    case Holding::host:
      return "host";
  }
  STOWAGE_ASSERT(false && "unknown holding");
}

AliveSpans::AliveSpans(const Trace& trace, const simulator::Schedule& schedule) {
  // Instructions are in the order of their events, so the ones ahead of an event are a prefix.
  events_ = trace.events.size();
  if (!schedule.instructions.empty()) ahead_.assign(events_ + 1, 0);
  for (const simulator::Instruction& each : schedule.instructions) {
    ++ahead_[each.anchor.event.index() + 1];
  }
  for (std::size_t e = 1; e < ahead_.size(); ++e) ahead_[e] += ahead_[e - 1];
  const std::size_t positions = events_ + schedule.instructions.size();
  STOWAGE_ASSERT(positions < static_cast<std::size_t>(kNever));
  add_storages(trace, schedule);
  add_buffers(trace, schedule);
  spans_.erase(std::remove_if(spans_.begin(), spans_.end(),
                              [](const AliveSpan& span) { return span.bytes == 0; }),
               spans_.end());
  spans_.shrink_to_fit();
  const auto earlier = [](const AliveSpan& a, const AliveSpan& b) { return a.begin < b.begin; };
  // Storages are numbered as they are allocated.
  if (!std::is_sorted(spans_.begin(), spans_.end(), earlier)) {
    std::stable_sort(spans_.begin(), spans_.end(), earlier);
  }
  find_highest(positions);
  plant_tree();
}

EventId AliveSpans::event_of(StepPosition position) const {
  std::size_t low = 0;
  std::size_t high = events_;
  while (high - low > 1) {
    const std::size_t middle = (low + high) / 2;
    (at_event(middle) <= position ? low : high) = middle;
  }
  return EventId(low);
}

StepPosition AliveSpans::highest_at(EventId event) const {
  const StepPosition own = at_event(event.index());
  const auto at = std::upper_bound(highest_amid_.begin(), highest_amid_.end(), own);
  return at != highest_amid_.end() && *at <= last_at(event.index()) ? *at : own;
}

std::vector<std::size_t> AliveSpans::alive(StepPosition position) const {
  const auto begun =
      std::upper_bound(spans_.begin(), spans_.end(), position,
                       [](StepPosition p, const AliveSpan& span) { return p < span.begin; });
  const auto count = static_cast<std::size_t>(begun - spans_.begin());
  std::vector<std::size_t> rows;
  struct Visit {
    std::size_t node, first, size;
  };
  std::vector<Visit> open = {{1, 0, leaves_}};
  while (!open.empty()) {
    const Visit at = open.back();
    open.pop_back();
    if (at.first >= count || latest_end(at.node) <= position) continue;
    if (at.size == 1) {
      rows.push_back(at.first);
      continue;
    }
    const std::size_t half = at.size / 2;
    open.push_back({2 * at.node + 1, at.first + half, half});
    open.push_back({2 * at.node, at.first, half});
  }
  return rows;
}

StepPosition AliveSpans::behind_event(EventId event) const {
  if (!event.valid() || event.index() + 1 >= events_) return kNever;
  return at_event(event.index() + 1);
}

void AliveSpans::add_storages(const Trace& trace, const simulator::Schedule& schedule) {
  std::vector<StepPosition> leaves(trace.storages.size(), kBefore);
  for (const simulator::Departure& departure : simulator::departures(trace, schedule)) {
    if (!departure.storage.valid()) continue;
    StepPosition& end = leaves[departure.storage.index()];
    end = behind_event(departure.event);
    if (departure.instruction >= 0) {
      end = at_instruction(schedule, static_cast<std::size_t>(departure.instruction));
    }
  }
  std::vector<std::uint8_t> streams(trace.storages.size(), 0);
  for (const simulator::Tenant& tenant : schedule.tenants) {
    const StorageId at_begin = tenant.at_begin();
    if (tenant.has_own_home && at_begin.valid()) streams[at_begin.index()] = 1;
  }
  for (std::size_t s = 0; s < trace.storages.size(); ++s) {
    if (trace.storages.device[s] != 0 || streams[s] != 0) continue;
    AliveSpan span{.storage = StorageId(s), .saved = {}, .bytes = trace.storages.bytes[s]};
    const EventId made = trace.storages.alloc_event[s];
    const EventId freed = trace.storages.free_event[s];
    if (made.valid()) span.begin = at_event(made.index());
    if (freed.valid()) span.end = at_event(freed.index());
    if (leaves[s] != kBefore) span.end = leaves[s];
    spans_.push_back(span);
  }
}

// In order of begin; one that goes on over the step's end is two: up to its evict, and from its
// load on.
void AliveSpans::add_buffers(const Trace& trace, const simulator::Schedule& schedule) {
  std::vector<StepPosition> end(schedule.stays.size(), kNever);
  for (const simulator::Departure& departure : simulator::departures(trace, schedule)) {
    if (!departure.stay.valid()) continue;
    StepPosition& at = end[departure.stay.index()];
    at = departure.instruction >= 0
             ? at_instruction(schedule, static_cast<std::size_t>(departure.instruction))
             : behind_event(departure.event);
  }
  const auto buffer_of = [&](StayId id) {
    const simulator::Tenant& tenant = schedule.tenant(id);
    return AliveSpan{.holding = tenant.saved.empty() ? Holding::original : Holding::reloaded,
                     .storage = tenant.storage,
                     .saved = tenant.saved.empty() ? SavedId{} : tenant.saved.front(),
                     .bytes = tenant.bytes};
  };
  for (std::size_t i = 0; i < schedule.stays.size(); ++i) {
    if (!schedule.stays[i].wraps) continue;
    AliveSpan span = buffer_of(StayId(i));
    span.end = end[i];
    spans_.push_back(span);
  }
  for (std::size_t i = 0; i < schedule.instructions.size(); ++i) {
    const simulator::Instruction& each = schedule.instructions[i];
    if (each.action != simulator::Action::load) continue;
    AliveSpan span = buffer_of(each.stay);
    span.begin = at_instruction(schedule, i);
    if (!schedule.stays[each.stay.index()].wraps) span.end = end[each.stay.index()];
    spans_.push_back(span);
  }
}

void AliveSpans::find_highest(std::size_t positions) {
  std::vector<Bytes> bytes(positions, 0);  // first the changes alone
  const auto last = static_cast<StepPosition>(positions);
  for (const AliveSpan& span : spans_) {
    const StepPosition begin = std::max(span.begin, StepPosition{0});
    if (begin < last) bytes[static_cast<std::size_t>(begin)] += span.bytes;
    if (span.end < last) bytes[static_cast<std::size_t>(span.end)] -= span.bytes;
  }
  std::partial_sum(bytes.begin(), bytes.end(), bytes.begin());
  const auto first_most = [&](StepPosition from, StepPosition to) {
    return static_cast<StepPosition>(std::max_element(bytes.begin() + from, bytes.begin() + to) -
                                     bytes.begin());
  };
  highest_ = first_most(0, last);
  for (std::size_t e = 0; e < events_ && !ahead_.empty(); ++e) {
    if (ahead_[e] == ahead_[e + 1]) continue;
    const StepPosition most = first_most(at_event(e), last_at(e) + 1);
    if (most != at_event(e)) highest_amid_.push_back(most);
  }
}

StepPosition AliveSpans::latest_end(std::size_t node) const {
  if (node < leaves_) return latest_end_[node];
  return node - leaves_ < spans_.size() ? spans_[node - leaves_].end : kBefore;
}

void AliveSpans::plant_tree() {
  while (leaves_ < spans_.size()) leaves_ *= 2;
  latest_end_.assign(leaves_, kBefore);
  for (std::size_t n = leaves_; n-- > 1;) {
    latest_end_[n] = std::max(latest_end(2 * n), latest_end(2 * n + 1));
  }
}

}  // namespace stowage::report
