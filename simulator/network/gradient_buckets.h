// How DistributedDataParallel groups the gradients of a step into buckets that it reduces one after
// the other beside backward (torch/csrc/distributed/c10d/reducer.cpp, behind the first step, when
// it has seen in which order gradients come).
//
// A parameter's gradient is ready when autograd reports for the last time in the step that it has
// accumulated; in micro-batches that is the last one, as with no_sync() in those before. In this
// order each goes into the open bucket of its data type, which is closed once it has as many bytes
// as the limit or more: the first one of a type by a smaller limit. What is left open at the end
// comes last. A bucket is ready when all of its gradients and all buckets ahead of it are.
#pragma once

#include <cstdint>
#include <vector>

#include "traces/result.h"
#include "traces/trace.h"

namespace stowage::simulator {

// The defaults are PyTorch's.
struct BucketLimits {
  Bytes first = Bytes{1} << 20;
  Bytes others = Bytes{25} << 20;
};

struct GradientBucket {
  Bytes bytes = 0;
  std::int64_t gradients = 0;
  DType dtype = DType::other;
  EventId ready;  // its last gradient has accumulated
};

struct GradientBuckets {
  std::vector<GradientBucket> buckets;  // in the order in which they are reduced
  // The end of the backward that makes the last gradient: DDP waits there for all buckets.
  EventId waited_for;
};

// Of a step's tables. Errors (bad_input): no gradient accumulates in it, or the recording does not
// say when; it has collectives, so it was recorded over several ranks; a parameter is updated
// before the gradients have been waited for. Cost: O(events + ops + tensors + kernels).
[[nodiscard]] Result<GradientBuckets> gradient_buckets(const Trace& step,
                                                       const BucketLimits& limits = {});

}  // namespace stowage::simulator
