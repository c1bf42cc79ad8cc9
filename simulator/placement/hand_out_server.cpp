#include "simulator/placement/hand_out_server.h"

#include <algorithm>
#include <utility>

namespace stowage::simulator {
namespace {

constexpr std::size_t kLooksAhead = 8;

}  // namespace

HandOutServer::HandOutServer(const MemoryLayout& layout)
    : layout_(layout),
      owners_(layout.live, layout.placement),
      is_first_(!layout.first_hand_outs.empty()),
      lasts_(layout.live.ranges.size(), false) {
  for (auto at = layout.lasting.rbegin(); at != layout.lasting.rend(); ++at) {
    lasts_[static_cast<std::size_t>(*at)] = true;
    lasting_[layout.bytes(*at)].push_back(*at);
  }
  for (std::size_t i = 0; i < layout.first_hand_outs.size(); ++i) {
    const std::int32_t range = layout.first_hand_outs[i].range;
    if (range < 0 || lasts_[static_cast<std::size_t>(range)]) first_ends_ = i + 1;
  }
}

void HandOutServer::begin_period() {
  in_period_ = true;
  next_ = reached_ = 0;
  passed_.clear();
}

void HandOutServer::end_period() {
  if (in_period_ && is_first_ && next_ >= first_ends_) is_first_ = false;
  in_period_ = false;
}

void HandOutServer::reach(EventId event) {
  if (!in_period_) return;
  const std::vector<HandOut>& all = hand_outs();
  while (reached_ < all.size() && all[reached_].event < event) ++reached_;
  next_ = reached_;
  passed_.clear();
}

bool HandOutServer::is_of_every_period(const HandOut& each) const {
  return each.range >= 0 && !lasts_[static_cast<std::size_t>(each.range)];
}

bool HandOutServer::is_there(const HandOut& each) const {
  if (each.range < 0 || is_of_every_period(each)) return false;
  const auto free = lasting_.find(each.bytes);
  return free == lasting_.end() || free->second.empty();
}

std::size_t HandOutServer::find(Bytes bytes) const {
  const std::vector<HandOut>& all = hand_outs();
  std::size_t passed = 0;
  for (std::size_t at = next_; at < all.size() && passed < kLooksAhead; ++at) {
    if (all[at].bytes == bytes && !is_there(all[at])) return at;
    // What a first period makes besides need not come, however much of it there is.
    if (is_of_every_period(all[at])) ++passed;
  }
  return all.size();
}

std::int32_t HandOutServer::allocate(Bytes bytes, std::int32_t stay) {
  if (!in_period_) return in_setup_ ? take_lasting(bytes) : -1;
  if (stay != kNoStay) {
    const auto at = static_cast<std::size_t>(stay);
    const std::int32_t range = at < layout_.of_stay.size() ? layout_.of_stay[at] : -1;
    if (range < 0 || layout_.bytes(range) != bytes) return unforeseen(bytes);
    return take(range, EventId());
  }
  if (const auto passed = std::find(passed_.begin(), passed_.end(), bytes);
      passed != passed_.end()) {
    passed_.erase(passed);
    return take_lasting(bytes);
  }
  const std::vector<HandOut>& all = hand_outs();
  const std::size_t at = find(bytes);
  if (at == all.size()) {
    const std::int32_t range = take_lasting(bytes);
    return range >= 0 ? range : unforeseen(bytes);
  }
  for (; next_ < at; ++next_) {
    const std::int32_t skipped = all[next_].range;
    if (skipped >= 0 && lasts_[static_cast<std::size_t>(skipped)] && !is_there(all[next_])) {
      passed_.push_back(all[next_].bytes);
    }
  }
  next_ = at + 1;
  const std::int32_t range = all[at].range;
  if (range < 0) return -1;
  if (!lasts_[static_cast<std::size_t>(range)]) return take(range, all[at].event);
  if (all[at].is_for_next) ++next_;
  // All of one size that last are alike.
  return take_lasting(bytes);
}

std::int32_t HandOutServer::take_lasting(Bytes bytes) {
  const auto found = lasting_.find(bytes);
  if (found == lasting_.end() || found->second.empty()) return -1;
  const std::int32_t range = take(found->second.back(), EventId());
  if (range >= 0) found->second.pop_back();
  return range;
}

std::int32_t HandOutServer::take(std::int32_t range, EventId event) {
  const std::int32_t owner = owners_.take(range);
  const bool is_second =
      owner >= 0 && takes_turns(layout_.live, range) && owners_.take(range + 1) < 0;
  if (owner < 0 || is_second) {
    if (in_period_) ++report_.served;
    return is_second ? range + 1 : range;
  }
  ++report_.conflicts;
  for (HandOutReport::Conflict& each : report_.first_conflicts) {
    if (each.range != range || each.owner != owner || each.event != event) continue;
    ++each.times;
    return -1;
  }
  if (report_.first_conflicts.size() < HandOutReport::kMostNamed) {
    const auto of_range = [&](std::int32_t which) {
      const auto& all = layout_.hand_outs;
      const auto at = std::find_if(all.begin(), all.end(),
                                   [&](const HandOut& each) { return each.range == which; });
      return at == all.end() ? EventId() : at->event;
    };
    report_.first_conflicts.push_back({event, range, owner, of_range(owner), 1});
  }
  return -1;
}

std::int32_t HandOutServer::unforeseen(Bytes bytes) {
  ++report_.unforeseen;
  const std::vector<HandOut>& all = hand_outs();
  const EventId ahead_of = next_ < all.size() ? all[next_].event : EventId();
  for (HandOutReport::Unforeseen& each : report_.first_unforeseen) {
    if (each.ahead_of != ahead_of || each.bytes != bytes) continue;
    ++each.times;
    return -1;
  }
  if (report_.first_unforeseen.size() < HandOutReport::kMostNamed) {
    report_.first_unforeseen.push_back({ahead_of, bytes, {}, 1});
  }
  return -1;
}

void HandOutServer::name_unforeseen(std::size_t which, std::string op) {
  report_.first_unforeseen.at(which).op = std::move(op);
}

void HandOutServer::free(std::int32_t range) {
  owners_.give_back(range);
  if (lasts_[static_cast<std::size_t>(range)]) lasting_[layout_.bytes(range)].push_back(range);
}

}  // namespace stowage::simulator
