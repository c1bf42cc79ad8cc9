// The timing pass on the events of the structure pass and on the clean step's scale: what a trace
// says about a GPU (tables gpu and syncs) and when its launch thread reached each event.
// docs/decisions/0007 says why the times are put together this way.
#pragma once

#include <vector>

#include "profiler/assembly/attribution.h"
#include "profiler/assembly/raw_pass.h"
#include "profiler/assembly/two_clocks.h"
#include "traces/result.h"

namespace stowage::profiler {

struct DeviceActivity {
  std::size_t activity = 0;  // row of RawActivities::activities
  std::int32_t op = -1;      // row of ops, the same in both passes
  std::int32_t event = 0;    // of the structure pass
  std::int32_t stream = 0;
  Nanoseconds start = 0;  // since step begin, like everything here
  Nanoseconds duration = 0;
  Nanoseconds launch_start = 0;
  Nanoseconds launch_duration = 0;
};

struct DeviceSync {
  std::int32_t event = 0;
  Nanoseconds duration = 0;  // of the wait on the clean step's scale; part of the events' times
};

struct DeviceTimes {
  std::vector<Nanoseconds> events;         // by event of the structure pass; launch thread
  std::vector<DeviceActivity> activities;  // in order of start
  std::vector<DeviceSync> syncs;
  Attribution attribution;
  TwoClocks clocks;  // as measured
  Scales scales;     // what was done to them
};

// Launch work: gaps between events less what the CPU waited for the device, for a full launch queue
// (a launch call of more than 20 us and eight times the median: what is above the median) and less
// our own hooks. Device work: what an activity adds to the end of the one before it, and the gap
// between the two (at most 5 us) when it had been launched 3 us or more before that one ended.
// Then fit_scales(clean_step_ns). Errors: align(), attribute(), check_quality().
[[nodiscard]] Result<DeviceTimes> device_times(const RawPass& structure, const TimingPass& timing,
                                               Nanoseconds clean_step_ns);

}  // namespace stowage::profiler
