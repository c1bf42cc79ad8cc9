#include "executor/rate_schedule.h"

#include <algorithm>
#include <cmath>
#include <numbers>

namespace stowage::executor {

double rate_factor(const RateSchedule& schedule, std::int64_t step) {
  if (step < schedule.warmup) {
    return static_cast<double>(step + 1) / static_cast<double>(schedule.warmup);
  }
  if (schedule.decay == Decay::none) return 1;
  const auto steps = static_cast<double>(schedule.total - schedule.warmup);
  const double part = std::min(1.0, static_cast<double>(step - schedule.warmup) / steps);
  if (schedule.decay == Decay::linear) return 1 - part;
  return part < 1 ? (1 + std::cos(std::numbers::pi * part)) / 2 : 0;
}

}  // namespace stowage::executor
