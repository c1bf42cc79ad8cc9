// What a plan decides, by rows of the recording: the form that a person looks at and edits. A step
// in which something runs again has other rows; what is decided about these follows from here.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "simulator/plan/decisions.h"
#include "simulator/step/segments.h"
#include "simulator/step/step_index.h"
#include "simulator/step/structure.h"
#include "traces/trace.h"

namespace stowage::gui {

// `saved`, `parameters` and `optimizer` are of the recording; Decision::recompute: by ops. What a
// layer saves that runs again is kept there: its segment decides about it.
struct PlanDecisions : simulator::Decisions {
  // Layer calls that run again, as a Structure names them; inner ones behind outer ones.
  std::vector<std::string> segments;
  // By saved tensor, the row of `segments` that it belongs to; -1: none. Empty: none belongs to
  // one.
  std::vector<std::int32_t> segment_of;
  // Of what segments and chains of ops are given, by its site; what is kept has none.
  std::map<std::string, simulator::SavedDecision> inputs;

  [[nodiscard]] std::int32_t segment(SavedId row) const {
    return segment_of.empty() ? -1 : segment_of[row.index()];
  }
  // By ops, or with a layer.
  [[nodiscard]] bool runs_again(SavedId row) const {
    return segment(row) >= 0 || saved_is(row, simulator::Decision::recompute);
  }
  [[nodiscard]] bool saved_is(SavedId row, simulator::Decision decision) const {
    return saved[row.index()].decision == decision;
  }
};

// Layer calls of a recording in order of their begin.
using LayerCalls = std::vector<simulator::SegmentFinder::Named>;

// Which segment each saved tensor belongs to, the last one that has it, as
// PlanDecisions::segment_of. Cost: O(segments * (calls + saved)).
[[nodiscard]] std::vector<std::int32_t> segments_of_saved(const Trace& recording,
                                                          const LayerCalls& calls,
                                                          const std::vector<std::string>& segments);

[[nodiscard]] simulator::Structure structure_of(const Trace& recording,
                                                const PlanDecisions& decisions);

// Of the rows of a step with that structure. Cost: O(saved + storages).
[[nodiscard]] simulator::Decisions in_step(const simulator::StepIndex& index,
                                           const PlanDecisions& decisions);
// The other way: in_step() of it gives `decisions`.
[[nodiscard]] PlanDecisions in_recording(const simulator::StepIndex& index, const LayerCalls& calls,
                                         const simulator::Decisions& decisions);

}  // namespace stowage::gui
