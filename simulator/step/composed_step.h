// What a Step shares that is not the recording itself.
#pragma once

#include "simulator/step/step_layout.h"
#include "traces/trace.h"

namespace stowage::simulator {

struct ComposedStep {
  StepLayout layout;
  Trace trace;
};

}  // namespace stowage::simulator
