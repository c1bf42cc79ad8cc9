// StepBudget: how often a step is run for a median: as often as is good while it is short, and only
// as often as is needed when it is long.
#pragma once

#include <algorithm>
#include <cstdint>

#include "traces/units.h"

namespace stowage::profiler {

inline constexpr Nanoseconds kSecond = 1'000'000'000;

struct StepBudget {
  std::int64_t least = 1;  // steps, whatever they take
  std::int64_t most = 1;
  Nanoseconds time = 0;  // that all steps together may take when there are more than `least`

  [[nodiscard]] static constexpr StepBudget exactly(std::int64_t steps) {
    return {steps, steps, 0};
  }
  // As `most` steps where that is fewer than `least`.
  [[nodiscard]] static constexpr StepBudget up_to(std::int64_t most, std::int64_t least,
                                                  Nanoseconds time) {
    return {std::min(least, most), most, time};
  }

  // Whether one more is to be run after `done` steps that took `spent` in all: the next one is
  // expected to take as long as their mean.
  [[nodiscard]] constexpr bool wants_more(std::int64_t done, Nanoseconds spent) const {
    if (done < least) return true;
    return done < most && spent + spent / std::max<std::int64_t>(1, done) <= time;
  }
};

}  // namespace stowage::profiler
