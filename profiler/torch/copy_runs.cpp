#include "profiler/torch/copy_runs.h"

#include <algorithm>
#include <chrono>

#include "profiler/torch/stopwatch.h"

namespace stowage::profiler {

using executor::CopyLane;
using executor::CopyTicket;

CopyTicket start_copy(executor::Device& device, CopyLane lane, const CopyEnds& ends, Bytes bytes) {
  std::byte* const to = lane == CopyLane::d2h ? ends.host : ends.device;
  const std::byte* const from = lane == CopyLane::d2h ? ends.device : ends.host;
  return device.copy_async(lane, to, from, bytes);
}

Nanoseconds time_of_copies(executor::Device& device, CopyLane lane, const CopyEnds& ends,
                           Bytes bytes, int count) {
  device.synchronize();
  const auto begin = std::chrono::steady_clock::now();
  CopyTicket last;
  for (int i = 0; i < count; ++i) last = start_copy(device, lane, ends, bytes);
  device.wait_blocking(last);
  return std::max<Nanoseconds>(1, time_since(begin));
}

Nanoseconds time_of_one_copy(Nanoseconds of_count, Nanoseconds of_twice, int count) {
  return std::max<Nanoseconds>({1, (of_twice - of_count) / count, of_twice / (4 * count)});
}

std::int64_t copy_rate(Bytes bytes, Nanoseconds time) {
  constexpr std::int64_t kBillion = 1'000'000'000;
  return std::max<std::int64_t>(1, static_cast<std::int64_t>(Wide{bytes} * kBillion / time));
}

}  // namespace stowage::profiler
