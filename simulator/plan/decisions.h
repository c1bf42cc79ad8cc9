// Decisions are a plan's rules resolved against one trace: one row per saved tensor. This is the
// form that the planner changes and the lowering consumes; rules are the form people read.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "simulator/plan/plan.h"
#include "traces/result.h"

namespace stowage::simulator {

struct SavedDecision {
  Decision decision = Decision::keep;
  std::int32_t rule = -1;  // the rule of the plan that decided, -1 = none
  ReleasePoint release;    // relative program points are made absolute here
  ReloadPoint reload;
  CopyMode copy_out = CopyMode::lane;
  CopyMode copy_in = CopyMode::lane;
  bool share = true;
  bool operator==(const SavedDecision&) const = default;
};

// What streams: parameters by shard.
struct ParameterDecisions {
  // By row of Trace::storages, -1 = resident. Empty = all resident. Rows of other classes are -1.
  std::vector<std::int32_t> shard_of;
  StreamModes stream;
  std::optional<std::int32_t> prefetch;  // as in ParameterPlan

  [[nodiscard]] StreamMode mode_of(StorageId parameter) const {
    const std::int32_t shard = shard_of.empty() ? -1 : shard_of[parameter.index()];
    return shard < 0 ? StreamMode::off : stream.of(static_cast<std::size_t>(shard));
  }
  bool operator==(const ParameterDecisions&) const = default;
};

// What the optimizer's update needs on the device.
struct OptimizerDecisions {
  // By row of Trace::storages: a piece of state that is there for its update alone. Empty = none;
  // rows of other classes are false.
  std::vector<bool> state_streams;
  // By row of Trace::storages: a parameter that the host updates, where its state is. Empty = none;
  // rows of other classes are false.
  std::vector<bool> updated_on_host;
  bool operator==(const OptimizerDecisions&) const = default;
};

// Which gradients leave the device once they are there.
struct GradientDecisions {
  // By row of Trace::storages, of what the step makes: at home from its accumulation on, but for
  // what uses it. Empty = none; other rows are false.
  std::vector<bool> at_home;
  bool operator==(const GradientDecisions&) const = default;
};

struct Decisions {
  std::vector<SavedDecision> saved;  // one per row of Trace::saved
  ParameterDecisions parameters;
  OptimizerDecisions optimizer;
  GradientDecisions gradients;
  std::optional<Bytes> budget;  // on requested bytes: what `automatic` points stay within
};

// First rule that matches decides. Errors: a rule that matches nothing (with the nearest site), a
// program point that names no layer, a shard's layer that is none. Pointer in the error is
// "/saved/<rule>/..", "/parameters/shards/..", "/optimizer/<rule>/layer" or
// "/gradients/<rule>/layer".
[[nodiscard]] Result<Decisions> resolve(const Trace& trace, const Plan& plan);

// Rows of `plan.saved` that lose every tensor to earlier ones, in order, but those that keep all
// that is left: it stays without them, too. None where resolve() fails. Cost: that of resolve().
[[nodiscard]] std::vector<std::size_t> shadowed_rules(const Trace& trace, const Plan& plan);

// Rules that resolve to exactly these decisions, short: identical layers become one rule with a
// number range. Postcondition (asserted): resolve() of them gives `decisions.saved` back, apart
// from the `rule` column.
// `owned`, by saved tensor, empty for none: nothing is decided about these
// (StepIndex::is_of_segment).
[[nodiscard]] std::vector<SavedRule> to_rules(const Trace& trace, const Decisions& decisions,
                                              const std::vector<bool>& owned = {});

}  // namespace stowage::simulator
