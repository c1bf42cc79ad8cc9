#include "simulator/replay/copy_lanes.h"

#include <algorithm>
#include <limits>

#include "simulator/machine/host_lane.h"
#include "simulator/machine/link_model.h"
#include "traces/result.h"

namespace stowage::simulator {
namespace {

constexpr Nanoseconds kNever = std::numeric_limits<Nanoseconds>::max();
constexpr std::int64_t kMostCredit = std::int64_t{1} << 60;

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
      compute_interference_(usable(link.compute_interference)),
      rest_gain_(rest_gain(link)) {
  movers_[h2d].direction = h2d;
}

void CopyLanes::rest(Nanoseconds duration) {
  const Wide credit = Wide{credit_} + Wide{duration} * rest_gain_.credit_per_rest;
  credit_ = static_cast<std::int64_t>(std::min<Wide>(credit, kMostCredit));
}

Nanoseconds CopyLanes::nominal_ns(Direction direction, Bytes bytes) const {
  return bytes > 0 ? transfer_ns(direction == d2h ? link_.d2h : link_.h2d, bytes) : 0;
}

std::size_t CopyLanes::enqueue(Direction direction, Bytes bytes, StayId stay) {
  Lane& lane = lanes_[direction];
  lane.jobs.push_back({stay, bytes, nominal_ns(direction, bytes), now_});
  start_due();
  return lane.jobs.size() - 1;
}

std::size_t CopyLanes::enqueue_update(StayId stay, std::size_t copy, Bytes bytes) {
  updates_.push_back({stay, copy, host_update_ns(link_, bytes)});
  if (copy == kNoCopy) updates_.back().ready = now_;
  start_update();
  return updates_.size() - 1;
}

bool CopyLanes::idle() const {
  return next_update_ == updates_.size() &&
         std::all_of(lanes_.begin(), lanes_.end(),
                     [](const Lane& lane) { return lane.head == lane.jobs.size(); });
}

void CopyLanes::start_due() {
  for (const Direction direction : {d2h, h2d}) {
    Lane& lane = lanes_[direction];
    while (!movers_[direction].active && lane.head < lane.jobs.size()) {
      Job& job = lane.jobs[lane.head];
      job.start = now_;
      if (job.nominal == 0) {
        job.end = now_;
        ++lane.head;
        continue;
      }
      const bool lane_waited = job.start == job.ready;
      start(movers_[direction], job.nominal, lane_waited ? link_.handover_ns / 2 : 0);
    }
  }
  start_update();
}

void CopyLanes::start_update() {
  while (next_update_ < updates_.size()) {
    Update& update = updates_[next_update_];
    if (update.start >= 0) return;
    if (update.copy != kNoCopy) update.ready = lanes_[d2h].jobs[update.copy].end;
    if (update.ready < 0) return;
    update.start = now_;
    update_left_ = update.nominal * kPpm;
    if (update_left_ > 0) return;
    update.end = now_;
    ++next_update_;
  }
}

Ppm CopyLanes::update_factor() const {
  const bool beside = std::any_of(movers_.begin(), movers_.end(),
                                  [](const Mover& mover) { return mover.moving(); });
  return beside ? host_update_speed(link_) : kPpm;
}

void CopyLanes::start(Mover& mover, Nanoseconds nominal, Nanoseconds gap) const {
  const LinkCurve& curve = mover.direction == d2h ? link_.d2h : link_.h2d;
  const Nanoseconds latency = std::min(curve.latency, nominal);
  mover.active = true;
  mover.latency_left = latency + std::min(gap, kMaxTransfer);
  mover.work_left = (nominal - latency) * kPpm;
}

Ppm CopyLanes::factor_of(std::size_t mover, bool computing) const {
  const Direction direction = movers_[mover].direction;
  bool against = false;
  bool beside = false;
  for (std::size_t other = 0; other < movers_.size(); ++other) {
    if (other == mover || !movers_[other].moving()) continue;
    (movers_[other].direction == direction ? beside : against) = true;
  }
  Ppm factor = computing ? copy_interference_ : kPpm;
  if (against) factor = usable(factor * duplex_ / kPpm);
  return beside ? usable(factor / 2) : factor;
}

Nanoseconds CopyLanes::next_change(bool computing) const {
  Nanoseconds next = kNever;
  for (std::size_t m = 0; m < movers_.size(); ++m) {
    const Mover& mover = movers_[m];
    if (!mover.active) continue;
    next = std::min(next, mover.moving() ? divided_up(mover.work_left, factor_of(m, computing))
                                         : mover.latency_left);
  }
  if (is_updating()) next = std::min(next, divided_up(update_left_, update_factor()));
  return next;
}

void CopyLanes::advance(Nanoseconds duration, bool computing) {
  std::array<Ppm, 3> factor{};  // 0: in its latency
  for (std::size_t m = 0; m < movers_.size(); ++m) {
    if (movers_[m].moving()) factor[m] = factor_of(m, computing);
  }
  if (is_updating()) update_left_ -= duration * update_factor();
  now_ += duration;
  if (is_updating() && update_left_ <= 0) updates_[next_update_++].end = now_;
  for (std::size_t m = 0; m < movers_.size(); ++m) {
    Mover& mover = movers_[m];
    if (!mover.active) continue;
    if (factor[m] > 0) {
      mover.work_left -= duration * factor[m];
    } else {
      mover.latency_left -= duration;
    }
    if (mover.latency_left > 0 || mover.work_left > 0) continue;
    mover.active = false;
    if (m != kOnCompute) lanes_[m].jobs[lanes_[m].head++].end = now_;
  }
  start_due();
}

void CopyLanes::copy_on_compute(Direction direction, Bytes bytes) {
  const Nanoseconds nominal = nominal_ns(direction, bytes);
  if (nominal == 0) return;
  Mover& mover = movers_[kOnCompute];
  mover.direction = direction;
  start(mover, nominal, link_.compute_copy_gap_ns);
  while (mover.active) {
    const Nanoseconds duration = next_change(false);
    advance(duration, false);
  }
}

void CopyLanes::run_compute(Nanoseconds work, std::vector<Segment>* trail) {
  for (; work > kMaxTransfer; work -= kMaxTransfer) run_compute(kMaxTransfer, trail);
  std::int64_t left = work * kPpm;
  while (left > 0) {
    const bool slowed = movers_[d2h].moving() || movers_[h2d].moving();
    Ppm factor = slowed ? compute_interference_ : kPpm;
    Nanoseconds until = next_change(true);
    const bool boosted = credit_ >= kPpm;
    if (boosted) {
      factor = factor * rest_gain_.boost / kPpm;
      until = std::min(until, credit_ / kPpm);
    }
    const Nanoseconds duration = std::min(divided_up(left, factor), until);
    if (boosted) credit_ -= duration * kPpm;
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

void CopyLanes::wait_for_update(std::size_t update) {
  while (next_update_ <= update) {
    const Nanoseconds duration = next_change(false);
    STOWAGE_ASSERT(duration != kNever);
    advance(duration, false);
  }
}

void CopyLanes::idle_until(Nanoseconds time) {
  while (now_ < time) advance(std::min(time - now_, next_change(false)), false);
}

}  // namespace stowage::simulator
