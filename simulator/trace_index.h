// TraceIndex: what lowering, replay and search need of a trace again and again, computed once.
// Refers to the trace, which must outlive it. Cost to build: O(trace).
#pragma once

#include <cstdint>
#include <vector>

#include "simulator/parameter_uses.h"
#include "simulator/schedule.h"
#include "traces/result.h"
#include "traces/trace.h"

namespace stowage::simulator {

class TraceIndex {
 public:
  explicit TraceIndex(const Trace& trace);

  [[nodiscard]] const Trace& trace() const { return *trace_; }
  [[nodiscard]] std::size_t event_count() const { return trace_->events.size(); }

  // The anchor at an event, `side` after; only for events that are anchors.
  [[nodiscard]] Anchor anchor_at(EventId event, Side side) const;
  [[nodiscard]] bool is_anchor(EventId event) const { return anchor_ordinal_[event.index()] >= 0; }
  // First anchor event >= event, last anchor event <= event. Always valid: step_begin, step_end.
  [[nodiscard]] EventId next_anchor(EventId event) const { return next_anchor_[event.index()]; }
  [[nodiscard]] EventId previous_anchor(EventId event) const { return prev_anchor_[event.index()]; }
  // All anchor events in order, resident_time() at each, and the row of previous_anchor(event).
  [[nodiscard]] const std::vector<EventId>& anchors() const { return anchors_; }
  [[nodiscard]] const std::vector<Nanoseconds>& anchor_times() const { return anchor_times_; }
  [[nodiscard]] std::size_t anchor_row(EventId event) const { return anchor_row_[event.index()]; }

  // Saved tensors of a storage in pack order, unpacks of a saved tensor in order.
  [[nodiscard]] const std::vector<SavedId>& saved_of(StorageId storage) const;
  [[nodiscard]] const std::vector<UnpackId>& unpacks_of(SavedId saved) const;

  // Work between event e-1 and e: launch thread time without what it waited for the device, and
  // compute work launched there. On a CPU trace the launch time is 0 and all of the gap is compute.
  [[nodiscard]] const std::vector<Nanoseconds>& launch_ns() const { return launch_; }
  [[nodiscard]] const std::vector<Nanoseconds>& compute_ns() const { return compute_; }
  // Begin of event e on the compute stream of the step with nothing moved.
  [[nodiscard]] const std::vector<Nanoseconds>& resident_time() const { return resident_time_; }

  // Requested bytes after each event of the step with nothing moved, and bytes at step begin.
  [[nodiscard]] const std::vector<Bytes>& resident_bytes() const { return resident_bytes_; }
  [[nodiscard]] Bytes bytes_at_begin() const { return bytes_at_begin_; }
  // First `unpack` event of the step; step_end when there is none.
  [[nodiscard]] EventId first_unpack_event() const { return first_unpack_event_; }

  // Change of the requested bytes by each event's own action with nothing moved, and the same for
  // the rounded bytes (the smallest block that can hold each storage). Only storages of device 0
  // count.
  [[nodiscard]] const std::vector<Bytes>& requested_delta() const { return requested_delta_; }
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
  // unpack.
  [[nodiscard]] const std::vector<Nanoseconds>& hooked_launch_ns() const { return hooked_launch_; }
  // How long compute waits for the launch thread in a step that moves nothing, with hooks or not.
  [[nodiscard]] Nanoseconds resident_idle(bool has_hooks) const {
    return (has_hooks ? hooked_resident_ : resident_time_.back()) - compute_until_.back();
  }
  // The launch thread, having reached event e, waits there until compute has done all work up to e.
  [[nodiscard]] bool syncs_at(std::size_t event) const { return sync_[event] != 0; }
  // `op_begin` events of the ops that write into a storage that is saved, in order.
  [[nodiscard]] const std::vector<EventId>& writes_of(StorageId storage) const;
  // What touches the parameters, and which of them cannot stream.
  [[nodiscard]] const ParameterUses& parameter_uses() const { return parameter_uses_; }
  // The outermost ops in recorded order: the rows of every schedule that repeats no op.
  [[nodiscard]] const std::vector<ScheduleRow>& rows() const { return rows_; }

 private:
  const Trace* trace_;
  std::vector<std::int32_t> anchor_ordinal_;
  std::vector<EventId> next_anchor_;
  std::vector<EventId> prev_anchor_;
  std::vector<EventId> anchors_;
  std::vector<Nanoseconds> anchor_times_;
  std::vector<std::uint32_t> anchor_row_;
  std::vector<std::vector<SavedId>> saved_of_;
  std::vector<std::vector<UnpackId>> unpacks_of_;
  std::vector<Nanoseconds> launch_;
  std::vector<Nanoseconds> hooked_launch_;
  std::vector<std::uint8_t> sync_;
  std::vector<Nanoseconds> compute_;
  std::vector<Nanoseconds> resident_time_;
  Nanoseconds hooked_resident_ = 0;  // the step's time with hooks
  std::vector<Bytes> resident_bytes_;
  Bytes bytes_at_begin_ = 0;
  EventId first_unpack_event_;
  std::vector<Bytes> requested_delta_;
  std::vector<Bytes> rounded_bytes_;
  std::vector<Bytes> rounded_delta_;
  Bytes rounded_bytes_at_begin_ = 0;
  bool rounds_ = false;
  std::vector<Nanoseconds> compute_until_;
  bool has_launch_ = false;
  std::vector<std::vector<EventId>> writes_of_;
  std::vector<ScheduleRow> rows_;
  ParameterUses parameter_uses_;

  void index_anchors();
  void index_saved();
  void index_work();
  void index_bytes();
  void index_writes();
  void index_rows();
};

}  // namespace stowage::simulator
