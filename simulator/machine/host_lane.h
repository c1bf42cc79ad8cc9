// How long the host takes to update a parameter: Calibration::host_update_ns and what belongs to
// it, as the replay and the bounds use them.
#pragma once

#include <algorithm>

#include "simulator/machine/link_model.h"
#include "traces/trace.h"
#include "traces/units.h"

namespace stowage::simulator {

// Where no trace says it: of 1 GiB of parameter, gradient and state; 1 ms for each MiB.
inline constexpr Nanoseconds kHostUpdateNsPerGib = 1'024'000'000;

[[nodiscard]] constexpr bool knows_host_updates(const Calibration& calibration) {
  return calibration.host_update_ns_per_gib > 0;
}

// Of an update's bytes, above 0.
[[nodiscard]] constexpr Nanoseconds host_update_ns_per_gib(const Calibration& calibration) {
  return knows_host_updates(calibration) ? calibration.host_update_ns_per_gib : kHostUpdateNsPerGib;
}

// Alone: of an update that reads and writes so many bytes. Rounds up; 0 for 0 bytes, at most
// kMaxTransfer.
[[nodiscard]] constexpr Nanoseconds host_update_ns(const Calibration& calibration, Bytes bytes) {
  if (bytes == 0) return 0;
  const Nanoseconds per_gib = host_update_ns_per_gib(calibration);
  const Wide time = (Wide{bytes} * per_gib + (Bytes{1} << 30) - 1) >> 30;
  const Wide all = time + (knows_host_updates(calibration) ? calibration.host_update_ns : 0);
  return static_cast<Nanoseconds>(std::min<Wide>(all, kMaxTransfer));
}

// Its speed while a lane moves bytes.
[[nodiscard]] constexpr Ppm host_update_speed(const Calibration& calibration) {
  return std::clamp<Ppm>(calibration.host_update_interference, kPpm / 100, kPpm);
}

}  // namespace stowage::simulator
