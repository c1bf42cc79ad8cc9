#include "simulator/network/data_parallel.h"

#include <algorithm>
#include <utility>

#include "simulator/allocator/own_segments.h"
#include "simulator/lowering/lowering.h"
#include "simulator/step/block_bytes.h"

namespace stowage::simulator {
namespace {

void add_peaks(const StepIndex& index, const ReplayResult& replayed, DataParallel& made) {
  made.peak_requested = replayed.peak_requested;
  made.peak_active = replayed.peak_active;
  made.peak_reserved = replayed.peak_reserved;
  OwnSegments segments;
  for (const GradientBucket& bucket : made.buckets) {
    const Bytes block = block_bytes(bucket.bytes);
    segments.add(block);
    made.bucket_bytes += bucket.bytes;
    made.peak_active += index.rounds() ? block : bucket.bytes;
  }
  if (made.peak_reserved >= 0) made.peak_reserved += segments.bytes();
  made.peak_requested += made.bucket_bytes;
}

// When the network is done with all buckets.
RankedStep reduced(const DataParallel& made, std::int64_t ranks) {
  const Network& network = made.model.network;
  RankedStep step;
  step.ranks = ranks;
  step.hosts = hosts_of(network, ranks);
  Nanoseconds free = 0;
  for (std::size_t b = 0; b < made.buckets.size(); ++b) {
    const Nanoseconds time = all_reduce_ns(network, made.buckets[b].bytes, ranks);
    free = std::max(free, made.ready[b]) + time;
    step.all_reduce_ns += time;
  }
  step.exposed_ns = std::max<Nanoseconds>(0, free - made.backward_end_ns);
  return step;
}

}  // namespace

Result<DataParallel> data_parallel(const StepIndex& index, const Plan& plan,
                                   const ReplayResult& alone, const ReductionModel& model,
                                   const std::vector<std::int64_t>& ranks) {
  Result<GradientBuckets> grouped = gradient_buckets(index.trace(), model.buckets);
  if (!grouped) return grouped.error();
  const EventId waited_for = grouped->waited_for;
  DataParallel made;
  made.model = model;
  made.buckets = std::move(grouped->buckets);

  const StepIndex reducing(index.step().with_gradients_reduced_at(waited_for));
  const Result<Lowering> lowered = lower(reducing, plan);
  if (!lowered) return lowered.error();
  ReplayDetail detail;
  const ReplayResult unhindered = replay(reducing, lowered->schedule, &detail);
  add_peaks(reducing, unhindered, made);
  made.backward_end_ns = detail.time[waited_for.index()];
  for (const GradientBucket& bucket : made.buckets) {
    made.ready.push_back(detail.time[bucket.ready.index()]);
  }
  for (const std::int64_t number : ranks) {
    RankedStep step = reduced(made, number);
    if (number == 1) {
      step.step_ns = alone.step_ns;
    } else if (step.exposed_ns == 0) {
      step.step_ns = unhindered.step_ns;
    } else {
      const OutsideWait wait{waited_for, made.backward_end_ns + step.exposed_ns};
      step.step_ns = estimate(reducing, lowered->schedule, nullptr, wait).step_ns;
    }
    if (step.step_ns > 0) {
      step.efficiency = static_cast<Ppm>(Wide{alone.step_ns} * kPpm / step.step_ns);
    }
    made.steps.push_back(step);
  }
  return made;
}

}  // namespace stowage::simulator
