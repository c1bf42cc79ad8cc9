// The structure in which the host updates all that it can.
#pragma once

#include "simulator/step/device_updates.h"
#include "simulator/step/step_index.h"
#include "simulator/step/structure.h"

namespace stowage::testing {

// Of a recorded step. Empty where the host can update nothing.
inline simulator::Structure all_on_host(const simulator::StepIndex& recorded) {
  simulator::Structure structure;
  const simulator::DeviceUpdates updates(recorded);
  for (const StorageId parameter : updates.parameters()) {
    if (updates.reason_to_stay(parameter).empty()) structure.host_updates.push_back(parameter);
  }
  return structure;
}

}  // namespace stowage::testing
