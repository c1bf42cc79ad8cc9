#include "gui/model/plan_decisions.h"

#include <algorithm>

#include "simulator/step/device_updates.h"
#include "simulator/step/plan_structure.h"
#include "simulator/step/segment_row.h"
#include "simulator/step/unroll.h"

namespace stowage::gui {

using simulator::Decision;
using simulator::Decisions;
using simulator::StepIndex;

namespace {

constexpr std::int32_t kResident = -1;  // of ParameterDecisions::shard_of

// A column by storage of the recording as one of the step's storages; `none` stands at what was not
// there in the recording. Empty columns stay empty, here and below.
template <class Value>
std::vector<Value> column_in_step(const StepIndex& index, const std::vector<Value>& column,
                                  Value none) {
  if (column.empty()) return {};
  std::vector<Value> made(index.trace().storages.size(), none);
  for (std::size_t i = 0; i < made.size(); ++i) {
    const StorageId from = index.step().origin(StorageId(i)).row;
    if (from.valid()) made[i] = column[from.index()];
  }
  return made;
}

// The other way. Of a storage that is there several times, what is not `none` counts.
template <class Value>
std::vector<Value> column_in_recording(const StepIndex& index, const std::vector<Value>& column,
                                       Value none) {
  if (column.empty()) return {};
  std::vector<Value> made(index.step().recording().storages.size(), none);
  for (std::size_t i = 0; i < column.size(); ++i) {
    const StorageId from = index.step().origin(StorageId(i)).row;
    if (from.valid() && column[i] != none) made[from.index()] = column[i];
  }
  return made;
}

}  // namespace

std::vector<std::int32_t> segments_of_saved(const Trace& recording, const LayerCalls& calls,
                                            const std::vector<std::string>& segments) {
  if (segments.empty()) return {};
  std::vector<std::int32_t> of(recording.saved.size(), -1);
  for (std::size_t s = 0; s < segments.size(); ++s) {
    for (const auto& call : simulator::calls_in(calls, segments[s])) {
      for (std::size_t i = 0; i < of.size(); ++i) {
        const EventId pack = recording.saved.event[i];
        if (call.first <= pack && pack < call.end) of[i] = static_cast<std::int32_t>(s);
      }
    }
  }
  return of;
}

simulator::Structure structure_of(const Trace& recording, const PlanDecisions& decisions) {
  simulator::Structure structure;
  structure.parts = simulator::recorded_parts(recording);
  structure.recompute = decisions.segments;
  for (std::size_t i = 0; i < decisions.saved.size(); ++i) {
    if (!decisions.saved_is(SavedId(i), Decision::recompute)) continue;
    structure.ops.push_back(recording.string(recording.saved.site[i]));
  }
  structure.host_updates = simulator::host_updates(recording, decisions.optimizer.updated_on_host);
  return structure;
}

Decisions in_step(const StepIndex& index, const PlanDecisions& decisions) {
  if (index.step().is_recording()) return decisions;
  const Trace& trace = index.trace();
  Decisions made;
  made.budget = decisions.budget;
  made.saved.resize(trace.saved.size());
  for (std::size_t i = 0; i < made.saved.size(); ++i) {
    if (index.is_of_segment(SavedId(i))) continue;
    if (const SavedId from = index.step().origin(SavedId(i)).row; from.valid()) {
      made.saved[i] = decisions.saved[from.index()];
      continue;
    }
    const auto input = decisions.inputs.find(trace.string(trace.saved.site[i]));
    if (input != decisions.inputs.end()) made.saved[i] = input->second;
  }
  made.parameters = decisions.parameters;
  made.parameters.shard_of = column_in_step(index, decisions.parameters.shard_of, kResident);
  made.optimizer.state_streams = column_in_step(index, decisions.optimizer.state_streams, false);
  made.optimizer.updated_on_host =
      column_in_step(index, decisions.optimizer.updated_on_host, false);
  made.gradients.at_home = column_in_step(index, decisions.gradients.at_home, false);
  return made;
}

PlanDecisions in_recording(const StepIndex& index, const LayerCalls& calls,
                           const Decisions& decisions) {
  PlanDecisions made;
  if (index.step().is_recording()) {
    static_cast<Decisions&>(made) = decisions;
    return made;
  }
  const Trace& recording = index.step().recording();
  const Trace& trace = index.trace();
  made.budget = decisions.budget;
  made.saved.resize(recording.saved.size());
  for (std::size_t i = 0; i < decisions.saved.size(); ++i) {
    if (index.is_of_segment(SavedId(i))) continue;
    if (const SavedId from = index.step().origin(SavedId(i)).row; from.valid()) {
      made.saved[from.index()] = decisions.saved[i];
    } else if (decisions.saved[i].decision != Decision::keep) {
      made.inputs[trace.string(trace.saved.site[i])] = decisions.saved[i];
    }
  }
  const simulator::Structure structure = simulator::structure_of(index.step());
  made.segments = structure.recompute;
  made.segment_of = segments_of_saved(recording, calls, made.segments);
  std::vector<std::string> by_ops = structure.ops;
  std::sort(by_ops.begin(), by_ops.end());
  for (std::size_t i = 0; i < made.saved.size() && !by_ops.empty(); ++i) {
    const std::string& site = recording.string(recording.saved.site[i]);
    if (!std::binary_search(by_ops.begin(), by_ops.end(), site)) continue;
    made.saved[i] = {};
    made.saved[i].decision = Decision::recompute;
  }
  made.parameters = decisions.parameters;
  made.parameters.shard_of = column_in_recording(index, decisions.parameters.shard_of, kResident);
  made.optimizer.state_streams =
      column_in_recording(index, decisions.optimizer.state_streams, false);
  made.optimizer.updated_on_host =
      column_in_recording(index, decisions.optimizer.updated_on_host, false);
  made.gradients.at_home = column_in_recording(index, decisions.gradients.at_home, false);
  return made;
}

}  // namespace stowage::gui
