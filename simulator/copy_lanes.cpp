#include "simulator/copy_lanes.h"

#include <algorithm>
#include <limits>

#include "simulator/link_model.h"
#include "traces/result.h"

namespace stowage::simulator {
namespace {

constexpr Nanoseconds kNever = std::numeric_limits<Nanoseconds>::max();

// A measured factor; above 1 is noise, and a lane never stands quite still.
Ppm usable(Ppm factor) {
  return std::clamp<Ppm>(factor, kPpm / 1000, kPpm);
}

std::int64_t divided_up(std::int64_t work, Ppm factor) {
  return (work + factor - 1) / factor;
}

}  // namespace

CopyLanes::CopyLanes(const Calibration& link)
    : link_(link),
      duplex_(usable(link.duplex)),
      copy_interference_(usable(link.copy_interference)),
      compute_interference_(usable(link.compute_interference)) {}

Nanoseconds CopyLanes::nominal_ns(Direction direction, Bytes bytes) const {
  return bytes > 0 ? transfer_ns(direction == d2h ? link_.d2h : link_.h2d, bytes) : 0;
}

std::size_t CopyLanes::enqueue(Direction direction, Bytes bytes, OffloadId offload,
                               ReloadId reload) {
  LaneState& lane = lanes_[direction];
  lane.jobs.push_back({offload, reload, bytes, nominal_ns(direction, bytes), now_});
  start_due();
  return lane.jobs.size() - 1;
}

bool CopyLanes::idle() const {
  return std::all_of(lanes_.begin(), lanes_.end(),
                     [](const LaneState& lane) { return lane.head == lane.jobs.size(); });
}

void CopyLanes::start_due() {
  for (const Direction direction : {d2h, h2d}) {
    LaneState& lane = lanes_[direction];
    while (!lane.active && lane.head < lane.jobs.size()) {
      Job& job = lane.jobs[lane.head];
      job.start = now_;
      if (job.nominal == 0) {
        job.end = now_;
        ++lane.head;
        continue;
      }
      const LinkCurve& curve = direction == d2h ? link_.d2h : link_.h2d;
      lane.active = true;
      lane.latency_left = std::min(curve.latency, job.nominal);
      lane.work_left = (job.nominal - lane.latency_left) * kPpm;
    }
  }
}

Ppm CopyLanes::lane_factor(Direction direction, bool computing) const {
  Ppm factor = computing ? copy_interference_ : kPpm;
  if (lanes_[direction == d2h ? h2d : d2h].moving()) factor = usable(factor * duplex_ / kPpm);
  return factor;
}

Nanoseconds CopyLanes::next_change(bool computing) const {
  Nanoseconds next = kNever;
  for (const Direction direction : {d2h, h2d}) {
    const LaneState& lane = lanes_[direction];
    if (!lane.active) continue;
    next =
        std::min(next, lane.moving() ? divided_up(lane.work_left, lane_factor(direction, computing))
                                     : lane.latency_left);
  }
  return next;
}

void CopyLanes::advance(Nanoseconds duration, bool computing) {
  std::array<Ppm, 2> factor{};
  for (const Direction direction : {d2h, h2d})
    factor[direction] = lane_factor(direction, computing);
  now_ += duration;
  std::array<bool, 2> was_moving{lanes_[d2h].moving(), lanes_[h2d].moving()};
  for (const Direction direction : {d2h, h2d}) {
    LaneState& lane = lanes_[direction];
    if (!lane.active) continue;
    if (was_moving[direction]) {
      lane.work_left -= duration * factor[direction];
    } else {
      lane.latency_left -= duration;
    }
    if (lane.latency_left == 0 && lane.work_left <= 0) {
      lane.jobs[lane.head++].end = now_;
      lane.active = false;
    }
  }
  start_due();
}

void CopyLanes::run_compute(Nanoseconds work, std::vector<Segment>* trail) {
  for (; work > kMaxTransfer; work -= kMaxTransfer) run_compute(kMaxTransfer, trail);
  std::int64_t left = work * kPpm;
  while (left > 0) {
    const bool slowed = lanes_[d2h].moving() || lanes_[h2d].moving();
    const Ppm factor = slowed ? compute_interference_ : kPpm;
    const Nanoseconds duration = std::min(divided_up(left, factor), next_change(true));
    if (trail != nullptr) trail->push_back({now_, duration, factor});
    left -= duration * factor;
    advance(duration, true);
  }
}

void CopyLanes::wait_for(Direction direction, std::size_t job) {
  while (lanes_[direction].head <= job) {
    const Nanoseconds duration = next_change(false);
    STOWAGE_ASSERT(duration != kNever);
    advance(duration, false);
  }
}

void CopyLanes::idle_until(Nanoseconds time) {
  while (now_ < time) advance(std::min(time - now_, next_change(false)), false);
}

}  // namespace stowage::simulator
