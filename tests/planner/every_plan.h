// Every plan of a small step: each set of layers that run again, each set of tensors that ops make
// again, each set of storages that leave, with points at once, on demand, and automatic.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <limits>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "planner/footprint.h"
#include "simulator/lowering/lowering.h"
#include "simulator/replay/replay.h"
#include "simulator/step/op_chains.h"
#include "simulator/step/unroll.h"

namespace stowage::planner {

// The shortest step of each budget, and the lowest peak of any plan. With pins: of those that have
// them, which say "segment" and "site" by exact names.
class EveryPlan {
 public:
  EveryPlan(const Trace& trace, int layers, std::vector<Bytes> budgets, simulator::Plan pins = {})
      : trace_(trace),
        budgets_(std::move(budgets)),
        pins_(std::move(pins)),
        shortest_(budgets_.size(), kNone) {
    for (int set = 0; set < 1 << layers; ++set) {
      simulator::Structure structure;
      for (int layer = 0; layer < layers; ++layer) {
        if ((set >> layer & 1) != 0) {
          structure.recompute.push_back("layers." + std::to_string(layer));
        }
      }
      try_with_ops(structure);
    }
  }

  static constexpr Nanoseconds kNone = std::numeric_limits<Nanoseconds>::max();
  [[nodiscard]] Nanoseconds shortest(std::size_t budget) const { return shortest_[budget]; }
  [[nodiscard]] Bytes lowest_peak() const { return lowest_; }
  [[nodiscard]] std::int64_t plans() const { return plans_; }

 private:
  void try_with_ops(const simulator::Structure& structure) {
    const simulator::ChainFinder chains(trace_);
    std::vector<std::vector<std::string>> able;  // sites, by storage
    for (std::size_t s = 0; s < trace_.storages.size(); ++s) {
      std::vector<std::string> sites;
      for (std::size_t row = 0; row < trace_.saved.size(); ++row) {
        if (trace_.saved.storage[row] != StorageId(s) || !chains.check(SavedId(row))) continue;
        sites.push_back(trace_.string(trace_.saved.site[row]));
      }
      if (!sites.empty()) able.push_back(std::move(sites));
    }
    for (std::size_t set = 0; set < std::size_t{1} << able.size(); ++set) {
      simulator::Structure with_ops = structure;
      for (std::size_t s = 0; s < able.size(); ++s) {
        if ((set >> s & 1) == 0) continue;
        with_ops.ops.insert(with_ops.ops.end(), able[s].begin(), able[s].end());
      }
      try_structure(with_ops);
    }
  }

  void try_structure(const simulator::Structure& structure) {
    const auto step = simulator::unroll(trace_, structure);
    if (!step.ok() && !structure.ops.empty()) return;  // a layer that runs again has the tensor
    ASSERT_TRUE(step.ok()) << step.error().text();
    const simulator::StepIndex index(*step);
    if (!has_pinned_structure(index, structure)) return;
    const Footprints footprints(index);
    std::size_t sets = 1;
    for (const Movable& movable : footprints.movable()) sets *= movable.options.size();
    for (std::size_t set = 0; set < sets; ++set) {
      std::vector<Choice> choices;
      std::size_t left = set;
      for (const Movable& movable : footprints.movable()) {
        choices.push_back(movable.options[left % movable.options.size()].choice);
        left /= movable.options.size();
      }
      if (!has_pinned_choices(footprints, choices)) continue;
      try_decisions(index, footprints.tight(choices));
      for (const Bytes budget : budgets_) {
        simulator::Decisions automatic = footprints.decisions(choices, {}, {});
        automatic.budget = budget;
        try_decisions(index, automatic);
      }
    }
  }

  [[nodiscard]] bool has_pinned_structure(const simulator::StepIndex& index,
                                          const simulator::Structure& structure) const {
    const auto has = [](const std::vector<std::string>& all, const std::string& one) {
      return std::find(all.begin(), all.end(), one) != all.end();
    };
    for (const simulator::RecomputeRule& rule : pins_.recompute) {
      if (!has(structure.recompute, rule.segment)) return false;
    }
    for (const simulator::SavedRule& rule : pins_.saved) {
      if (rule.decision == simulator::Decision::recompute && !has(structure.ops, *rule.site)) {
        return false;
      }
      if (rule.decision != simulator::Decision::recompute && !saved_at(index, *rule.site).valid()) {
        return false;
      }
    }
    return true;
  }

  // Where no segment has it.
  static SavedId saved_at(const simulator::StepIndex& index, const std::string& site) {
    const Trace& trace = index.trace();
    for (std::size_t s = 0; s < trace.saved.size(); ++s) {
      const bool is_it = trace.string(trace.saved.site[s]) == site;
      if (is_it && !index.is_of_segment(SavedId(s))) return SavedId(s);
    }
    return {};
  }

  [[nodiscard]] bool has_pinned_choices(const Footprints& footprints,
                                        const std::vector<Choice>& choices) const {
    const simulator::StepIndex& index = footprints.index();
    for (const simulator::SavedRule& rule : pins_.saved) {
      if (rule.decision == simulator::Decision::recompute) continue;
      const SavedId saved = saved_at(index, *rule.site);
      Choice choice = Choice::keep;
      for (std::size_t m = 0; m < choices.size(); ++m) {
        if (footprints.movable()[m].storages.front() ==
            index.trace().saved.storage[saved.index()]) {
          choice = choices[m];
        }
      }
      const bool is_kept = rule.decision == simulator::Decision::keep;
      if (choice != (is_kept ? Choice::keep : Choice::shared)) return false;
    }
    return true;
  }

  void try_decisions(const simulator::StepIndex& index, const simulator::Decisions& decisions) {
    const auto lowered = simulator::lower(index, decisions);
    ASSERT_TRUE(lowered.ok()) << lowered.error().text();
    const simulator::ReplayResult result = simulator::replay(index, lowered->schedule);
    ++plans_;
    lowest_ = std::min(lowest_, result.peak_requested);
    for (std::size_t b = 0; b < budgets_.size(); ++b) {
      if (result.peak_requested <= budgets_[b]) {
        shortest_[b] = std::min(shortest_[b], result.step_ns);
      }
    }
  }

  const Trace& trace_;
  std::vector<Bytes> budgets_;
  simulator::Plan pins_;
  std::vector<Nanoseconds> shortest_;
  Bytes lowest_ = std::numeric_limits<Bytes>::max();
  std::int64_t plans_ = 0;
};

// In half of the steps each copies slow compute, and compute gains by waiting.
inline void disturb(std::mt19937_64& random, Calibration& link) {
  const auto drawn = [&](std::uint64_t from, std::uint64_t to) {
    return static_cast<Ppm>(from + random() % (to - from));
  };
  if (random() % 2 == 0) link.compute_interference = drawn(700'000, kPpm);
  if (random() % 2 == 0) return;
  link.least_compute = drawn(700'000, 990'000);
  link.rest_gain = drawn(10'000, 500'000);
}

}  // namespace stowage::planner
