// Compute, the two copy lanes and the host's updates as one fluid system in integer time.
//
// A transfer first passes its latency, which nothing slows down, then its remaining nominal time is
// consumed at a factor in ppm: kPpm alone, times duplex while bytes move in the other direction,
// times copy_interference while compute is busy. Compute runs at compute_interference while a lane
// moves bytes. A copy on the compute stream shares the link with the lanes: duplex with the other
// direction, half each in its own. Factors change only when something starts or ends, so time jumps
// from one such point to the next; work is kept in ns * 10^6 and every completion rounds up to a
// whole nanosecond. Cost: O(1) for each start or end of a transfer and each piece of compute.
//
// A transfer that its lane was waiting for starts half of Calibration::handover_ns later, a copy on
// the compute stream compute_copy_gap_ns; both are part of its latency.
//
// The host updates parameters one after the other, each once its gradient has come, at
// host_update_interference while a lane moves bytes; nothing is slower for that.
//
// A GPU at its power limit runs faster behind a rest (Calibration::rest_gain): rests are credited,
// and while there is credit compute runs faster, at most so much that its time becomes
// least_compute. What is left at the end of a step is lost.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "simulator/machine/rest_gain.h"
#include "simulator/replay/replay.h"
#include "traces/trace.h"

namespace stowage::simulator {

class CopyLanes {
 public:
  enum Direction : std::uint8_t { d2h, h2d };

  struct Job {
    StayId stay;
    Bytes bytes = 0;
    Nanoseconds nominal = 0;
    Nanoseconds ready = 0;
    Nanoseconds start = -1;  // -1: still in the queue
    Nanoseconds end = -1;    // -1: not done
  };

  // Of the host.
  struct Update {
    StayId stay;       // of the gradient
    std::size_t copy;  // row in jobs(d2h) that brings it; kNoCopy: it is there
    Nanoseconds nominal = 0;
    Nanoseconds ready = -1;  // likewise: the gradient has come
    Nanoseconds start = -1;
    Nanoseconds end = -1;
  };
  static constexpr std::size_t kNoCopy = static_cast<std::size_t>(-1);

  // Compute did `duration` ns at `factor`, from `start` on.
  struct Segment {
    Nanoseconds start = 0;
    Nanoseconds duration = 0;
    Ppm factor = kPpm;
  };

  explicit CopyLanes(const Calibration& link);

  [[nodiscard]] Nanoseconds now() const { return now_; }
  [[nodiscard]] Nanoseconds nominal_ns(Direction direction, Bytes bytes) const;

  // Appends a copy to a lane; it is ready now. Returns its row in jobs(direction).
  std::size_t enqueue(Direction direction, Bytes bytes, StayId stay);
  [[nodiscard]] const std::vector<Job>& jobs(Direction direction) const {
    return lanes_[direction].jobs;
  }
  // Appends an update to the host's. Returns its row in updates().
  std::size_t enqueue_update(StayId stay, std::size_t copy, Bytes bytes);
  [[nodiscard]] const std::vector<Update>& updates() const { return updates_; }
  // Nothing is queued or under way.
  [[nodiscard]] bool idle() const;

  // Time passes until compute has done `work` ns of its own; `trail` gets the pieces if given.
  void run_compute(Nanoseconds work, std::vector<Segment>* trail = nullptr);
  // Time passes with compute idle: until a copy is done, until a point in time.
  void wait_for(Direction direction, std::size_t job);
  void wait_for_update(std::size_t update);
  void idle_until(Nanoseconds time);
  // Compute has rested for so long more than in the recorded step: it may run faster from now on.
  void rest(Nanoseconds duration);
  // A copy on the compute stream itself: time passes until it is done.
  void copy_on_compute(Direction direction, Bytes bytes);

 private:
  // A transfer under way, if any.
  struct Mover {
    Direction direction = d2h;
    bool active = false;
    Nanoseconds latency_left = 0;
    std::int64_t work_left = 0;  // ns * 10^6
    [[nodiscard]] bool moving() const { return active && latency_left == 0; }
  };
  struct Lane {
    std::vector<Job> jobs;
    std::size_t head = 0;  // first job that is not done; under way when the lane's mover is active
  };
  static constexpr std::size_t kOnCompute = 2;  // the mover of copies on the compute stream

  void start_due();
  void start_update();
  [[nodiscard]] Ppm update_factor() const;
  [[nodiscard]] bool is_updating() const {
    return next_update_ < updates_.size() && updates_[next_update_].start >= 0;
  }
  void start(Mover& mover, Nanoseconds nominal, Nanoseconds gap) const;
  [[nodiscard]] Ppm factor_of(std::size_t mover, bool computing) const;
  // The next point at which a lane's state changes, as a distance from now; a huge one for none.
  [[nodiscard]] Nanoseconds next_change(bool computing) const;
  void advance(Nanoseconds duration, bool computing);

  const Calibration& link_;
  Ppm duplex_;
  Ppm copy_interference_;
  Ppm compute_interference_;
  RestGain rest_gain_;
  std::int64_t credit_ = 0;  // time at rest_gain_.boost, in ns * 10^6
  std::array<Lane, 2> lanes_;
  std::array<Mover, 3> movers_;  // of the lanes, by direction, and kOnCompute
  std::vector<Update> updates_;
  std::size_t next_update_ = 0;   // the first that is not done; under way once it has a start
  std::int64_t update_left_ = 0;  // of that: ns * 10^6
  Nanoseconds now_ = 0;
};

}  // namespace stowage::simulator
