// For front ends in other languages, which bring an autograd engine or layers of their own: what a
// running step tells its recorder or planner (stowage::executor::StepDriver), and the engine that
// hands out hooks of saved tensors. A program in C++ needs neither.
#pragma once

#include "executor/saved_tensor_engine.h"
#include "executor/step_driver.h"
