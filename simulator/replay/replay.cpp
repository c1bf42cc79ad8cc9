#include "simulator/replay/replay.h"

#include <algorithm>
#include <limits>
#include <utility>

#include "simulator/allocator/allocator_replay.h"
#include "simulator/machine/host_lane.h"
#include "simulator/machine/launch_pace.h"
#include "simulator/machine/link_model.h"
#include "simulator/placement/planned_memory.h"
#include "simulator/replay/copy_lanes.h"
#include "simulator/replay/memory_replay.h"
#include "simulator/schedule/host_updates.h"
#include "traces/result.h"
#include "traces/units.h"

namespace stowage::simulator {
namespace {

// The time half: compute goes from one event with instructions to the next.
class TimeReplay {
 public:
  TimeReplay(const StepIndex& index, const Schedule& schedule, ReplayResult& result,
             ReplayDetail* detail, OutsideWait wait)
      : index_(index),
        schedule_(schedule),
        link_(index.trace().calibration),
        lanes_(link_),
        pace_(link_),
        result_(result),
        detail_(detail),
        wait_(wait),
        launch_(schedule.has_hooks ? index.hooked_launch_ns() : index.launch_ns()),
        updates_(host_updates(index.trace(), schedule)),
        update_of_(schedule.tenants.size(), kNoJob),
        load_(schedule.stays.size(), kNoJob),
        store_(schedule.stays.size(), kNoJob) {
    if (detail_ != nullptr) {
      detail_->time.assign(index.event_count(), 0);
      detail_->launch.assign(index.has_launch() ? index.event_count() : 0, 0);
      detail_->transfers.clear();
      detail_->host_updates.clear();
    }
  }

  void run() {
    const auto& instructions = schedule_.instructions;
    for (std::size_t i = 0; i < instructions.size(); ++i) {
      const Anchor& at = instructions[i].anchor;
      if (at.event > wait_.event || (at.event == wait_.event && at.side == Side::after)) {
        wait_outside();
      }
      run_to(at.event.index());
      execute(instructions[i]);
    }
    wait_outside();
    run_to(index_.event_count() - 1);
    finish_updates();
    finish_copies();
    STOWAGE_ASSERT(lanes_.idle());
    result_.step_ns = lanes_.now();
    if (detail_ != nullptr) collect_transfers();
  }

 private:
  static constexpr std::size_t kNoJob = std::numeric_limits<std::size_t>::max();

  // Compute reaches event `last`, not ahead of the launch thread. One piece of compute work lies
  // between two events with instructions; with a launch thread it also ends where compute at full
  // speed would have run out of launched work.
  void run_to(std::size_t last) {
    if (next_event_ > last) return;
    if (!index_.has_launch()) {
      const Nanoseconds until = index_.compute_until()[last];
      run_piece(until - (next_event_ > 0 ? index_.compute_until()[next_event_ - 1] : 0), last);
      idle_until(launched_);
      return;
    }
    Nanoseconds begin = lanes_.now();
    Nanoseconds work = 0;
    for (std::size_t e = next_event_; e <= last; ++e) {
      launched_ += paced(launch_[e]);
      if (const Nanoseconds compute = index_.compute_ns(e); compute > 0) {
        if (launched_ > begin + work) {
          if (e > 0) run_piece(work, e - 1);
          idle_until(launched_);
          begin = lanes_.now();
          work = 0;
        }
        work += compute;
      }
      if (detail_ != nullptr) detail_->time[e] = detail_->launch[e] = launched_;
      if (index_.syncs_at(e)) {
        run_piece(work, e);
        begin = lanes_.now();
        work = 0;
        launched_ = std::max(launched_, begin);
      }
    }
    run_piece(work, last);
    idle_until(launched_);
  }

  void wait_outside() {
    if (!wait_.event.valid()) return;
    run_to(wait_.event.index());
    const Nanoseconds begin = lanes_.now();
    idle_until(wait_.until);
    waited_outside_ = lanes_.now() - begin;
    wait_ = {};
  }

  // Does the work of events next_event_ .. last.
  void run_piece(Nanoseconds work, std::size_t last) {
    const Nanoseconds begin = lanes_.now();
    if (detail_ == nullptr) {
      lanes_.run_compute(work);
    } else {
      trail_.clear();
      lanes_.run_compute(work, &trail_);
      set_event_times(begin, last);
    }
    result_.compute_ns += lanes_.now() - begin;
    next_event_ = last + 1;
  }

