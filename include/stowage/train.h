// stowage::executor::PlannedTraining: a program's own training loop under a plan.
#pragma once

#include "executor/planned_training.h"
