// A recorded training step: stowage::Trace, load_trace() and save_trace(), and its JSON in memory
// (docs/trace-format.md).
#pragma once

#include "traces/sha256.h"
#include "traces/trace.h"
#include "traces/trace_file.h"
#include "traces/trace_json.h"
#include "traces/units.h"