  // An event's time is the first nanosecond at which the work ahead of it is done, and no less than
  // what is there already (when it was launched).
  void set_event_times(Nanoseconds begin, std::size_t last) {
    std::size_t segment = 0;
    Wide done_before = 0;  // ahead of the segment, in ns * 10^6
    Wide work = 0;
    const auto done_in = [](const CopyLanes::Segment& s) { return Wide{s.duration} * s.factor; };
    for (std::size_t e = next_event_; e <= last; ++e) {
      work += Wide{index_.compute_ns(e)} * kPpm;
      while (segment < trail_.size() && done_before + done_in(trail_[segment]) < work) {
        done_before += done_in(trail_[segment++]);
      }
      Nanoseconds time = begin;
      if (segment < trail_.size() && work > 0) {
        const CopyLanes::Segment& in = trail_[segment];
        time =
            in.start + static_cast<Nanoseconds>((work - done_before + in.factor - 1) / in.factor);
      }
      detail_->time[e] = std::max(detail_->time[e], time);
    }
  }

  void idle_until(Nanoseconds time) { lanes_.idle_until(time); }

  // The launch thread takes `cost` to issue something; compute has done all that was launched
  // before, and gets no more until then. Nothing on a CPU trace, where compute itself is the
  // launch thread and the recorded times say nothing of it.
  void issue(Nanoseconds cost) {
    if (!index_.has_launch()) return;
    launched_ += paced(cost);
    idle_until(launched_);
  }
  // What work of so long takes the launch thread, which is slow behind a wait (launch_pace.h).
  Nanoseconds paced(Nanoseconds work) { return pace_.time_of(work); }

  void execute(const Instruction& instruction) {
    switch (instruction.action) {
      case Action::load:
        wait_for_update(instruction);
        start(CopyLanes::h2d, instruction);
        break;
      case Action::store:
        start(CopyLanes::d2h, instruction);
        break;
      case Action::await:
        await(CopyLanes::h2d, instruction);
        break;
      case Action::evict:
        if (schedule_.stays[instruction.stay.index()].is_stored) await(CopyLanes::d2h, instruction);
        break;
      case Action::update:
        STOWAGE_ASSERT(updates_[issued_].stay == instruction.stay);
        issue_update(updates_[issued_]);
        break;
    }
  }

  void issue_update(const HostUpdate& update) {
    if (update.parameter.valid()) update_of_[update.parameter.index()] = issued_;
    const std::size_t job = store_[update.stay.index()];
    lanes_.enqueue_update(update.stay, job == kNoJob ? CopyLanes::kNoCopy : job, update.bytes);
    ++issued_;
  }

  // Whoever issues the load waits for what it reads.
  void wait_for_update(const Instruction& load) {
    const std::size_t update = update_of_[schedule_.stays[load.stay.index()].tenant.index()];
    if (update == kNoJob) return;
    const Nanoseconds begin = lanes_.now();
    lanes_.wait_for_update(update);
    launched_ = std::max(launched_, lanes_.updates()[update].end);
    idle_until(launched_);
    stalled_by_host(load.anchor.event, updates_[update].stay, begin);
  }

  // The step is over when the host has done all of them, too.
  void finish_updates() {
    if (issued_ == 0) return;
    const Nanoseconds begin = lanes_.now();
    lanes_.wait_for_update(issued_ - 1);
    stalled_by_host(EventId(index_.event_count() - 1), updates_[issued_ - 1].stay, begin);
    for (const CopyLanes::Update& each : lanes_.updates()) {
      result_.host_update_ns += each.end - each.start;
      if (detail_ != nullptr) {
        detail_->host_updates.push_back({each.stay, each.ready, each.start, each.end});
      }
    }
  }

  // The launch thread waited for what compute waited for, and hears of it as late as a stream does.
  void launch_waited() {
    if (!index_.has_launch()) return;
    launched_ = std::max(launched_, lanes_.now() + std::min(half_handover(), kMaxTransfer));
    pace_.woken();
  }

