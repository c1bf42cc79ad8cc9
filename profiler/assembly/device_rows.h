// The tables of a trace that only a GPU has: gpu, syncs and setup.
#pragma once

#include "profiler/assembly/device_times.h"
#include "profiler/assembly/raw_pass.h"
#include "profiler/assembly/trace_rows.h"

namespace stowage::profiler {

// Fills Trace::gpu, syncs, clock, quality and overhead.timing. Precondition: ops and events are
// complete. Cost: O(activities).
void add_device_rows(const TimingPass& timing, const DeviceTimes& times, TraceRows& rows);

// Fills Trace::setup: the allocator's history ahead of the first step, then what the steps since
// made that is alive at step begin and no gradient. Precondition: storages alive at step begin have
// their rows. Cost: O(history + storages).
void add_setup_rows(const RawRecording& recording, const RawPass& structure, TraceRows& rows);

}  // namespace stowage::profiler
