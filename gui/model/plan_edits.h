// What a person does to a plan, as functions from decisions to decisions. No document, no undo.
#pragma once

#include <vector>

#include "simulator/plan/decisions.h"
#include "traces/trace.h"

namespace stowage::gui {

// Keep or offload, points and modes as the lowering chooses them. Rows that offload already keep
// their own points. O(saved).
[[nodiscard]] simulator::Decisions with_saved(const simulator::Decisions& decisions,
                                              const std::vector<SavedId>& rows,
                                              simulator::Decision decision);
// Everything of a row at once: points, modes, share.
[[nodiscard]] simulator::Decisions with_saved(const simulator::Decisions& decisions,
                                              const std::vector<SavedId>& rows,
                                              const simulator::SavedDecision& decision);

// The saved tensors of a layer and of the layers inside it, in pack order. O(saved * depth).
[[nodiscard]] std::vector<SavedId> saved_in(const Trace& trace, LayerId layer);

// The layer is `ancestor` or inside it.
[[nodiscard]] bool is_inside(const Trace& trace, LayerId layer, LayerId ancestor);

// A layer whose parameters are decided about as one, and its bytes.
struct StreamingLayer {
  LayerId layer;
  Bytes bytes = 0;
  std::vector<StorageId> storages;
};
// In order of layers (planner/streaming_layers.h). O(storages).
[[nodiscard]] std::vector<StreamingLayer> streaming_layers_of(const Trace& trace);

// Whether any parameter of the layer streams.
[[nodiscard]] bool streams(const simulator::Decisions& decisions, const StreamingLayer& layer);

// The parameters of these layers stream (each layer a shard of its own) or stay. What streams does
// so in the way that the plan's other parameters do; the first ones leave between forward and
// backward. O(storages + layers).
[[nodiscard]] simulator::Decisions with_streaming(const Trace& trace,
                                                  const simulator::Decisions& decisions,
                                                  const std::vector<StreamingLayer>& layers,
                                                  bool stream);

}  // namespace stowage::gui