  void pause(Nanoseconds gap) { idle_until(lanes_.now() + std::min(gap, kMaxTransfer)); }
  // Until a copy is done; compute that really waits goes on the rest of the handover later.
  void compute_waits(CopyLanes::Direction direction, std::size_t job) {
    const Nanoseconds begin = lanes_.now();
    lanes_.wait_for(direction, job);
    if (lanes_.now() > begin) pause(half_handover());
  }
  [[nodiscard]] Nanoseconds half_handover() const {  // the way back
    return link_.handover_ns - link_.handover_ns / 2;
  }

  std::size_t& job_of(CopyLanes::Direction direction, StayId stay) {
    return (direction == CopyLanes::h2d ? load_ : store_)[stay.index()];
  }
  [[nodiscard]] CopyMode mode_of(CopyLanes::Direction direction, StayId id) const {
    const Stay& stay = schedule_.stays[id.index()];
    return direction == CopyLanes::h2d ? stay.load_mode : stay.store_mode;
  }

  // A copy on the compute stream, or of nothing, needs no wait. One that the period before started
  // is done: only its wait is issued.
  void await(CopyLanes::Direction direction, const Instruction& instruction) {
    const StayId stay = instruction.stay;
    if (mode_of(direction, stay) == CopyMode::compute || schedule_.tenant(stay).bytes == 0) return;
    issue(link_.wait_issue_ns);
    const std::size_t job = job_of(direction, stay);
    if (job == kNoJob) return;
    const Nanoseconds begin = lanes_.now();
    compute_waits(direction, job);
    stalled(instruction.anchor.event, stay, direction, begin);
  }

  // The step is over when the device has done everything: loads for the next period, stores.
  void finish_copies() {
    const EventId end(index_.event_count() - 1);
    for (const auto direction : {CopyLanes::d2h, CopyLanes::h2d}) {
      const auto& jobs = lanes_.jobs(direction);
      if (jobs.empty()) continue;
      const Nanoseconds begin = lanes_.now();
      lanes_.wait_for(direction, jobs.size() - 1);
      stalled(end, jobs.back().stay, direction, begin);
    }
  }

  void start(CopyLanes::Direction direction, const Instruction& instruction) {
    const StayId stay = instruction.stay;
    const CopyMode mode = mode_of(direction, stay);
    const Bytes bytes = schedule_.tenant(stay).bytes;
    (direction == CopyLanes::h2d ? result_.h2d_bytes : result_.d2h_bytes) += bytes;
    if (bytes > 0) issue(link_.copy_issue_ns);
    const Nanoseconds begin = lanes_.now();
    if (mode == CopyMode::compute) {
      lanes_.copy_on_compute(direction, bytes);
      if (detail_ != nullptr) {
        detail_->transfers.push_back(
            {stay, direction == CopyLanes::d2h, begin, begin, lanes_.now()});
      }
    } else {
      std::size_t& job = job_of(direction, stay);
      job = lanes_.enqueue(direction, bytes, stay);
      if (mode == CopyMode::lane) {
        if (bytes > 0) pause(link_.start_gap_ns);
        return;
      }
      lanes_.wait_for(direction, job);
      if (bytes > 0) launch_waited();
    }
    stalled(instruction.anchor.event, stay, direction, begin);
  }

  void stalled(EventId event, StayId stay, CopyLanes::Direction direction, Nanoseconds begin) {
    const Nanoseconds duration = lanes_.now() - begin;
    if (duration == 0) return;
    result_.stall_ns += duration;
    earn_rest();
    result_.stalls.push_back({event, stay, direction == CopyLanes::d2h, begin, duration});
  }
  // The wait for an update, with the gradient of that stay.
  void stalled_by_host(EventId event, StayId stay, Nanoseconds begin) {
    stalled(event, stay, CopyLanes::d2h, begin);
    if (lanes_.now() > begin) result_.stalls.back().is_update = true;
  }
  // What compute has not worked until here, beyond what it waits for the launch thread in a whole
  // step that moves nothing: those gaps are in the recorded times already. What it waits for a
  // network is no rest either: a collective's kernels run meanwhile.
  void earn_rest() {
    const Nanoseconds rest = lanes_.now() - result_.compute_ns -
                             index_.resident_idle(schedule_.has_hooks) - waited_outside_;
    if (rest <= earned_) return;
    lanes_.rest(rest - earned_);
    earned_ = rest;
  }
  void collect_transfers() {
    for (const auto direction : {CopyLanes::d2h, CopyLanes::h2d}) {
      for (const CopyLanes::Job& job : lanes_.jobs(direction)) {
        detail_->transfers.push_back(
            {job.stay, direction == CopyLanes::d2h, job.ready, job.start, job.end});
      }
    }
    std::stable_sort(detail_->transfers.begin(), detail_->transfers.end(),
                     [](const Transfer& a, const Transfer& b) { return a.start < b.start; });
  }

