// For front ends in other languages, which bring an autograd engine or layers of their own: what a
// running step tells its recorder or planner (stowage::executor::StepDriver), the engine that hands
// out hooks of saved tensors, and how layers that run again end (carry_run_ended()). A program in
// C++ needs neither.
#pragma once

#include "executor/run_ended.h"
#include "executor/saved_tensor_engine.h"
#include "executor/step_driver.h"
