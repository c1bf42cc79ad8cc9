// What the executor's own work costs the thread that launches a step: queueing copies and waits,
// and the hooks of saved tensors. On a GPU it runs ahead of compute, so these only show in steps
// that the CPU limits.
#pragma once

#include "executor/device/device.h"
#include "traces/trace.h"

namespace stowage::profiler {

// Fills launch_ns, sync_ns, copy_issue_ns, wait_issue_ns and hook_ns: means over many calls. Needs
// the saved-tensor engine (executor/saved_tensor_engine.h); between steps, without a driver.
// Takes some 10 ms and 2 MiB of the device.
void measure_issue_costs(executor::Device& device, std::byte* host, Bytes host_bytes,
                         Calibration& result);

}  // namespace stowage::profiler
