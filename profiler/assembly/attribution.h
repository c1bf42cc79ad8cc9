// Which op of the timing pass launched which activity of the device, and where its CPU waited.
#pragma once

#include <cstdint>
#include <vector>

#include "profiler/assembly/raw_pass.h"
#include "traces/result.h"

namespace stowage::profiler {

struct AttributedActivity {
  std::size_t activity = 0;   // row of RawActivities::activities
  std::size_t launch = 0;     // row of launches
  std::int32_t event = 0;     // of the pass: launched after it and before the next one
  std::int32_t op = -1;       // row of the pass's ops: the innermost one that ran
  std::int64_t start_ns = 0;  // of the activity, not before its launch
};

struct AttributedSync {
  std::int32_t event = 0;
  std::int64_t start_ns = 0;
  std::int64_t end_ns = 0;
};

struct Attribution {
  std::vector<AttributedActivity> activities;  // launched inside the step, in order of launch
  std::vector<AttributedSync> syncs;           // inside the step, in order, not overlapping
  std::vector<RawSpan> own_waits;              // the recorder's, ahead of the last event
  Nanoseconds attributed_ns = 0;
  std::int64_t unattributed_count = 0;  // not of the step, or kernels of it outside of every op
  Nanoseconds unattributed_ns = 0;
  std::int64_t disagreements = 0;         // launches whose external id and time name different ops
  std::int64_t causality_violations = 0;  // activities that started before their launch, clamped
  Nanoseconds largest_clamp = 0;
};

// An activity belongs to the API call of its correlation (the outermost, when several share it),
// that to the step when it was made inside it by one of the pass's threads; to an op by its
// external id, else by time. A kernel of the step that no op launched is an activity of it all the
// same and counts as unattributed; a copy or memset there does not (the step fetches its loss that
// way). Our own work inside hooks belongs to no step. A blocking copy (its
// call returned no sooner than it ended, and memory of the host is pageable) counts as a wait; a
// wait that is still on at the step's end is the recorder's own and left out.
// Errors: an activity more than 5 us ahead of its launch (environment: the clocks differ).
// Precondition: check_records(pass). Cost: O(records log records).
[[nodiscard]] Result<Attribution> attribute(const TimingPass& timing);

// The limits of a recording: no dropped and no zero-timestamp record, at least 99.5 % of the
// device's time attributed, ids and times agreeing for 99.5 % of the launches. Error (environment):
// says which one was broken, and by how much.
[[nodiscard]] Status check_quality(const RawActivities& activities, const Attribution& attribution);

// The device did something in both spans: in each the caller launched work and waited for it. Error
// (environment): not, so somebody else took the records.
[[nodiscard]] Status check_sentinels(const RawActivities& activities, const RawSpan& first,
                                     const RawSpan& last);

}  // namespace stowage::profiler
