#include "simulator/machine/link_model.h"

#include <algorithm>

#include "traces/result.h"
#include "traces/units.h"

namespace stowage::simulator {
namespace {

constexpr Wide kNsPerSecond = 1'000'000'000;

// a * b / c, rounded up, at most kMaxTransfer; c > 0.
Nanoseconds scaled(Wide a, Wide b, Wide c) {
  return static_cast<Nanoseconds>(std::min<Wide>((a * b + c - 1) / c, kMaxTransfer));
}

Nanoseconds point_ns(const LinkCurve& curve, std::size_t i) {
  return scaled(curve.bytes[i], kNsPerSecond, curve.bytes_per_second[i]);
}

}  // namespace

bool is_usable(const LinkCurve& curve) {
  if (curve.bytes.empty() || curve.bytes.size() != curve.bytes_per_second.size()) return false;
  for (std::size_t i = 0; i < curve.bytes.size(); ++i) {
    if (curve.bytes[i] <= 0 || curve.bytes_per_second[i] <= 0) return false;
    if (i > 0 && curve.bytes[i] <= curve.bytes[i - 1]) return false;
  }
  return curve.latency >= 0;
}

Nanoseconds transfer_ns(const LinkCurve& curve, Bytes bytes) {
  STOWAGE_ASSERT(is_usable(curve));
  if (bytes <= 0) return 0;
  const auto above = std::upper_bound(curve.bytes.begin(), curve.bytes.end(), bytes);
  const auto i = static_cast<std::size_t>(above - curve.bytes.begin());
  if (i == 0) return scaled(bytes, kNsPerSecond, curve.bytes_per_second[0]);
  if (i == curve.bytes.size()) return scaled(bytes, kNsPerSecond, curve.bytes_per_second[i - 1]);
  const Nanoseconds low = point_ns(curve, i - 1);
  const Nanoseconds high = point_ns(curve, i);
  const Bytes span = curve.bytes[i] - curve.bytes[i - 1];
  if (high <= low) return low;  // a bigger transfer that measured faster: noise
  return std::min(kMaxTransfer, low + scaled(high - low, bytes - curve.bytes[i - 1], span));
}

std::int64_t best_rate(const LinkCurve& curve) {
  if (curve.bytes_per_second.empty()) return 0;
  return *std::max_element(curve.bytes_per_second.begin(), curve.bytes_per_second.end());
}

}  // namespace stowage::simulator
