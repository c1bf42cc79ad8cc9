// What can only be said about a step when all of its events are known: classes of storages, whose
// parameters are whose, uses, peaks.
#pragma once

#include "profiler/assembly/raw_pass.h"
#include "profiler/assembly/trace_rows.h"

namespace stowage::profiler {

// Fills the classes and evidence of storages made in the step, Layers::parameter_bytes, the tables
// uses and peaks. Precondition:
// every other table is complete. Cost: O(records).
void add_conclusions(const RawPass& structure, const CleanPass& clean, TraceRows& rows);

}  // namespace stowage::profiler
