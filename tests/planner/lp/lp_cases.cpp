// Writes small cases for tests/planner/lp/time_bound_lp.py to stdout, as JSON: what
// planner/copy_jobs and planner/bounds say, beside everything that a linear programme needs to say
// the same. Jobs of steps are derived from how each step is made here, not from the planner's
// tables.
#include <algorithm>
#include <iostream>
#include <nlohmann/json.hpp>
#include <random>
#include <vector>

#include "planner/bounds.h"
#include "planner/copy_jobs.h"
#include "planner/footprint.h"
#include "tests/support/micro_trace.h"

namespace stowage::planner {
namespace {

using nlohmann::json;

json machine_case(std::uint64_t seed) {
  std::mt19937_64 random(seed);
  std::vector<CopyJob> jobs;
  Bytes all = 0;
  for (std::size_t i = 0; i < 1 + random() % 8; ++i) {
    CopyJob job;
    job.release = static_cast<Nanoseconds>(random() % 4 == 0 ? 0 : random() % 2000);
    job.size = static_cast<Nanoseconds>(random() % 10 == 0 ? 0 : 1 + random() % 1000);
    job.moving = job.size;
    job.value = static_cast<Bytes>(1 + random() % 1'000'000);
    all += job.value;
    jobs.push_back(job);
  }
  const Bytes wanted = 1 + static_cast<Bytes>(random() % static_cast<std::uint64_t>(all));
  json out = {{"wanted", wanted}, {"jobs", json::array()}};
  for (const CopyJob& job : jobs) {
    out["jobs"].push_back({{"release", job.release}, {"size", job.size}, {"value", job.value}});
  }
  out["seed"] = seed;
  out["earliest_done"] = CopyJobs(jobs).earliest_done(wanted);
  return out;
}

// A stack of layers of random sizes and times that each save a storage, and a temporary behind it.
class Stack {
 public:
  explicit Stack(std::mt19937_64& random) {
    const auto below = [&](std::uint64_t n) { return static_cast<std::int64_t>(random() % n); };
    const std::int64_t layers = 1 + below(6);
    for (std::int64_t i = 0; i < layers; ++i) {
      bytes_.push_back(4 * (1 + below(500)));
      forward_.push_back(1 + below(1500));
      backward_.push_back(1 + below(3000));
    }
    temporary_ = 4 * (1 + below(300));
    loss_ = 1 + below(1000);
    latency_ = below(2) * below(50);
  }

  [[nodiscard]] Trace trace() const {
    testing::MicroTrace m;
    m.link().d2h = m.link().h2d = testing::flat_link(1'000'000'000, latency_);
    std::vector<StorageId> storages;
    std::vector<SavedId> saved;
    for (std::size_t i = 0; i < bytes_.size(); ++i) {
      m.begin_op();
      m.run(forward_[i]);
      storages.push_back(m.alloc(bytes_[i]));
      saved.push_back(m.pack(storages[i]));
      m.end_op();
      m.let_go(storages[i]);
    }
    m.begin_op();
    m.run(loss_);
    const StorageId temporary = m.alloc(temporary_);
    m.end_op();
    m.free(temporary);
    m.backward();
    for (std::size_t i = bytes_.size(); i-- > 0;) {
      m.begin_op();
      const UnpackId unpack = m.unpack(saved[i]);
      m.run(backward_[i]);
      m.end_op();
      m.drop(unpack);
      m.free(storages[i]);
    }
    return m.finish();
  }

  // Every moment that is above the budget and not below a neighbour: where a layer's storage is
  // made, the temporary is, and from where a layer's storage is used again to where it goes. There
  // the others may be away.
  [[nodiscard]] json moments(Bytes budget) const {
    const std::size_t layers = bytes_.size();
    std::vector<Nanoseconds> packed;          // until each storage is made
    std::vector<Nanoseconds> behind(layers);  // from each storage's use to the end
    Nanoseconds now = 0;
    for (const Nanoseconds time : forward_) packed.push_back(now += time);
    const Nanoseconds at_loss = now + loss_;
    Nanoseconds left = 0;
    for (std::size_t i = 0; i < layers; ++i) behind[i] = left += backward_[i];
    json all = json::array();
    const auto add = [&](std::size_t away, Bytes held, Nanoseconds before, Nanoseconds after) {
      Bytes alive = held;
      for (std::size_t i = 0; i < away; ++i) alive += bytes_[i];
      if (alive <= budget) return;
      json jobs = json::array();
      for (std::size_t i = 0; i < away; ++i) {
        jobs.push_back({{"release", packed[i]},
                        {"behind", behind[i]},
                        {"size", latency_ + bytes_[i]},
                        {"value", bytes_[i]}});
      }
      all.push_back(
          {{"before", before}, {"after", after}, {"wanted", alive - budget}, {"jobs", jobs}});
    };
    for (std::size_t i = 0; i < layers; ++i) {
      add(i, bytes_[i], packed[i], at_loss - packed[i] + behind[layers - 1]);
    }
    add(layers, temporary_, at_loss, behind[layers - 1]);
    for (std::size_t i = 0; i < layers; ++i) {
      const Nanoseconds used = at_loss + behind[layers - 1] - behind[i];
      add(i, bytes_[i], used, behind[i]);
      add(i, bytes_[i], used + backward_[i], behind[i] - backward_[i]);
    }
    return all;
  }

 private:
  std::vector<Bytes> bytes_;
  std::vector<Nanoseconds> forward_;
  std::vector<Nanoseconds> backward_;
  Bytes temporary_ = 0;
  Nanoseconds loss_ = 0;
  Nanoseconds latency_ = 0;
};

json step_case(std::uint64_t seed) {
  std::mt19937_64 random(seed + 1'000'000);
  const Stack stack(random);
  const Trace trace = stack.trace();
  const simulator::StepIndex index(trace);
  const Footprints footprints(index);
  const Bytes floor = memory_floor(footprints).bytes;
  const Bytes peak = *std::max_element(footprints.resident().begin(), footprints.resident().end());
  const Bytes budget =
      floor + static_cast<Bytes>(random() % static_cast<std::uint64_t>(peak - floor + 1));
  return {{"seed", seed},
          {"budget", budget},
          {"resident", index.resident_time().back()},
          {"moments", stack.moments(budget)},
          {"shortest_step", shortest_step(footprints, budget)}};
}

}  // namespace
}  // namespace stowage::planner

int main() {
  nlohmann::json cases = {{"machines", nlohmann::json::array()},
                          {"steps", nlohmann::json::array()}};
  for (std::uint64_t seed = 1; seed <= 200; ++seed) {
    cases["machines"].push_back(stowage::planner::machine_case(seed));
    cases["steps"].push_back(stowage::planner::step_case(seed));
  }
  std::cout << cases.dump() << '\n';
}
