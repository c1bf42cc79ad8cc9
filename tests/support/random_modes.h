// How shards stream, at random.
#pragma once

#include <cstddef>
#include <cstdint>
#include <random>
#include <utility>
#include <vector>

#include "simulator/plan/stream_modes.h"

namespace stowage::testing {

// One mode for all, or one for each; none is off.
inline simulator::StreamModes random_modes(std::size_t shards, std::uint64_t seed) {
  std::mt19937_64 random(seed);
  const auto mode = [&] { return static_cast<simulator::StreamMode>(1 + random() % 3); };
  if (shards == 0 || random() % 5 < 2) return mode();
  std::vector<simulator::StreamMode> modes(shards);
  for (simulator::StreamMode& each : modes) each = mode();
  return simulator::StreamModes(std::move(modes));
}

}  // namespace stowage::testing
