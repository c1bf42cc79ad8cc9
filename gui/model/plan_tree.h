// The rows that a person decides about: layers, and in them their saved tensors, their parameters
// and their optimizer's state. Of a trace alone: what is decided stands in DecisionKinds' table.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "gui/model/plan_edits.h"
#include "gui/model/trace_data.h"

namespace stowage::gui {

enum class PlanRowKind : std::uint8_t { layer, saved, parameters, optimizer_state };

struct PlanRow {
  PlanRowKind kind = PlanRowKind::layer;
  LayerId layer;
  SavedId saved;  // of a saved tensor
  // Of parameters: row of PlanTree::streaming; of optimizer state: of PlanTree::streaming_state, -1
  // where its layer is not known, so that nothing can be decided about it.
  std::int32_t streaming = -1;
  std::int32_t parent = -1;  // row, -1 = at the top
  std::int32_t place = 0;    // among its parent's children
  // Of its storages, each once; of a layer: those that it and the layers in it save and that were
  // made in the step.
  Bytes bytes = 0;
  std::vector<std::int32_t> children;  // rows
};

struct PlanTree {
  // Layers without anything to decide about are left out. Cost: O(saved * depth + storages).
  explicit PlanTree(TracePtr of);

  TracePtr data;
  std::vector<PlanRow> rows;  // parents ahead of their children
  std::vector<std::int32_t> top;
  std::vector<StreamingLayer> streaming;        // parameters
  std::vector<StreamingLayer> streaming_state;  // of the optimizer
  std::vector<std::int32_t> row_of_saved;       // by row of Trace::saved
  std::vector<std::int32_t> row_of_layer;       // by row of Trace::layers, -1 = left out

  [[nodiscard]] const Trace& trace() const { return data->trace; }
  // Its storage was made in the step, so that an offload may free it. Decisions about a layer are
  // about these alone.
  [[nodiscard]] bool can_move(SavedId saved) const;
  // Of a row of parameters or of optimizer state whose layer is known.
  [[nodiscard]] const StreamingLayer& streaming_of(const PlanRow& row) const;
  // Why nothing of a row of parameters or of optimizer state can stream, "stays: it is .."; empty
  // where some can. Cost: O(its storages).
  [[nodiscard]] std::string reason_to_stay(const PlanRow& row) const;
  // By row of Trace::storages: the row of the innermost layer in which all saved tensors with that
  // storage are. -1: layers without a common one save it, none does, or it cannot move.
  // Cost: O(storages + saved * depth).
  [[nodiscard]] std::vector<std::int32_t> home_of_storages() const;
  // What a decision about these rows is about; a layer stands for all that is in it. In order,
  // each once. Of what is in layers only that of the kind `of_layers`, and saved tensors only where
  // that is their kind. What cannot stream is left out.
  struct Targets {
    std::vector<SavedId> saved;
    std::vector<StreamingLayer> parameters;
    std::vector<StreamingLayer> state;  // of the optimizer
    // What of `saved` was chosen by layer, outermost ones alone, and what by itself.
    std::vector<LayerId> layers;
    std::vector<SavedId> alone;
    // Of a kind of rows; of layers none.
    [[nodiscard]] std::size_t count(PlanRowKind kind) const;
  };
  [[nodiscard]] Targets targets_of(const std::vector<std::int32_t>& chosen,
                                   PlanRowKind of_layers) const;
};

}  // namespace stowage::gui
