// What a step would take under a plan: stowage::report::simulate() lowers and replays it: peaks,
// step time, stalls and where they come from (docs/simulator.md).
#pragma once

#include "report/simulation.h"
#include "simulator/machine/calibration_settings.h"
#include "simulator/replay/replay.h"
#include "simulator/step/step_index.h"