  const StepIndex& index_;
  const Schedule& schedule_;
  const Calibration& link_;
  CopyLanes lanes_;
  LaunchPace pace_;
  ReplayResult& result_;
  ReplayDetail* detail_;
  OutsideWait wait_;  // none once it is over
  Nanoseconds waited_outside_ = 0;
  const std::vector<Nanoseconds>& launch_;
  const std::vector<HostUpdate> updates_;  // in order of instructions
  std::vector<std::size_t> update_of_;     // by tenant: the last one that is issued; kNoJob: none
  std::size_t issued_ = 0;                 // updates
  std::vector<std::size_t> load_;  // row of the lane's jobs, by stay; kNoJob: not in this period
  std::vector<std::size_t> store_;
  std::vector<CopyLanes::Segment> trail_;
  std::size_t next_event_ = 0;
  Nanoseconds earned_ = 0;    // rest that was credited
  Nanoseconds launched_ = 0;  // when the launch thread reached the event before next_event_
};

// Each allocation in its place.
void replay_placed(const StepIndex& index, const Schedule& schedule, ReplayResult& result,
                   ReplayDetail* detail) {
  const AllocationSequence sequence = allocation_sequence(index, schedule);
  const LiveRanges live = live_ranges(sequence, index.trace());
  const PlannedBytes placed = placed_size(live);
  result.peak_active = placed.lower_bound;
  result.peak_reserved = placed.bytes;
  if (detail == nullptr) return;
  detail->active = live_bytes_by_event(live, sequence, index.event_count());
  detail->reserved.assign(index.event_count(), placed.bytes);
}

void replay_cached(const StepIndex& index, const Schedule& schedule, ReplayResult& result,
                   ReplayDetail* detail) {
  AllocatorTrail trail;
  const AllocatorReplay allocator =
      replay_allocator(index, schedule, -1, detail != nullptr ? &trail : nullptr);
  result.peak_active = allocator.peak_active;
  result.peak_reserved = allocator.peak_reserved;
  result.allocator_periods = allocator.periods;
  result.later_segments = static_cast<std::int64_t>(allocator.later_segments.size());
  result.allocator_exact = allocator.is_complete;
  result.active_varies = !allocator.is_steady;
  if (detail == nullptr) return;
  detail->active = std::move(trail.active);
  detail->reserved = std::move(trail.reserved);
}

}  // namespace

ReplayResult estimate(const StepIndex& index, const Schedule& schedule, ReplayDetail* detail,
                      OutsideWait wait) {
  ReplayResult result;
  const MemoryPeaks peaks =
      replay_memory(index, schedule, detail != nullptr ? &detail->requested : nullptr);
  result.peak_requested = peaks.requested;
  result.peak_active = peaks.rounded;
  result.peak_event = peaks.event;
  result.host_bytes = schedule.host_bytes;
  TimeReplay(index, schedule, result, detail, wait).run();
  return result;
}

ReplayResult replay(const StepIndex& index, const Schedule& schedule, ReplayDetail* detail) {
  ReplayResult result = estimate(index, schedule, detail);
  if (detail != nullptr) {
    detail->active.clear();
    detail->reserved.clear();
  }
  if (index.trace().setup.size() == 0) return result;
  if (schedule.placement == PlacementMode::planned) {
    replay_placed(index, schedule, result, detail);
  } else {
    replay_cached(index, schedule, result, detail);
  }
  return result;
}

bool guesses_host_updates(const Trace& trace, const ReplayResult& result) {
  return result.host_update_ns > 0 && !knows_host_updates(trace.calibration);
}

Schedule resident_schedule(const StepIndex& index, PlacementMode placement) {
  Schedule schedule;
  schedule.placement = placement;
  schedule.tenant_of.resize(index.trace().saved.size());
  schedule.stay_of.resize(index.trace().unpacks.size());
  return schedule;
}

}  // namespace stowage::simulator
