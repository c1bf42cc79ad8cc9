// Policies that let layers or ops run again as starts of `auto`: what a known system would do, in
// its own structure. Where that is better than what the search finds by itself, it goes on from
// there.
#pragma once

#include <memory>
#include <optional>
#include <vector>

#include "planner/evaluator.h"
#include "planner/planner.h"
#include "planner/policy.h"
#include "planner/structure_pool.h"
#include "planner/structure_search.h"
#include "simulator/plan/plan.h"
#include "simulator/step/step_index.h"
#include "simulator/step/structure.h"
#include "traces/trace.h"

namespace stowage::planner {

[[nodiscard]] bool runs_again(const PolicyRules& rules);

// Whether a plan of these rules decides nothing but what is allowed.
[[nodiscard]] bool admits(const Allowed& allowed, const PolicyRules& rules);

// One policy on one recording, which is always the same, and so is the request.
class PolicyStart {
 public:
  explicit PolicyStart(const PolicyRules& rules);

  [[nodiscard]] bool runs_again() const { return runs_again_; }

  // Its plan as it is, but for what is pinned; null where it cannot be lowered, or not be so, or
  // where no step with its structure is shorter than `below`. Made when it is asked for first: then
  // an unroll(), a StepIndex, and one evaluation, which is added to `spent`.
  const Candidate* plan(const Trace& recording, const PlanRequest& request,
                        std::optional<Nanoseconds> below, Spent& spent);
  // Of that plan, as replay() counts it.
  [[nodiscard]] Bytes peak() const { return peak_; }
  // Of its structure; behind plan(). Made when it is asked for first; null where it cannot be had.
  StructureSearch* search(const Trace& recording, const PlanRequest& request);

 private:
  simulator::Plan plan_;
  bool runs_again_ = false;
  bool is_tried_ = false;
  std::optional<Nanoseconds> shortest_;  // of a step with its structure
  simulator::Structure structure_;
  std::optional<Candidate> candidate_;
  Bytes peak_ = 0;
  std::unique_ptr<StructureSearch> search_;
};

// Those that are allowed and that can be had of this recording, of which `pool` is. Cost:
// policy_rules() of each.
[[nodiscard]] std::vector<PolicyStart> policy_starts(const simulator::StepIndex& recorded,
                                                     const PlanRequest& request,
                                                     const StructurePool& pool);

}  // namespace stowage::planner
