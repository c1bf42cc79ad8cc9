// A timing pass written by hand: the structure pass of a fabricated recording once more, its events
// 10 us apart from kBase on, and the device's records.
#pragma once

#include <cstdint>
#include <string>

#include "profiler/assembly/raw_pass.h"

namespace stowage::testing {

class FabricatedTiming {
 public:
  static constexpr std::int64_t kBase = 1'700'000'000'000'000'000;
  static constexpr Nanoseconds kGap = 10'000;
  static constexpr std::int64_t kThread = 77;

  explicit FabricatedTiming(const profiler::RawPass& structure);

  // The time of an event, and of a moment behind it.
  static std::int64_t at(std::int32_t event, Nanoseconds behind = 0) {
    return kBase + event * kGap + behind;
  }

  // Launched at `launch` by a call of 2 us, run from `start` for `duration`. Returns the
  // correlation. `id`: the external id, -1 = none.
  std::int64_t kernel(std::int64_t launch, std::int64_t start, Nanoseconds duration,
                      std::int64_t id = -1);
  // Likewise; unlike a kernel it may come from outside of every op.
  std::int64_t memset(std::int64_t launch, std::int64_t start, Nanoseconds duration);
  void sync(std::int64_t start, std::int64_t end);

  profiler::TimingPass timing;
};

}  // namespace stowage::testing
