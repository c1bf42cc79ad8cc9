// LaunchPace: how long the launch thread takes for its work. A thread that waited for the device
// has lost its caches: on an H200's host the ops behind such a wait took more than twice as long as
// ops that run ahead of the GPU, over all of the 160 us between two waits (docs/decisions/0018). So
// work behind a wait runs at Calibration::woken_launch until kWarm of it is done.
#pragma once

#include <algorithm>

#include "traces/trace.h"
#include "traces/units.h"

namespace stowage::simulator {

class LaunchPace {
 public:
  static constexpr Nanoseconds kWarm = 250'000;
  static constexpr Ppm kSlowest = 10'000;

  explicit LaunchPace(const Calibration& calibration)
      : speed_(std::clamp(calibration.woken_launch, kSlowest, kPpm)) {}

  // The thread waited for the device.
  void woken() { cold_ = speed_ < kPpm ? kWarm : 0; }

  // What `work`, the next that the thread does, takes it: its time in the recorded step, at least
  // 0. O(1).
  [[nodiscard]] Nanoseconds time_of(Nanoseconds work) {
    if (cold_ == 0) return work;
    const Nanoseconds slow = std::min(work, cold_);
    cold_ -= slow;
    return work - slow + static_cast<Nanoseconds>(Wide{slow} * kPpm / speed_);
  }

 private:
  Ppm speed_;
  Nanoseconds cold_ = 0;  // work that is slow yet
};

}  // namespace stowage::simulator
