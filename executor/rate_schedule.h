// RateSchedule: the learning rate of each step, as the usual loop has it: a linear warm-up, then a
// decay to 0.
#pragma once

#include <cstdint>

namespace stowage::executor {

enum class Decay : std::uint8_t { none, linear, cosine };

struct RateSchedule {
  std::int64_t warmup = 0;  // steps
  Decay decay = Decay::none;
  std::int64_t total = 0;  // steps until the rate is 0, those of the warm-up among them
  bool operator==(const RateSchedule&) const = default;
};

// What the rate is multiplied by in step number `step`, from 0 on: (step + 1) / warmup within the
// warm-up; behind it, by the part p of the decay's steps that are over, 1 - p (torch's LinearLR
// from 1 to 0) or (1 + cos(pi p)) / 2 (its CosineAnnealingLR, in closed form); 0 from `total` on.
[[nodiscard]] double rate_factor(const RateSchedule& schedule, std::int64_t step);

}  // namespace stowage::executor
