// How long copies take on one lane while compute is busy, which it mostly is.
#pragma once

#include <algorithm>
#include <map>

#include "simulator/machine/link_model.h"
#include "traces/trace.h"

namespace stowage::simulator {

// Keeps what it was asked: layers have the same sizes. Refers to both.
class ExpectedTimes {
 public:
  ExpectedTimes(const Calibration& link, const LinkCurve& curve)
      : curve_(curve), speed_(std::clamp<Ppm>(link.copy_interference, kPpm / 1000, kPpm)) {}

  [[nodiscard]] Nanoseconds of(Bytes bytes) {
    const auto [known, is_new] = known_.try_emplace(bytes);
    if (is_new) {
      const Nanoseconds alone = transfer_ns(curve_, bytes);
      known->second =
          alone + (alone / speed_) * (kPpm - speed_) + (alone % speed_) * (kPpm - speed_) / speed_;
    }
    return known->second;
  }

 private:
  const LinkCurve& curve_;
  const Ppm speed_;
  std::map<Bytes, Nanoseconds> known_;
};

}  // namespace stowage::simulator
