// What a GPU's activity records say about some steps, in plain records: no CUDA header, so that
// attribution is tested on fabricated ones. Times are CLOCK_REALTIME, in nanoseconds.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "traces/trace.h"
#include "traces/units.h"

namespace stowage::profiler {

enum class MemoryKind : std::uint8_t { other, pageable, pinned, device };

// Something that the device did.
struct RawActivity {
  GpuKind kind = GpuKind::kernel;
  std::int32_t name = -1;  // row of names
  std::int64_t start_ns = 0;
  std::int64_t end_ns = 0;
  std::int64_t correlation = 0;  // of the API call that launched it
  std::int32_t stream = 0;
  Bytes bytes = 0;  // copies and memsets
  MemoryKind source = MemoryKind::other;
  MemoryKind destination = MemoryKind::other;
};

// An API call that launches.
struct RawLaunch {
  std::int64_t start_ns = 0;
  std::int64_t end_ns = 0;
  std::int64_t correlation = 0;
  std::int64_t thread = 0;  // the system's number
};

// The CPU waited for a stream, an event or the device.
struct RawSync {
  std::int64_t start_ns = 0;
  std::int64_t end_ns = 0;
};

// API call `correlation` was made while `id` was the innermost number on that thread's stack.
struct RawExternal {
  std::int64_t correlation = 0;
  std::int64_t id = 0;
};

struct RawActivities {
  std::vector<std::string> names;
  std::vector<RawActivity> activities;
  std::vector<RawLaunch> launches;
  std::vector<RawSync> syncs;
  std::vector<RawExternal> externals;
  std::int64_t dropped_records = 0;
  std::int64_t zero_timestamps = 0;  // records without a time; they are in no table
  std::int64_t other_records = 0;    // of kinds that were not asked for
  Nanoseconds overhead_ns = 0;       // that the recording library says it took itself
  std::string library;               // version and file of the recording library
};

// External ids: op `row` of the pass that is being recorded is `row`. This one is our own work
// inside a hook; no row is as large.
inline constexpr std::int64_t kExecutorId = std::int64_t{1} << 40;

}  // namespace stowage::profiler
