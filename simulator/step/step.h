// Step: what one training step does under a structure: the tables of a Trace, and of each event,
// op, storage and saved tensor where it was recorded, its micro-batch and its pass. Index,
// lowering, hazards, replay and executor work on a Step; none of them reads the recording for
// anything but names and times.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "traces/trace.h"

namespace stowage::simulator {

enum class Pass : std::uint8_t { forward, backward, recompute, optimizer };
[[nodiscard]] const char* name_of(Pass value);

// Name of the source of what the executor itself adds: accumulating, slicing, scaling.
inline constexpr const char* kStowage = "stowage";

// A row of a step is this row of that recorded pass.
template <class IdT>
struct Origin {
  std::int32_t source = 0;  // of the step's sources; 0 = the recording
  IdT row;
  bool operator==(const Origin&) const = default;
};

struct ComposedStep;    // simulator/step/composed_step.h
struct RecomputedStep;  // simulator/step/recomputed_step.h
struct SegmentRows;

// A value that refers to its tables; cheap to copy.
class Step {
 public:
  // The step as it was recorded: `recording` itself, not a copy; it must outlive the step.
  explicit Step(const Trace& recording) : recording_(&recording), tables_(&recording) {}
  // `recording` must outlive the step; what else it needs is shared.
  Step(const Trace& recording, std::shared_ptr<const ComposedStep> composed);
  Step(const Trace& recording, std::shared_ptr<const RecomputedStep> recomputed);
  // The same with other segments that run again: of a step that was made of one where that does,
  // with the same rows.
  [[nodiscard]] Step with_segments(std::vector<SegmentRows> segments) const;
  // `base` without the updates of these parameters of its recording. `composed` is of its tables.
  Step(const Step& base, std::shared_ptr<const ComposedStep> composed,
       std::vector<StorageId> host_updates);

  [[nodiscard]] const Trace& trace() const { return *tables_; }
  [[nodiscard]] const Trace& recording() const { return *recording_; }
  [[nodiscard]] bool is_recording() const { return tables_ == recording_; }
  // Its segments that run again, in order of their begin in forward.
  [[nodiscard]] const std::vector<SegmentRows>& segments() const;
  // A saved tensor that a segment gives up in forward, or that it saves when it runs again: it has
  // an owner, and nobody else moves it.
  [[nodiscard]] bool is_of_segment(SavedId saved) const;

  // The same where every gradient that the step makes ahead of this event is used there once more:
  // ranks have reduced them until then. An index made of it keeps them on the device so long.
  [[nodiscard]] Step with_gradients_reduced_at(EventId event) const;
  [[nodiscard]] EventId gradients_reduced_at() const { return gradients_reduced_at_; }

  // Parameters of the recording that the host updates (Structure::host_updates).
  [[nodiscard]] const std::vector<StorageId>& host_updates() const { return host_updates_; }

  // Passes that rows come from. Source 0 is the recording, named "step".
  [[nodiscard]] std::size_t source_count() const;
  [[nodiscard]] const Trace& source(std::int32_t source) const;
  [[nodiscard]] const std::string& source_name(std::int32_t source) const;

  // Of an event, op, storage or saved tensor; none where a segment's begin or end made it. What
  // exists before the step has no micro-batch (-1)
  // and counts as forward. Cost: O(log of the phases or pieces).
  [[nodiscard]] Origin<EventId> origin(EventId event) const;
  [[nodiscard]] Origin<OpId> origin(OpId op) const;
  [[nodiscard]] Origin<StorageId> origin(StorageId storage) const;
  [[nodiscard]] Origin<SavedId> origin(SavedId saved) const;
  template <class IdT>
  [[nodiscard]] std::int32_t micro_batch(IdT row) const {
    return micro_batch_at(event_of(row));
  }
  template <class IdT>
  [[nodiscard]] Pass pass(IdT row) const {
    return pass_at(event_of(row));
  }

 private:
  // A row of what composed_ is of, where it is no recording.
  template <class IdT>
  [[nodiscard]] Origin<IdT> behind(Origin<IdT> origin) const {
    return base_ && origin.row.valid() ? base_->origin(origin.row) : origin;
  }
  [[nodiscard]] EventId event_of(EventId event) const { return event; }
  [[nodiscard]] EventId event_of(OpId op) const;
  [[nodiscard]] EventId event_of(StorageId storage) const;
  [[nodiscard]] EventId event_of(SavedId saved) const;
  [[nodiscard]] std::int32_t micro_batch_at(EventId event) const;
  [[nodiscard]] Pass pass_at(EventId event) const;

  const Trace* recording_;
  const Trace* tables_;
  std::shared_ptr<const ComposedStep> composed_;
  std::shared_ptr<const RecomputedStep> recomputed_;
  std::shared_ptr<const std::vector<SegmentRows>> segments_;  // where not those of recomputed_
  std::shared_ptr<const Step> base_;  // whose tables composed_ is of; null: the recording's
  std::vector<StorageId> host_updates_;
  EventId gradients_reduced_at_;  // -1 = by nobody
};

}  // namespace stowage::simulator
