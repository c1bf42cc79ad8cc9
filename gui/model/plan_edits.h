// What a person does to a plan, as functions from decisions to decisions. No document, no undo.
#pragma once

#include <vector>

#include "gui/model/plan_decisions.h"
#include "gui/model/trace_data.h"
#include "traces/trace.h"

namespace stowage::gui {

// Keep, offload or recompute by ops, points and modes as the lowering chooses them. Rows that
// offload already keep their own points. What ops make again is decided about by storage: other
// rows of one follow. A segment with any of the rows runs again no more; of several layers the
// others do, each by itself. O(saved + calls).
[[nodiscard]] PlanDecisions with_saved(const TraceData& data, const PlanDecisions& decisions,
                                       const std::vector<SavedId>& rows,
                                       simulator::Decision decision);
// Everything of a row at once: points, modes, share.
[[nodiscard]] PlanDecisions with_saved(const TraceData& data, const PlanDecisions& decisions,
                                       const std::vector<SavedId>& rows,
                                       const simulator::SavedDecision& decision);
// All calls of these layers run again in backward, each by itself. Nothing else is decided about
// what they save, and no segment that overlaps one of them stays. O(saved * layers + calls).
[[nodiscard]] PlanDecisions with_segments(const TraceData& data, const PlanDecisions& decisions,
                                          const std::vector<LayerId>& layers);

// The saved tensors of a layer and of the layers inside it, in pack order. O(saved * depth).
[[nodiscard]] std::vector<SavedId> saved_in(const Trace& trace, LayerId layer);

// The layer is `ancestor` or inside it.
[[nodiscard]] bool is_inside(const Trace& trace, LayerId layer, LayerId ancestor);

// A layer whose parameters, or whose parameters' optimizer state, are decided about as one.
struct StreamingLayer {
  LayerId layer;
  Bytes bytes = 0;
  std::vector<StorageId> storages;
  std::vector<StorageId> owners;  // of optimizer state: the parameters that it belongs to, in order
};
// In order of layers (planner/streaming_layers.h). O(storages).
[[nodiscard]] std::vector<StreamingLayer> streaming_layers_of(const Trace& trace);
// The same of the optimizer's state.
[[nodiscard]] std::vector<StreamingLayer> streaming_state_of(const Trace& trace);

// Whether any parameter of the layer streams.
[[nodiscard]] bool streams(const simulator::Decisions& decisions, const StreamingLayer& layer);

// The parameters of these layers stream (each layer a shard of its own) or stay. What streams does
// so in the mode of all other parameters where that is one; else, and the first ones, they leave
// between forward and backward. O(storages + layers).
[[nodiscard]] PlanDecisions with_streaming(const Trace& trace, const PlanDecisions& decisions,
                                           const std::vector<StreamingLayer>& layers, bool stream);

// Where the optimizer state of the layer's parameters is: host, where the host updates any of
// them; else stream, where any of it streams.
[[nodiscard]] simulator::StatePlace state_place(const simulator::Decisions& decisions,
                                                const StreamingLayer& layer);

// The optimizer state of these layers' parameters is there; layers that are there in part are as
// they are. The host updates all parameters of a layer or none: rules are by layer.
// O(storages + layers).
[[nodiscard]] PlanDecisions with_state_place(const Trace& trace, const PlanDecisions& decisions,
                                             const std::vector<StreamingLayer>& layers,
                                             simulator::StatePlace place);

}  // namespace stowage::gui
