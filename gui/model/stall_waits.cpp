#include "gui/model/stall_waits.h"

#include <algorithm>
#include <numeric>

namespace stowage::gui {
namespace {

// By stay, the row of its copy in one direction; -1: it has none.
std::vector<std::int32_t> copies_by_stay(const std::vector<simulator::Transfer>& transfers,
                                         bool is_store) {
  std::vector<std::int32_t> rows;
  for (std::size_t i = 0; i < transfers.size(); ++i) {
    if (transfers[i].is_store != is_store) continue;
    const std::size_t stay = transfers[i].stay.index();
    if (stay >= rows.size()) rows.resize(stay + 1, -1);
    rows[stay] = static_cast<std::int32_t>(i);
  }
  return rows;
}

std::int32_t row_of(const std::vector<std::int32_t>& rows, StayId stay) {
  return stay.valid() && stay.index() < rows.size() ? rows[stay.index()] : -1;
}

bool waits_for_same_lane(const StallWait& a, const StallWait& b) {
  return a.is_store == b.is_store && a.is_update == b.is_update;
}

}  // namespace

const StallGroup& StallWaits::group_of(std::int32_t stall) const {
  const auto wait = static_cast<std::size_t>(wait_of[static_cast<std::size_t>(stall)]);
  return groups[static_cast<std::size_t>(waits[wait].group)];
}

Nanoseconds StallWaits::covered(const TimeRange& range) const {
  Nanoseconds sum = 0;
  for (const StallWait& wait : waits) {
    const Nanoseconds inside =
        std::min(wait.at.end, range.end) - std::max(wait.at.begin, range.begin);
    sum += std::max<Nanoseconds>(0, inside);
  }
  return sum;
}

StallWaits stall_waits(const simulator::StepIndex& index, const simulator::ReplayResult& result,
                       const simulator::ReplayDetail& detail) {
  StallWaits made;
  const std::vector<std::int32_t> loads = copies_by_stay(detail.transfers, false);
  const std::vector<std::int32_t> stores = copies_by_stay(detail.transfers, true);
  std::vector<std::int32_t> order(result.stalls.size());
  std::iota(order.begin(), order.end(), 0);
  const auto stall_in = [&](std::int32_t row) -> const simulator::Stall& {
    return result.stalls[static_cast<std::size_t>(row)];
  };
  std::stable_sort(order.begin(), order.end(), [&](std::int32_t a, std::int32_t b) {
    return stall_in(a).start < stall_in(b).start;
  });
  made.wait_of.resize(order.size(), -1);
  EventId before;  // where the stall ahead is
  for (const std::int32_t row : order) {
    const simulator::Stall& stall = stall_in(row);
    StallWait wait{row, -1, stall.is_store, stall.is_update, {}, {}, -1};
    wait.at = {stall.start, stall.start + stall.duration};
    if (stall.is_update) {
      const auto update = std::find_if(detail.host_updates.begin(), detail.host_updates.end(),
                                       [&](const auto& each) { return each.stay == stall.stay; });
      if (update != detail.host_updates.end()) {
        wait.copy = static_cast<std::int32_t>(update - detail.host_updates.begin());
        wait.of = {update->start, update->end};
      }
    } else {
      wait.copy = row_of(stall.is_store ? stores : loads, stall.stay);
      if (wait.copy >= 0) {
        const auto& copy = detail.transfers[static_cast<std::size_t>(wait.copy)];
        wait.of = {copy.start, copy.end};
      }
    }
    const bool goes_on =
        !made.waits.empty() && waits_for_same_lane(made.waits.back(), wait) &&
        index.compute_until()[before.index()] == index.compute_until()[stall.event.index()];
    if (!goes_on) {
      made.groups.push_back({static_cast<std::int32_t>(made.waits.size()), 0, row, wait.at, 0});
    }
    StallGroup& group = made.groups.back();
    ++group.count;
    group.at.end = wait.at.end;
    group.duration += stall.duration;
    if (stall.duration > stall_in(group.longest).duration) group.longest = row;
    wait.group = static_cast<std::int32_t>(made.groups.size()) - 1;
    made.wait_of[static_cast<std::size_t>(row)] = static_cast<std::int32_t>(made.waits.size());
    made.waits.push_back(wait);
    before = stall.event;
  }
  return made;
}

}  // namespace stowage::gui
