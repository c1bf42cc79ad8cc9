// StepIndex: what lowering, replay and search need of a step again and again, computed once.
// Refers to the step's tables: a recording must outlive it, a composed step is shared. Cost to
// build: O(step). 28 bytes an event without a launch thread, 53 with one: what is a difference or a
// look-up away is not kept.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "simulator/step/anchor.h"
#include "simulator/step/grouped.h"
#include "simulator/step/model_state_uses.h"
#include "simulator/step/step.h"
#include "traces/result.h"
#include "traces/trace.h"

namespace stowage::simulator {

class StepIndex {
 public:
  explicit StepIndex(const Step& step);
  // Of the step as it was recorded.
  explicit StepIndex(const Trace& recording) : StepIndex(Step(recording)) {}

  [[nodiscard]] const Step& step() const { return step_; }
  // The step's tables, which are the recording's own only where there is no structure. Nothing
  // behind unroll() reads the recording itself (step().recording()) for anything but names and
  // times.
  [[nodiscard]] const Trace& trace() const { return *trace_; }
  [[nodiscard]] std::size_t event_count() const { return trace_->events.size(); }

  // The anchor at an event, `side` after; only for events that are anchors.
  [[nodiscard]] Anchor anchor_at(EventId event, Side side) const;
  [[nodiscard]] bool is_anchor(EventId event) const;
  // Of the anchors that a lowering chooses among (is_chosen_freely()), as all that follow: the
  // first event >= event, the last event <= event. Always valid: step_begin, step_end.
  [[nodiscard]] EventId next_anchor(EventId event) const {
    const std::size_t row = anchor_row(event);
    return anchors_[row] == event ? event : anchors_[row + 1];
  }
  [[nodiscard]] EventId previous_anchor(EventId event) const { return anchors_[anchor_row(event)]; }
  // Their events in order, resident_time() at each, and the row of previous_anchor(event).
  [[nodiscard]] const std::vector<EventId>& anchors() const { return anchors_; }
  [[nodiscard]] const std::vector<Nanoseconds>& anchor_times() const { return anchor_times_; }
  [[nodiscard]] std::size_t anchor_row(EventId event) const { return anchor_row_[event.index()]; }

  // It belongs to a segment that runs again (Step::is_of_segment()): no decision is about it.
  [[nodiscard]] bool is_of_segment(SavedId saved) const {
    return !of_segment_.empty() && of_segment_[saved.index()];
  }
  // By saved tensor; empty: none is.
  [[nodiscard]] const std::vector<bool>& of_segment() const { return of_segment_; }
  // Saved tensors of a storage in pack order, without those of segments; unpacks of a saved tensor
  // in order.
  [[nodiscard]] std::span<const SavedId> saved_of(StorageId storage) const {
    return saved_of_[storage.index()];
  }
  [[nodiscard]] std::span<const UnpackId> unpacks_of(SavedId saved) const {
    return unpacks_of_[saved.index()];
  }

  // Work between event e-1 and e: launch thread time without what it waited for the device, and
  // compute work launched there. On a CPU trace the launch time is 0 (launch_ns() is empty) and all
  // of the gap is compute.
  [[nodiscard]] const std::vector<Nanoseconds>& launch_ns() const { return launch_; }
  [[nodiscard]] Nanoseconds compute_ns(std::size_t event) const {
    return compute_until_[event] - (event > 0 ? compute_until_[event - 1] : 0);
  }
  // Begin of event e on the compute stream of the step with nothing moved.
  [[nodiscard]] const std::vector<Nanoseconds>& resident_time() const {
    return has_launch_ ? resident_time_ : compute_until_;
  }

  // Requested bytes after each event of the step with nothing moved, and bytes at step begin.
  [[nodiscard]] const std::vector<Bytes>& resident_bytes() const { return resident_bytes_; }
  [[nodiscard]] Bytes bytes_at_begin() const { return bytes_at_begin_; }
  // First `unpack` event of the step; step_end when there is none.
  [[nodiscard]] EventId first_unpack_event() const { return first_unpack_event_; }

  // Change of the requested bytes by each event's own action with nothing moved, and the same for
  // the rounded bytes (the smallest block that can hold each storage; only while rounds()). Only
  // storages of device 0 count. O(events).
  [[nodiscard]] std::vector<Bytes> requested_delta() const;
  [[nodiscard]] const std::vector<Bytes>& rounded_delta() const { return rounded_delta_; }
  [[nodiscard]] Bytes rounded_bytes_at_begin() const { return rounded_bytes_at_begin_; }
  [[nodiscard]] const std::vector<Bytes>& rounded_bytes() const { return rounded_bytes_; }
  // The device's allocator hands out blocks: the trace has a setup, or blocks larger than requests.
  [[nodiscard]] bool rounds() const { return rounds_; }
  // compute_ns() summed up to and including event e.
  [[nodiscard]] const std::vector<Nanoseconds>& compute_until() const { return compute_until_; }
  // There is a launch thread beside compute: the trace has device times.
  [[nodiscard]] bool has_launch() const { return has_launch_; }
  // launch_ns() of a step that runs with hooks: Calibration::hook_ns more ahead of each pack and
  // unpack. Empty without a launch thread.
  [[nodiscard]] const std::vector<Nanoseconds>& hooked_launch_ns() const { return hooked_launch_; }
  // How long compute waits for the launch thread in a step that moves nothing, with hooks or not.
  [[nodiscard]] Nanoseconds resident_idle(bool has_hooks) const {
    return (has_hooks ? hooked_resident_ : resident_time().back()) - compute_until_.back();
  }
  // The launch thread, having reached event e, waits there until compute has done all work up to e.
  [[nodiscard]] bool syncs_at(std::size_t event) const { return has_launch_ && sync_[event] != 0; }
  // `op_begin` events of the ops that write into a storage that is saved, in order.
  [[nodiscard]] std::span<const EventId> writes_of(StorageId storage) const {
    return writes_of_[storage.index()];
  }
  // What touches the model state, and what of it cannot stream.
  [[nodiscard]] const ModelStateUses& model_state_uses() const { return model_state_uses_; }

 private:
  Step step_;
  const Trace* trace_;                        // step_.trace()
  std::vector<std::int32_t> anchor_ordinal_;  // by row of anchors_
  std::vector<EventId> anchors_;
  std::vector<EventId> gradient_anchors_;  // the others
  std::vector<Nanoseconds> anchor_times_;
  std::vector<std::uint32_t> anchor_row_;
  std::vector<bool> of_segment_;  // by saved tensor; empty = none is
  Grouped<SavedId> saved_of_;
  Grouped<UnpackId> unpacks_of_;
  std::vector<Nanoseconds> launch_;
  std::vector<Nanoseconds> hooked_launch_;
  std::vector<std::uint8_t> sync_;
  std::vector<Nanoseconds> resident_time_;  // with a launch thread; else compute_until_
  Nanoseconds hooked_resident_ = 0;         // the step's time with hooks
  std::vector<Bytes> resident_bytes_;
  Bytes bytes_at_begin_ = 0;
  EventId first_unpack_event_;
  std::vector<Bytes> rounded_bytes_;
  std::vector<Bytes> rounded_delta_;
  Bytes rounded_bytes_at_begin_ = 0;
  bool rounds_ = false;
  std::vector<Nanoseconds> compute_until_;
  bool has_launch_ = false;
  Grouped<EventId> writes_of_;
  ModelStateUses model_state_uses_;

  void index_anchors();
  void index_saved();
  void index_work();
  void index_launches(const std::vector<Nanoseconds>& compute);
  void index_bytes();
  void index_writes();
};

}  // namespace stowage::simulator
