// The optimizer's updates of a step, parameter by parameter, and which of them the host can do in
// the device's place: an update that is nobody's but its parameter's, so that the step is the same
// without it.
#pragma once

#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "simulator/step/step_template.h"
#include "traces/trace.h"

namespace stowage::simulator {

class StepIndex;

// What Run::optimizer of a loop in Python begins with: nothing but that loop can do its arithmetic.
inline constexpr std::string_view kPythonOptimizer = "python:";

class DeviceUpdates {
 public:
  // Precondition: the index knows its anchors. Cost: O(trace). Refers to nothing.
  explicit DeviceUpdates(const StepIndex& index);

  // Parameters that the step updates, in order of rows.
  [[nodiscard]] std::vector<StorageId> parameters() const;
  // Empty where the host can do the update of that parameter, else "stays: ..": the optimizer is
  // Python's (kPythonOptimizer); the parameter, its gradient or a piece of its state cannot leave
  // (ModelStateUses); it has no update, several, or one that is neither behind backward nor in it;
  // one in backward does not end with its gradient; the update uses, makes or frees what is not its
  // own, or has packs in it; the step uses the parameter or its gradient behind it, its state
  // elsewhere, or the parameter for nothing else.
  [[nodiscard]] const std::string& reason_to_stay(StorageId parameter) const;

 private:
  std::map<StorageId, std::string> reasons_;  // of each that the step updates
};

// Those of `wanted` (by storage; empty: none) that the host can update. Cost: that of a StepIndex
// where some are wanted.
[[nodiscard]] std::vector<StorageId> host_updates(const Trace& recording,
                                                  const std::vector<bool>& wanted);

// Puts nothing in the place of these parameters' updates, nor of the end of a gradient right behind
// one: it lives on. Precondition: the host can do them.
[[nodiscard]] StepTemplate leave_out_updates(const Trace& trace,
                                             const std::vector<StorageId>& parameters);

}  // namespace stowage::simulator
