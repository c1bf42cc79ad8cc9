// stowage::profiler::record(): one training step of a program's own loop as a trace. On a GPU,
// profiler::TimingRecorder::create() ahead of the device gives it kernel times.
#pragma once

#include "profiler/torch/record.h"
