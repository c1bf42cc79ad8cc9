#include "gui/model/keep_instead.h"

#include <algorithm>

#include "gui/model/name_search.h"
#include "simulator/plan/rule_match.h"
#include "simulator/schedule/tenant_kind.h"

namespace stowage::gui {
namespace {

using Kind = Selection::Kind;

// The one that holds the storage; none.
std::vector<StreamingLayer> layer_with(std::vector<StreamingLayer> layers, StorageId storage) {
  std::erase_if(layers, [&](const StreamingLayer& layer) {
    return std::find(layer.storages.begin(), layer.storages.end(), storage) == layer.storages.end();
  });
  return layers;
}

StayId stay_of(const Simulated& simulated, const Selection& selection) {
  const auto row = static_cast<std::size_t>(std::max(0, selection.row));
  if (selection.kind == Kind::stall && row < simulated.result.stalls.size()) {
    return simulated.result.stalls[row].is_update ? StayId() : simulated.result.stalls[row].stay;
  }
  if (selection.kind == Kind::transfer && row < simulated.detail.transfers.size()) {
    return simulated.detail.transfers[row].stay;
  }
  return {};
}

}  // namespace

KeepInstead keep_instead(const Explained& explained, const Selection& selection) {
  const Simulated& simulated = *explained.simulated;
  const StayId stay = stay_of(simulated, selection);
  if (!stay.valid()) return {};
  KeepInstead made;
  const simulator::Tenant& tenant = simulated.schedule.tenant(stay);
  const Trace& recording = simulated.trace->trace;
  if (tenant.kind == &simulator::kSavedTensor) {
    for (const SavedId of_step : tenant.saved) {
      const Selection row = in_recording(simulated.rows, {Kind::saved, of_step.value});
      if (row.row >= 0) made.saved.emplace_back(row.row);
    }
    if (made.saved.empty()) return {};
    made.name = recording.string(recording.saved.site[made.saved.front().index()]);
    made.then = {Kind::saved, tenant.saved.front().value};
    return made;
  }
  const StorageId storage(in_recording(simulated.rows, {Kind::storage, tenant.storage.value}).row);
  if (!storage.valid()) return {};
  const char* what = "parameters of ";
  if (tenant.kind == &simulator::kParameter) {
    made.parameters = layer_with(streaming_layers_of(recording), storage);
  } else if (tenant.kind == &simulator::kOptimizerState) {
    made.state = layer_with(streaming_state_of(recording), storage);
    what = "optimizer state of ";
  }
  if (made.empty()) return {};
  const StreamingLayer& layer =
      made.parameters.empty() ? made.state.front() : made.parameters.front();
  made.name = what + layer_words(recording, layer.layer);
  made.then = {Kind::storage, tenant.storage.value};
  return made;
}

namespace {

bool decide(PlanDocument& document, const KeepInstead& what) {
  if (!what.saved.empty()) {
    return document.set_decision(what.saved, simulator::Decision::keep);
  }
  if (!what.parameters.empty()) return document.set_streaming(what.parameters, false);
  return !what.state.empty() && document.set_state_place(what.state, simulator::StatePlace::device);
}

}  // namespace

bool keep(PlanDocument& document, const KeepInstead& what) {
  if (!document.can_edit() || what.empty()) return false;
  PinnedRows pins = document.pinned_rows();
  const Trace& trace = document.trace()->trace;
  for (const SavedId row : what.saved) {
    // What is older than the step moves under a policy alone.
    const StorageId storage = trace.saved.storage[row.index()];
    if (!simulator::pre_existing(trace, storage)) pins.saved.insert(row);
  }
  for (const StreamingLayer& layer : what.parameters) pins.parameters.insert(layer.layer);
  for (const StreamingLayer& layer : what.state) pins.state.insert(layer.layer);
  QUndoStack& edits = document.undo_stack();
  edits.beginMacro(QObject::tr("Keep %1 on the device").arg(QString::fromStdString(what.name)));
  const bool changed = decide(document, what);
  document.set_pinned_rows(std::move(pins));
  edits.endMacro();
  return changed;
}

}  // namespace stowage::gui
