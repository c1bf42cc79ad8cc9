#include "gui/model/pinned_rows.h"

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "simulator/plan/pattern_text.h"
#include "simulator/step/segment_rule_writer.h"
#include "simulator/step/unroll.h"

namespace stowage::gui {
namespace {

using simulator::Decision;
using simulator::StatePlace;
using simulator::StreamMode;

std::string exactly(const std::string& name) {
  return simulator::as_pattern(name, simulator::Spelling::exact);
}

std::string exact_layer(const Trace& trace, LayerId layer) {
  return exactly(trace.string(trace.layers.name[layer.index()]));
}

void add_saved(const Trace& trace, const PlanDecisions& decisions, const std::set<SavedId>& rows,
               simulator::Plan& plan) {
  simulator::Structure again;
  for (const SavedId row : rows) {
    if (const std::int32_t segment = decisions.segment(row); segment >= 0) {
      const std::string& name = decisions.segments[static_cast<std::size_t>(segment)];
      std::vector<std::string>& known = again.recompute;
      if (std::find(known.begin(), known.end(), name) == known.end()) known.push_back(name);
      continue;
    }
    const simulator::SavedDecision& decision = decisions.saved[row.index()];
    simulator::SavedRule& rule = plan.saved.emplace_back();
    rule.site = exactly(trace.string(trace.saved.site[row.index()]));
    rule.decision = decision.decision;
    if (rule.decision != Decision::offload) continue;
    rule.release = decision.release;
    rule.reload = decision.reload;
    rule.copy_out = decision.copy_out;
    rule.copy_in = decision.copy_in;
    rule.share = decision.share;
  }
  plan.recompute = simulator::recompute_rules(trace, again);
}

void add_parameters(const Trace& trace, const PlanDecisions& decisions,
                    const std::set<LayerId>& rows, simulator::Plan& plan) {
  if (rows.empty()) return;
  std::vector<StreamMode> modes;
  plan.parameters.emplace();
  for (const StreamingLayer& layer : streaming_layers_of(trace)) {
    if (rows.count(layer.layer) == 0) continue;
    StreamMode mode = StreamMode::off;
    for (const StorageId storage : layer.storages) {
      if (mode == StreamMode::off) mode = decisions.parameters.mode_of(storage);
    }
    plan.parameters->shards.push_back({exact_layer(trace, layer.layer)});
    modes.push_back(mode);
  }
  if (!modes.empty()) plan.parameters->stream = simulator::StreamModes(std::move(modes));
}

template <class Id>
void put(std::set<Id>& rows, Id row, bool pinned) {
  pinned ? static_cast<void>(rows.insert(row)) : static_cast<void>(rows.erase(row));
}

}  // namespace

bool PinnedRows::has(const PlanRow& row) const {
  switch (row.kind) {
    case PlanRowKind::layer:
      return false;
    case PlanRowKind::saved:
      return saved.count(row.saved) > 0;
    case PlanRowKind::parameters:
      return parameters.count(row.layer) > 0;
    case PlanRowKind::optimizer_state:
      return state.count(row.layer) > 0;
  }
  return false;
}

PinnedRows PinnedRows::with(const PlanTree& tree, const PlanTree::Targets& targets,
                            bool pinned) const {
  PinnedRows changed = *this;
  for (const SavedId row : targets.saved) {
    if (tree.can_move(row)) put(changed.saved, row, pinned);
  }
  for (const StreamingLayer& layer : targets.parameters) {
    put(changed.parameters, layer.layer, pinned);
  }
  for (const StreamingLayer& layer : targets.state) put(changed.state, layer.layer, pinned);
  return changed;
}

PlanTree::Targets all_targets_of(const PlanTree& tree, const std::vector<std::int32_t>& chosen) {
  PlanTree::Targets all = tree.targets_of(chosen, PlanRowKind::saved);
  all.parameters = tree.targets_of(chosen, PlanRowKind::parameters).parameters;
  all.state = tree.targets_of(chosen, PlanRowKind::optimizer_state).state;
  return all;
}

simulator::Plan rules_of(const TraceData& data, const PlanDecisions& decisions,
                         const PinnedRows& rows) {
  simulator::Plan plan;
  if (rows.empty()) return plan;
  const Trace& trace = data.trace;
  add_saved(trace, decisions, rows.saved, plan);
  add_parameters(trace, decisions, rows.parameters, plan);
  for (const StreamingLayer& layer : streaming_state_of(trace)) {
    if (rows.state.count(layer.layer) == 0) continue;
    plan.optimizer.push_back({exact_layer(trace, layer.layer), state_place(decisions, layer)});
  }
  for (const simulator::Structure::Parts& parts : simulator::recorded_parts(trace)) {
    plan.micro_batches.push_back({parts.segment, parts.parts});
  }
  // The step at once, where there are others.
  if (plan.micro_batches.empty() && !trace.divided.empty()) {
    const auto others = simulator::recorded_parts(*trace.divided.front());
    if (!others.empty()) plan.micro_batches.push_back({others.front().segment, 1});
  }
  return plan;
}

}  // namespace stowage::gui
