// Work of the compute stream without what it waits for: a replayed op is as long as its events are
// apart, stalls included; cut where they lie, the lane shows them as gaps.
#pragma once

#include <algorithm>
#include <vector>

#include "report/timeline.h"

namespace stowage::gui {

class StallCutter {
 public:
  // In order of begin, none over another; they must outlive this.
  explicit StallCutter(const std::vector<report::Span>& stalls) : stalls_(stalls) {}

  // Calls take(begin, end) for each part of [begin, end) in which nothing is waited for, in order;
  // once, with an empty one where it ends, when there is none. Calls must come in order of begin.
  // Cost: O(parts), and over all calls O(stalls).
  template <class Take>
  void cut(Nanoseconds begin, Nanoseconds end, const Take& take) {
    while (next_ < stalls_.size() && stalls_[next_].end <= begin) ++next_;
    bool any = false;
    Nanoseconds from = begin;
    for (std::size_t i = next_; i < stalls_.size() && stalls_[i].begin < end; ++i) {
      if (stalls_[i].begin > from) {
        take(from, stalls_[i].begin);
        any = true;
      }
      from = std::max(from, stalls_[i].end);
    }
    if (from < end) return take(from, end);
    if (!any) take(end, end);
  }

 private:
  const std::vector<report::Span>& stalls_;
  std::size_t next_ = 0;
};

}  // namespace stowage::gui
