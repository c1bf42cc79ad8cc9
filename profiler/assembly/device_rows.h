// The tables of a trace that only a GPU has: gpu, syncs and setup.
#pragma once

#include "profiler/assembly/device_times.h"
#include "profiler/assembly/raw_pass.h"
#include "profiler/assembly/trace_rows.h"

namespace stowage::profiler {

// Fills Trace::gpu, syncs, clock, quality and overhead.timing. Precondition: ops and events are
// complete. Cost: O(activities).
void add_device_rows(const TimingPass& timing, const DeviceTimes& times, TraceRows& rows);

// Fills Trace::setup: the allocator's history ahead of the first step and what only the first step
// did, at its place in the step when the first step is like the recorded one (first_step.h), else
// with what lasts of it made ahead. What lasts and was made later comes ahead of the step too; what
// is gone by the recorded step goes in the first one at the latest. Left out: gradients, and what
// each step leaves to the next. Precondition: storages alive at step begin have their rows.
// Cost: O(history + events + storages).
void add_setup_rows(const RawRecording& recording, const RawPass& structure, TraceRows& rows);

}  // namespace stowage::profiler
