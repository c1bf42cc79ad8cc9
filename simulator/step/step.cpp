#include "simulator/step/step.h"

#include <algorithm>
#include <utility>

#include "simulator/step/composed_step.h"
#include "simulator/step/recomputed_step.h"
#include "simulator/step/step_holds.h"
#include "traces/result.h"

namespace stowage::simulator {
namespace {

// Of an event of a trace; none where it has no phases.
PhaseId phase_at(const Phases& phases, EventId event) {
  const auto behind = std::upper_bound(phases.first_event.begin(), phases.first_event.end(), event);
  return PhaseId(static_cast<std::int32_t>(behind - phases.first_event.begin()) - 1);
}

// What a row of the step is in its source.
template <class IdT>
Origin<IdT> origin_of_row(const StepLayout& layout, RowTable table, IdT row) {
  const Placement& placement = layout.at(table, row.value);
  const std::size_t t = index_of(table);
  const std::int32_t position = placement.from[t] + row.value - placement.to[t];
  return {layout.groups()[static_cast<std::size_t>(placement.group)].source,
          IdT(layout.source_of(placement).rows->row(table, position))};
}

}  // namespace

const char* name_of(Pass value) {
  switch (value) {
    case Pass::forward:
      return "forward";
    case Pass::backward:
      return "backward";
    case Pass::recompute:
      return "recompute";
    case Pass::optimizer:
      return "optimizer";
  }
  return "?";
}

Step::Step(const Trace& recording, std::shared_ptr<const ComposedStep> composed)
    : recording_(&recording), tables_(&composed->trace), composed_(std::move(composed)) {}

Step::Step(const Trace& recording, std::shared_ptr<const RecomputedStep> recomputed)
    : recording_(&recording), tables_(&recomputed->trace), recomputed_(std::move(recomputed)) {}

Step Step::with_segments(std::vector<SegmentRows> segments) const {
  Step step = *this;
  step.segments_ = std::make_shared<const std::vector<SegmentRows>>(std::move(segments));
  return step;
}

Step Step::with_gradients_reduced_at(EventId event) const {
  Step step = *this;
  step.gradients_reduced_at_ = event;
  return step;
}

Step::Step(const Step& base, std::shared_ptr<const ComposedStep> composed,
           std::vector<StorageId> host_updates)
    : recording_(base.recording_),
      tables_(&composed->trace),
      composed_(std::move(composed)),
      segments_(std::make_shared<const std::vector<SegmentRows>>(base.segments())),
      base_(std::make_shared<const Step>(base)),
      host_updates_(std::move(host_updates)) {}

const std::vector<SegmentRows>& Step::segments() const {
  static const std::vector<SegmentRows> none;
  if (segments_) return *segments_;
  return recomputed_ ? recomputed_->segments : none;
}

bool Step::is_of_segment(SavedId saved) const {
  const std::vector<SegmentRows>& all = segments();
  return std::any_of(all.begin(), all.end(), [&](const SegmentRows& each) {
    return std::binary_search(each.saved.begin(), each.saved.end(), saved) ||
           std::binary_search(each.again.begin(), each.again.end(), saved);
  });
}

std::size_t Step::source_count() const {
  if (base_) return base_->source_count();
  return composed_ ? composed_->layout.sources().size() : 1;
}

const Trace& Step::source(std::int32_t source) const {
  if (base_) return base_->source(source);
  if (!composed_) return *recording_;
  return *composed_->layout.sources()[static_cast<std::size_t>(source)].trace;
}

const std::string& Step::source_name(std::int32_t source) const {
  static const std::string recorded = "step";
  if (base_) return base_->source_name(source);
  if (!composed_) return recorded;
  return composed_->layout.sources()[static_cast<std::size_t>(source)].name;
}

Origin<EventId> Step::origin(EventId event) const {
  if (recomputed_) return {0, recomputed_->origins.events[event.index()]};
  if (!composed_) return {0, event};
  const Placement& placement = composed_->layout.at(event);
  return behind(
      Origin<EventId>{composed_->layout.groups()[static_cast<std::size_t>(placement.group)].source,
                      EventId(placement.first.value + event.value - placement.at.value)});
}

Origin<OpId> Step::origin(OpId op) const {
  if (recomputed_) return {0, recomputed_->origins.ops[op.index()]};
  if (!composed_) return {0, op};
  return behind(origin_of_row(composed_->layout, RowTable::ops, op));
}

Origin<StorageId> Step::origin(StorageId storage) const {
  if (recomputed_) return {0, recomputed_->origins.storages[storage.index()]};
  return composed_ ? behind(origin_of(composed_->layout, storage)) : Origin<StorageId>{0, storage};
}

Origin<SavedId> Step::origin(SavedId saved) const {
  if (recomputed_) return {0, recomputed_->origins.saved[saved.index()]};
  if (!composed_) return {0, saved};
  return behind(origin_of_row(composed_->layout, RowTable::saved, saved));
}

// An event of the op's pass and micro-batch: its first where the step is composed.
EventId Step::event_of(OpId op) const {
  if (!composed_) {
    const PhaseId phase = tables_->ops.phase[op.index()];
    return phase.valid() ? tables_->phases.first_event[phase.index()] : EventId();
  }
  const Placement& placement = composed_->layout.at(RowTable::ops, op.value);
  const OpId there = origin_of_row(composed_->layout, RowTable::ops, op).row;
  const EventId home =
      composed_->layout.source_of(placement).rows->home(RowTable::ops, there.index());
  return EventId(placement.at.value + home.value - placement.first.value);
}

EventId Step::event_of(StorageId storage) const {
  return tables_->storages.alloc_event[storage.index()];
}

EventId Step::event_of(SavedId saved) const {
  return tables_->saved.event[saved.index()];
}

std::int32_t Step::micro_batch_at(EventId event) const {
  const PhaseId phase = event.valid() ? phase_at(tables_->phases, event) : PhaseId();
  return phase.valid() ? tables_->phases.micro_batch[phase.index()] : -1;
}

Pass Step::pass_at(EventId event) const {
  if (!event.valid()) return Pass::forward;
  if (composed_) {
    const Placement& placement = composed_->layout.at(event);
    if (placement.pass) return *placement.pass;
    if (base_)
      return base_->pass(EventId(placement.first.value + event.value - placement.at.value));
  }
  const PhaseId phase = phase_at(tables_->phases, event);
  if (!phase.valid()) return Pass::forward;
  switch (tables_->phases.kind[phase.index()]) {
    case PhaseKind::backward:
      return Pass::backward;
    case PhaseKind::optimizer:
      return Pass::optimizer;
    case PhaseKind::recompute:
      return Pass::recompute;
    default:
      return Pass::forward;
  }
}

}  // namespace stowage::simulator
