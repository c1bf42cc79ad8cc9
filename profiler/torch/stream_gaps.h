// How long compute on a GPU pauses beside what its kernels and copies take: where a copy starts
// behind it, where it waits for one, where the CPU does. Each is a microsecond or a few, so they
// show in steps of many small transfers.
#pragma once

#include "executor/device/device.h"
#include "traces/trace.h"

namespace stowage::profiler {

// Fills start_gap_ns, handover_ns and compute_copy_gap_ns; needs the curve of copies to the device.
// Each is the difference between two queues of tiny kernels that the GPU works off while the CPU is
// far ahead, a median over a few rounds; at least 0. Uses 4 KiB of `host` and 200 MiB of the
// device; takes a second and a half. Without effect on the CPU device.
void measure_stream_gaps(executor::Device& device, std::byte* host, Calibration& result);

}  // namespace stowage::profiler
