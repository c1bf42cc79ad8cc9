#include "profiler/torch/link_rounds.h"

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <utility>

#include "profiler/torch/stopwatch.h"

namespace stowage::profiler {

namespace {

using executor::CopyLane;
using executor::CopyTicket;

using Clock = std::chrono::steady_clock;

constexpr Bytes kSmallest = Bytes{4} << 10;
constexpr Bytes kBatchBytes = Bytes{16} << 20;  // copied in one go, for small transfers
constexpr int kMostCopies = 64;
constexpr int kCopiesAtOnce = 4;  // beside others

Nanoseconds quantile(std::vector<Nanoseconds> times, std::size_t percent) {
  std::sort(times.begin(), times.end());
  return times[(times.size() - 1) * percent / 100];
}

}  // namespace

Nanoseconds undisturbed(std::vector<Nanoseconds> times) {
  return quantile(std::move(times), 25);
}

LinkRounds::LinkRounds(executor::Device& device, const CopyEnds& out, const CopyEnds& in,
                       Bytes largest, std::function<void()> compute)
    : device_(device),
      largest_(largest),
      out_{CopyLane::d2h, out, {}},
      in_{CopyLane::h2d, in, {}},
      compute_(std::move(compute)) {
  for (Bytes bytes = kSmallest; bytes <= largest; bytes *= 4) sizes_.push_back(bytes);
  for (Lane* lane : {&out_, &in_}) {
    lane->of_size.resize(sizes_.size());
    for (const Bytes bytes : sizes_) {  // warm
      static_cast<void>(time_of_copies(device_, lane->lane, lane->ends, bytes, 1));
    }
  }
}

void LinkRounds::run(int rounds) {
  for (int round = 0; round < rounds; ++round) {
    for (Lane* lane : {&out_, &in_}) {
      for (std::size_t size = 0; size < sizes_.size(); ++size) {
        lane->of_size[size].push_back(one_copy(*lane, sizes_[size]));
      }
    }
    both_ways();
    if (compute_) beside_compute();
  }
}

// One copy in a queue of its like: what starting and ending the measurement takes cancels out.
Nanoseconds LinkRounds::one_copy(const Lane& lane, Bytes bytes) const {
  const int count =
      static_cast<int>(std::clamp<Bytes>(kBatchBytes / bytes, 1, Bytes{kMostCopies / 2}));
  const Nanoseconds few = time_of_copies(device_, lane.lane, lane.ends, bytes, count);
  const Nanoseconds many = time_of_copies(device_, lane.lane, lane.ends, bytes, 2 * count);
  return time_of_one_copy(few, many, count);
}

void LinkRounds::both_ways() {
  duplex_.alone.push_back(
      std::max(time_of_copies(device_, out_.lane, out_.ends, largest_, kCopiesAtOnce),
               time_of_copies(device_, in_.lane, in_.ends, largest_, kCopiesAtOnce)));
  device_.synchronize();
  const auto begin = Clock::now();
  CopyTicket out;
  CopyTicket in;
  for (int copy = 0; copy < kCopiesAtOnce; ++copy) {
    out = start_copy(device_, out_.lane, out_.ends, largest_);
    in = start_copy(device_, in_.lane, in_.ends, largest_);
  }
  device_.wait_blocking(out);
  device_.wait_blocking(in);
  duplex_.together.push_back(std::max<Nanoseconds>(1, time_since(begin)));
}

// Copies are queued first: a copy waits for the compute that was issued before it.
void LinkRounds::beside_compute() {
  interference_.alone.push_back(
      time_of_copies(device_, out_.lane, out_.ends, largest_, kCopiesAtOnce));
  device_.synchronize();
  const auto begin = Clock::now();
  CopyTicket last;
  for (int copy = 0; copy < kCopiesAtOnce; ++copy) {
    last = start_copy(device_, out_.lane, out_.ends, largest_);
  }
  compute_();
  device_.wait_blocking(last);
  interference_.together.push_back(std::max<Nanoseconds>(1, time_since(begin)));
  device_.synchronize();
}

Ppm LinkRounds::Pair::ratio() const {
  return std::clamp<Ppm>(undisturbed(alone) * kPpm / undisturbed(together), kPpm / 100, kPpm);
}

LinkCurve LinkRounds::curve(const Lane& lane) const {
  LinkCurve result;
  for (std::size_t size = 0; size < sizes_.size(); ++size) {
    const Times& times = lane.of_size[size];
    result.bytes.push_back(sizes_[size]);
    result.bytes_per_second.push_back(copy_rate(sizes_[size], undisturbed(times)));
    result.bytes_per_second_p10.push_back(copy_rate(sizes_[size], quantile(times, 90)));
  }
  // What the smallest copy takes is nearly all latency.
  result.latency = undisturbed(lane.of_size.front());
  return result;
}

void LinkRounds::write(Calibration& calibration) const {
  calibration.d2h = curve(out_);
  calibration.h2d = curve(in_);
  calibration.duplex = duplex_.ratio();
  if (compute_) calibration.copy_interference = interference_.ratio();
}

}  // namespace stowage::profiler
