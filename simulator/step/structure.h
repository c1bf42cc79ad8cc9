// Structure: what of a step is computed, and in which order. It says nothing of where things live
// meanwhile; that is movement, and comes behind it (simulator/lowering).
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "traces/ids.h"

namespace stowage::simulator {

// All of the step.
inline constexpr const char* kWholeStep = "*";

// A segment is a layer call: "layers.3", or "embed@2" for a layer that is called several times.
struct Structure {
  struct Parts {
    std::string segment;     // or kWholeStep
    std::int32_t parts = 1;  // micro-batches that it runs in; 1 = as recorded
    bool operator==(const Parts&) const = default;
  };
  // Segments that run again in backward: layer calls, or several in a row, "layers.0..layers.3";
  // they may lie within each other.
  std::vector<std::string> recompute;
  std::vector<Parts> parts;
  bool update = true;  // of the parameters, by the optimizer; false: a step that skips it
  std::vector<std::string> ops{};  // sites whose tensors chains of ops make again in backward
  // Parameters of the recording (of the one in these parts) that the host updates: the step is
  // without their updates.
  std::vector<StorageId> host_updates{};

  [[nodiscard]] bool runs_again() const { return !recompute.empty() || !ops.empty(); }
  [[nodiscard]] bool empty() const {
    return !runs_again() && parts.empty() && update && host_updates.empty();
  }
  bool operator==(const Structure&) const = default;
};

}  // namespace stowage::simulator
