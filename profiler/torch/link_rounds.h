// How fast the link is, measured in rounds: each takes one sample of every size of each lane, of
// both lanes at once and of copies beside compute. What disturbs a host for a tenth of a second
// then spoils some samples of everything, not everything that is known of one size (seen on an
// H100: 64 MiB to the device at 32 GB/s, 16 MiB at 55, so that a plan was predicted 17 % too slow),
// and the quartile of the fastest does not see it.
#pragma once

#include <functional>
#include <vector>

#include "executor/device/device.h"
#include "profiler/torch/copy_runs.h"
#include "traces/trace.h"

namespace stowage::profiler {

// What an undisturbed one takes: the lower quartile. There is one time at least.
[[nodiscard]] Nanoseconds undisturbed(std::vector<Nanoseconds> times);

class LinkRounds {
 public:
  // Copies of 4 KiB, 16 KiB, .. up to `largest` bytes between `out`, and between `in`, which are
  // apart and outlive this. Empty `compute`: copies beside it are not measured.
  LinkRounds(executor::Device& device, const CopyEnds& out, const CopyEnds& in, Bytes largest,
             std::function<void()> compute);

  // Some 60 ms on a GPU.
  void run(int rounds);

  // Sets d2h, h2d, duplex and, where it was measured, copy_interference, from all rounds until now;
  // one at least.
  void write(Calibration& calibration) const;

 private:
  using Times = std::vector<Nanoseconds>;

  struct Lane {
    executor::CopyLane lane;
    CopyEnds ends;
    std::vector<Times> of_size;  // of each of sizes_
  };

  // What copies take alone, and beside something else.
  struct Pair {
    Times alone;
    Times together;
    [[nodiscard]] Ppm ratio() const;
  };

  [[nodiscard]] Nanoseconds one_copy(const Lane& lane, Bytes bytes) const;
  [[nodiscard]] LinkCurve curve(const Lane& lane) const;
  void both_ways();
  void beside_compute();

  executor::Device& device_;
  Bytes largest_;
  std::vector<Bytes> sizes_;
  Lane out_;
  Lane in_;
  std::function<void()> compute_;
  Pair duplex_;
  Pair interference_;
};

}  // namespace stowage::profiler
