#include "simulator/lowering/point_events.h"

#include <algorithm>

namespace stowage::simulator {
namespace {

PhaseKind phase_kind(ProgramPoint::Phase phase) {
  switch (phase) {
    case ProgramPoint::Phase::forward:
      return PhaseKind::forward;
    case ProgramPoint::Phase::backward:
      return PhaseKind::backward;
    case ProgramPoint::Phase::optimizer:
      return PhaseKind::optimizer;
  }
  return PhaseKind::forward;
}

EventKind layer_event_kind(const ProgramPoint& point) {
  const bool forward = point.phase == ProgramPoint::Phase::forward;
  if (point.where == ProgramPoint::Where::begin) {
    return forward ? EventKind::layer_forward_begin : EventKind::layer_backward_begin;
  }
  return forward ? EventKind::layer_forward_end : EventKind::layer_backward_end;
}

std::string text_of(const ProgramPoint& point) {
  static constexpr const char* kPhase[] = {"fwd", "bwd", "opt"};
  std::string text = kPhase[static_cast<int>(point.phase)];
  text += ":" + point.layer + ":";
  if (point.where == ProgramPoint::Where::op) return text + std::to_string(point.op);
  return text + (point.where == ProgramPoint::Where::begin ? "begin" : "end");
}

Error bad_point(const ProgramPoint& point, const std::string& why) {
  return {ErrorCode::bad_input, "program point " + text_of(point) + ": " + why, "", "", ""};
}

}  // namespace

Result<std::vector<EventId>> PointEvents::find(const ProgramPoint& point) {
  const Key key{point.phase, point.layer, point.where, point.op};
  if (!point.relative) {
    if (const auto known = found_.find(key); known != found_.end()) return known->second;
  }
  auto events = look_up(point);
  if (events) found_.emplace(key, *events);
  return events;
}

Result<std::vector<EventId>> PointEvents::look_up(const ProgramPoint& point) const {
  if (point.relative) return bad_point(point, "a relative point was not resolved");
  std::vector<EventId> events;
  const bool whole_phase =
      point.phase == ProgramPoint::Phase::optimizer && point.where != ProgramPoint::Where::op;
  if (whole_phase) {
    events = phase_events(point);
  } else {
    LayerId layer;
    for (std::size_t l = 0; l < trace_.layers.size(); ++l) {
      if (trace_.string(trace_.layers.name[l]) == point.layer) layer = LayerId(l);
    }
    if (!layer.valid()) return bad_point(point, "the trace has no layer \"" + point.layer + "\"");
    events = point.where == ProgramPoint::Where::op ? op_events(point, layer)
                                                    : layer_events(point, layer);
  }
  if (events.empty()) return bad_point(point, "no such event in the recorded step");
  return events;
}

std::vector<EventId> PointEvents::phase_events(const ProgramPoint& point) const {
  std::vector<EventId> events;
  for (std::size_t p = 0; p < trace_.phases.size(); ++p) {
    if (trace_.phases.kind[p] != phase_kind(point.phase)) continue;
    events.push_back(point.where == ProgramPoint::Where::begin ? trace_.phases.first_event[p]
                                                               : trace_.phases.last_event[p]);
  }
  return events;
}

std::vector<EventId> PointEvents::layer_events(const ProgramPoint& point, LayerId layer) const {
  std::vector<EventId> events;
  const EventKind kind = layer_event_kind(point);
  for (std::size_t e = 0; e < trace_.events.size(); ++e) {
    if (trace_.events.kind[e] == kind && trace_.events.ref[e] == layer.value) {
      events.emplace_back(e);
    }
  }
  return events;
}

std::vector<EventId> PointEvents::op_events(const ProgramPoint& point, LayerId layer) const {
  std::int32_t count = 0;
  for (std::size_t e = 0; e < trace_.events.size(); ++e) {
    if (trace_.events.kind[e] != EventKind::op_begin) continue;
    const auto op = static_cast<std::size_t>(trace_.events.ref[e]);
    const PhaseId phase = trace_.ops.phase[op];
    if (trace_.ops.parent[op].valid() || trace_.ops.layer[op] != layer || !phase.valid() ||
        trace_.phases.kind[phase.index()] != phase_kind(point.phase)) {
      continue;
    }
    if (count++ == point.op) return {EventId(e)};
  }
  return {};
}

}  // namespace stowage::simulator
