// How long one transfer takes alone on its lane: latency, then bytes at a rate that depends on
// the transfer's size (linear interpolation of time between the calibrated sizes, proportional
// below the first and above the last).
#pragma once

#include "traces/trace.h"

namespace stowage::simulator {

// The longest time that transfer_ns() gives, more than an hour: absurd input stays computable.
inline constexpr Nanoseconds kMaxTransfer = 4'000'000'000'000;

// Has at least one point, increasing positive sizes, positive rates: what transfer_ns() requires.
[[nodiscard]] bool is_usable(const LinkCurve& curve);

// Nominal time of a transfer of `bytes`, latency included; 0 for 0 bytes. Rounds up to 1 ns; at
// most kMaxTransfer.
[[nodiscard]] Nanoseconds transfer_ns(const LinkCurve& curve, Bytes bytes);

// The highest rate that any size reaches, in bytes a second; 0 for an empty curve.
[[nodiscard]] std::int64_t best_rate(const LinkCurve& curve);

}  // namespace stowage::simulator
