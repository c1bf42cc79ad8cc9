// For front ends in other languages, which bring an autograd engine or layers of their own: what a
// running step tells its recorder or planner (stowage::executor::StepDriver), the engine that hands
// out hooks of saved tensors, when a backward of another engine is over (BackwardTask), and how
// layers that run again end (carry_run_ended()). A program in C++ needs none of it.
#pragma once

#include "executor/backward_task.h"
#include "executor/run_ended.h"
#include "executor/saved_tensor_engine.h"
#include "executor/step_driver.h"
