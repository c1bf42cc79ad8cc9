// What a transfer of a schedule moves.
#pragma once

#include <string>

#include "simulator/replay/replay.h"
#include "simulator/schedule/schedule.h"
#include "traces/trace.h"

namespace stowage::report {

// Of an offload and its reloads: the site of its first saved tensor; of a parameter's residency:
// "parameter of LAYER".
[[nodiscard]] std::string name_of_copy(const Trace& trace, const simulator::Schedule& schedule,
                                       OffloadId offload, ResidencyId residency);
[[nodiscard]] Bytes bytes_of_copy(const simulator::Schedule& schedule, OffloadId offload,
                                  ResidencyId residency);
[[nodiscard]] StorageId storage_of_copy(const simulator::Schedule& schedule, OffloadId offload,
                                        ResidencyId residency);

// Whether it goes to the device.
[[nodiscard]] inline bool is_back(const simulator::Transfer& transfer) {
  return transfer.residency.valid() ? !transfer.is_store : transfer.reload.valid();
}
[[nodiscard]] inline bool is_back(const simulator::Stall& stall) {
  return stall.residency.valid() ? !stall.is_store : stall.reload.valid();
}
// How it is copied; a parameter always on a lane.
[[nodiscard]] simulator::CopyMode mode_of_copy(const simulator::Schedule& schedule,
                                               OffloadId offload, ReloadId reload);

}  // namespace stowage::report
