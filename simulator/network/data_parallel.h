// A recorded step of one device, trained data-parallel over N ranks as DistributedDataParallel does
// it: what a step would take. Nobody measured the network, so all of it is assumed.
//
//   compute   ..backward........ g2 .... g1 ....| wait |..optimizer..
//   network                        [bucket 0][ bucket 1 ]
//
// Each bucket's all-reduce (all_reduce.h) starts once the bucket is ready (gradient_buckets.h) and
// the one before is over, on a lane of its own. Compute and copies do not feel it. At the end of
// backward compute waits for the last one: that is the exposed time, no more than all of them
// together. Gradients that the plan moves are on the device until then and leave behind it. One
// rank is the step alone, with nothing to reduce.
//
// Memory: buckets hold each gradient once more, all the time (gradient_as_bucket_view is off).
//
// Not in it: copies into and out of buckets, the multiprocessors and the memory bandwidth that a
// collective takes from the backward beside it, ranks that are slower than others.
#pragma once

#include <cstdint>
#include <vector>

#include "simulator/network/network_settings.h"
#include "simulator/plan/plan.h"
#include "simulator/replay/replay.h"
#include "simulator/step/step_index.h"
#include "traces/result.h"

namespace stowage::simulator {

struct RankedStep {
  std::int64_t ranks = 1;
  std::int64_t hosts = 1;
  Nanoseconds step_ns = 0;
  Nanoseconds all_reduce_ns = 0;  // of all buckets
  Nanoseconds exposed_ns = 0;     // that compute waits for the last one
  Ppm efficiency = kPpm;          // step of one rank / this one's
};

struct DataParallel {
  ReductionModel model;
  std::vector<GradientBucket> buckets;
  std::vector<Nanoseconds> ready;  // of each bucket's last gradient, in a step that does not wait
  Bytes bucket_bytes = 0;
  Nanoseconds backward_end_ns = 0;  // likewise: where it would wait
  // Of two ranks and more: with gradients that stay until they are reduced, and buckets (each
  // rounded up to 512 bytes in `active`, in segments of their own in `reserved`, where that is
  // known; else -1).
  Bytes peak_requested = 0;
  Bytes peak_active = 0;
  Bytes peak_reserved = -1;
  std::vector<RankedStep> steps;  // one for each number asked for, in that order
};

// `index` is of the step that the plan makes of the recording, `alone` its replay. Preconditions:
// each of `ranks` is at least 1 and fills hosts (all_reduce.h). Errors (bad_input): those of
// gradient_buckets() and lower(). Cost: lower() and replay() once, and estimate() for each number.
[[nodiscard]] Result<DataParallel> data_parallel(const StepIndex& index, const Plan& plan,
                                                 const ReplayResult& alone,
                                                 const ReductionModel& model,
                                                 const std::vector<std::int64_t>& ranks);

}  // namespace stowage::simulator
