#include "simulator/placement/hand_out_server.h"

#include <algorithm>

namespace stowage::simulator {
namespace {

constexpr std::size_t kLooksAhead = 8;

}  // namespace

HandOutServer::HandOutServer(const MemoryLayout& layout)
    : layout_(layout), owners_(layout.live, layout.placement) {}

void HandOutServer::begin_period() {
  in_period_ = true;
  next_ = reached_ = 0;
}

void HandOutServer::reach(EventId event) {
  if (!in_period_) return;
  const std::vector<HandOut>& all = layout_.hand_outs;
  while (reached_ < all.size() && all[reached_].event < event) ++reached_;
  next_ = reached_;
}

std::size_t HandOutServer::find(Bytes bytes) const {
  const std::vector<HandOut>& all = layout_.hand_outs;
  const std::size_t end = std::min(next_ + kLooksAhead, all.size());
  for (std::size_t at = next_; at < end; ++at) {
    if (layout_.bytes(all[at].range) == bytes) return at;
  }
  return all.size();
}

std::int32_t HandOutServer::allocate(Bytes bytes) {
  if (!in_period_) return -1;
  const std::vector<HandOut>& all = layout_.hand_outs;
  const std::size_t at = find(bytes);
  if (at == all.size()) {
    ++report_.unforeseen;
    if (report_.first_unforeseen.size() < HandOutReport::kMostNamed) {
      report_.first_unforeseen.push_back(
          {next_ < all.size() ? all[next_].event : EventId(), bytes});
    }
    return -1;
  }
  next_ = at + 1;
  const std::int32_t owner = owners_.take(all[at].range);
  if (owner < 0) {
    ++report_.served;
    return all[at].range;
  }
  ++report_.conflicts;
  if (report_.first_conflicts.size() < HandOutReport::kMostNamed) {
    const auto of_owner = std::find_if(all.begin(), all.end(),
                                       [&](const HandOut& each) { return each.range == owner; });
    report_.first_conflicts.push_back({all[at].event, all[at].range, owner, of_owner->event});
  }
  return -1;
}

}  // namespace stowage::simulator
