// Rows of the plan tree whose decisions a search leaves as they are (planner/pins.h). A pin holds
// what is decided about its row, whatever that is by then.
#pragma once

#include <cstddef>
#include <memory>
#include <set>

#include "gui/model/plan_decisions.h"
#include "gui/model/plan_tree.h"
#include "gui/model/trace_data.h"
#include "simulator/plan/plan.h"

namespace stowage::gui {

struct PinnedRows {
  std::set<SavedId> saved;       // of the recording
  std::set<LayerId> parameters;  // layers of PlanTree::streaming
  std::set<LayerId> state;       // of PlanTree::streaming_state

  [[nodiscard]] bool empty() const { return saved.empty() && parameters.empty() && state.empty(); }
  [[nodiscard]] std::size_t size() const { return saved.size() + parameters.size() + state.size(); }
  [[nodiscard]] bool has(const PlanRow& row) const;  // of a layer: no
  // With what these targets are about, or without it. What no decision moves is left out.
  [[nodiscard]] PinnedRows with(const PlanTree& tree, const PlanTree::Targets& targets,
                                bool pinned) const;
  bool operator==(const PinnedRows&) const = default;
};

// All of the rows chosen; a layer stands for everything in it.
[[nodiscard]] PlanTree::Targets all_targets_of(const PlanTree& tree,
                                               const std::vector<std::int32_t>& chosen);

// What is decided about them, as planner::PlanRequest::pins has it: for a search in the
// micro-batches of this recording. Cost: O(saved + storages).
[[nodiscard]] simulator::Plan rules_of(const TraceData& data, const PlanDecisions& decisions,
                                       const PinnedRows& rows);

}  // namespace stowage::gui
