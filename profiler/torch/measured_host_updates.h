// How fast the host updates parameters: the run's optimizer on tensors of the host, on the thread
// that a plan's updates run on, alone and beside copies both ways.
#pragma once

#include <c10/core/ScalarType.h>

#include <cstddef>
#include <cstdint>
#include <vector>

#include "executor/device/device.h"
#include "executor/model.h"
#include "executor/optimizer_spec.h"
#include "traces/result.h"
#include "traces/trace.h"

namespace stowage::profiler {

// What a run's updates are; kind none: there are none, or the host cannot do them.
struct HostUpdateKind {
  executor::OptimizerSpec optimizer;
  c10::ScalarType dtype = c10::ScalarType::Float;  // of most parameters
  // Of a parameter: half of the model's elements are in parameters of no more, half of no less.
  std::int64_t elements = 0;
};

[[nodiscard]] HostUpdateKind host_update_kind(const executor::OptimizerSpec& optimizer,
                                              const std::vector<executor::NamedTensor>& parameters);

// Fills in `host_update_ns`, `host_update_ns_per_gib` and `host_update_interference`; nothing where
// the optimizer is none. Copies are between `device_memory` and `host`, `bytes` of each, half of
// them each way. Of `samples` the median counts, of seven at the most. Takes some tenths of a
// second and 2.2 GB of the host at most, which is pinned as a plan's is, uses nothing of the
// device's besides, and no parameter, state or count of the run's. Errors: Device::host_arena()'s.
[[nodiscard]] Status measure_host_updates(executor::Device& device, const HostUpdateKind& kind,
                                          std::byte* device_memory, std::byte* host, Bytes bytes,
                                          int samples, Calibration& calibration);

}  // namespace stowage::profiler
