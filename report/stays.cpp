#include "report/stays.h"

#include <algorithm>
#include <numeric>

#include "simulator/schedule/departures.h"
#include "traces/result.h"

namespace stowage::report {
namespace {

Position at_instruction(const simulator::Schedule& schedule, std::size_t i) {
  return schedule.instructions[i].anchor.event.value + 1 + static_cast<Position>(i);
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

Stays::Stays(const Trace& trace, const simulator::Schedule& schedule) {
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
  stays_.erase(std::remove_if(stays_.begin(), stays_.end(),
                              [](const Stay& stay) { return stay.bytes == 0; }),
               stays_.end());
  stays_.shrink_to_fit();
  const auto earlier = [](const Stay& a, const Stay& b) { return a.begin < b.begin; };
  // Storages are numbered as they are allocated.
  if (!std::is_sorted(stays_.begin(), stays_.end(), earlier)) {
    std::stable_sort(stays_.begin(), stays_.end(), earlier);
  }
  find_highest(positions);
  plant_tree();
}

EventId Stays::event_of(Position position) const {
  std::size_t low = 0;
  std::size_t high = events_;
  while (high - low > 1) {
    const std::size_t middle = (low + high) / 2;
    (at_event(middle) <= position ? low : high) = middle;
  }
  return EventId(low);
}

Position Stays::highest_at(EventId event) const {
  const Position own = at_event(event.index());
  const auto at = std::upper_bound(highest_amid_.begin(), highest_amid_.end(), own);
  return at != highest_amid_.end() && *at <= last_at(event.index()) ? *at : own;
}

std::vector<std::size_t> Stays::alive(Position position) const {
  const auto begun = std::upper_bound(stays_.begin(), stays_.end(), position,
                                      [](Position p, const Stay& stay) { return p < stay.begin; });
  const auto count = static_cast<std::size_t>(begun - stays_.begin());
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

Position Stays::behind_event(EventId event) const {
  if (!event.valid() || event.index() + 1 >= events_) return kNever;
  return at_event(event.index() + 1);
}

void Stays::add_storages(const Trace& trace, const simulator::Schedule& schedule) {
  std::vector<Position> leaves(trace.storages.size(), kBefore);
  for (const simulator::Departure& departure : simulator::departures(trace, schedule)) {
    if (!departure.storage.valid()) continue;
    Position& end = leaves[departure.storage.index()];
    end = behind_event(departure.event);
    if (departure.instruction >= 0) {
      end = at_instruction(schedule, static_cast<std::size_t>(departure.instruction));
    }
  }
  std::vector<std::uint8_t> streams(trace.storages.size(), 0);
  for (const simulator::Tenant& tenant : schedule.tenants) {
    if (tenant.has_own_home) streams[tenant.storage.index()] = 1;
  }
  for (std::size_t s = 0; s < trace.storages.size(); ++s) {
    if (trace.storages.device[s] != 0 || streams[s] != 0) continue;
    Stay stay{.storage = StorageId(s), .saved = {}, .bytes = trace.storages.bytes[s]};
    const EventId made = trace.storages.alloc_event[s];
    const EventId freed = trace.storages.free_event[s];
    if (made.valid()) stay.begin = at_event(made.index());
    if (freed.valid()) stay.end = at_event(freed.index());
    if (leaves[s] != kBefore) stay.end = leaves[s];
    stays_.push_back(stay);
  }
}

// In order of begin; one that goes on over the step's end is two: up to its evict, and from its
// load on.
void Stays::add_buffers(const Trace& trace, const simulator::Schedule& schedule) {
  std::vector<Position> end(schedule.stays.size(), kNever);
  for (const simulator::Departure& departure : simulator::departures(trace, schedule)) {
    if (!departure.stay.valid()) continue;
    Position& at = end[departure.stay.index()];
    at = departure.instruction >= 0
             ? at_instruction(schedule, static_cast<std::size_t>(departure.instruction))
             : behind_event(departure.event);
  }
  const auto buffer_of = [&](StayId id) {
    const simulator::Tenant& tenant = schedule.tenant(id);
    return Stay{.holding = tenant.saved.empty() ? Holding::original : Holding::reloaded,
                .storage = tenant.storage,
                .saved = tenant.saved.empty() ? SavedId{} : tenant.saved.front(),
                .bytes = tenant.bytes};
  };
  for (std::size_t i = 0; i < schedule.stays.size(); ++i) {
    if (!schedule.stays[i].wraps) continue;
    Stay stay = buffer_of(StayId(i));
    stay.end = end[i];
    stays_.push_back(stay);
  }
  for (std::size_t i = 0; i < schedule.instructions.size(); ++i) {
    const simulator::Instruction& each = schedule.instructions[i];
    if (each.action != simulator::Action::load) continue;
    Stay stay = buffer_of(each.stay);
    stay.begin = at_instruction(schedule, i);
    if (!schedule.stays[each.stay.index()].wraps) stay.end = end[each.stay.index()];
    stays_.push_back(stay);
  }
}

void Stays::find_highest(std::size_t positions) {
  std::vector<Bytes> bytes(positions, 0);  // first the changes alone
  const auto last = static_cast<Position>(positions);
  for (const Stay& stay : stays_) {
    const Position begin = std::max(stay.begin, Position{0});
    if (begin < last) bytes[static_cast<std::size_t>(begin)] += stay.bytes;
    if (stay.end < last) bytes[static_cast<std::size_t>(stay.end)] -= stay.bytes;
  }
  std::partial_sum(bytes.begin(), bytes.end(), bytes.begin());
  const auto first_most = [&](Position from, Position to) {
    return static_cast<Position>(std::max_element(bytes.begin() + from, bytes.begin() + to) -
                                 bytes.begin());
  };
  highest_ = first_most(0, last);
  for (std::size_t e = 0; e < events_ && !ahead_.empty(); ++e) {
    if (ahead_[e] == ahead_[e + 1]) continue;
    const Position most = first_most(at_event(e), last_at(e) + 1);
    if (most != at_event(e)) highest_amid_.push_back(most);
  }
}

Position Stays::latest_end(std::size_t node) const {
  if (node < leaves_) return latest_end_[node];
  return node - leaves_ < stays_.size() ? stays_[node - leaves_].end : kBefore;
}

void Stays::plant_tree() {
  while (leaves_ < stays_.size()) leaves_ *= 2;
  latest_end_.assign(leaves_, kBefore);
  for (std::size_t n = leaves_; n-- > 1;) {
    latest_end_[n] = std::max(latest_end(2 * n), latest_end(2 * n + 1));
  }
}

}  // namespace stowage::report
