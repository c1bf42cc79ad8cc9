// Layers keep what they are given alone and run again in backward: torch.utils.checkpoint around
// each layer (use_reentrant=False, early stop), checkpoint_sequential with `run`, whose default
// there is a number of segments. "sqrt" is Chen et al., "Training Deep Nets with Sublinear Memory
// Cost" (2016): segments of about as many layers as there are segments.
//
// `schedule=optimal` takes a budget and lets as few run again as keep it: rotor's persistent
// schedules with each layer run again once (planner/checkpoint_schedule.h).
//
// Approximated: which layers a user would wrap is not recorded; the identical layers that free the
// most bytes are taken.
#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "planner/checkpoint_schedule.h"
#include "planner/policies/policies.h"
#include "simulator/step/plan_structure.h"
#include "simulator/step/segment_rule_writer.h"
#include "simulator/step/segment_rules.h"
#include "simulator/step/segments.h"

namespace stowage::planner::builtin {
PolicyInfo checkpoint_info() {
  return {"checkpoint",
          "Each layer keeps what it is given alone and runs again in backward",
          {{"every", "1", "of the identical layers every Nth runs again"},
           {"run", "1", "layers in a segment, which runs again as one; sqrt: their number's root"},
           {"schedule", "each", "optimal: those of the least work that keep the budget"}},
          true};
}

Rules checkpoint_rules(const simulator::StepIndex& index, const Options& options,
                       const Given& given) {
  const Result<std::int32_t> every = whole_number(options, "every", 1, "layers");
  if (!every) return every.error();
  const std::string& schedule = options.at("schedule");
  if (schedule != "each" && schedule != "optimal") {
    return bad_option("schedule", schedule, "each or optimal");
  }
  const bool is_optimal = schedule == "optimal";
  if (is_optimal && (*every > 1 || options.at("run") != "1")) {
    return bad_option("schedule", schedule, "without every and run: it chooses the layers itself");
  }
  if (is_optimal && !given.budget) {
    return Error{ErrorCode::usage, "policy checkpoint: schedule=optimal needs a budget", "", "",
                 "stowage plan with --budget; simulate replays the plan"};
  }
  const std::vector<std::string> layers = largest_kind(index, given);
  if (layers.empty()) {
    const Schema& schema = index.step().recording().schema;
    const bool is_old = schema.major == 1 && schema.minor < simulator::kFirstWithCallables;
    return Error{
        ErrorCode::bad_input, "policy checkpoint: no layer of the recording can run again", "", "",
        is_old ? "it is of schema 1." + std::to_string(schema.minor) + ", before 1." +
                     std::to_string(simulator::kFirstWithCallables) + ": record the step again"
               : "record it again, with layers that are callables"};
  }
  PolicyRules rules{{keep_the_rest()}, {}, {}};
  const Trace& recording = index.step().recording();
  if (is_optimal) {
    Result<std::vector<std::string>> chosen = layers_that_run_again(index, layers, *given.budget);
    if (!chosen) return chosen.error();
    simulator::Structure structure;
    structure.recompute = std::move(chosen).value();
    rules.recompute = simulator::recompute_rules(recording, structure);
    return rules;
  }
  std::int32_t run = 1;
  if (options.at("run") == "sqrt") {
    run = static_cast<std::int32_t>(std::lround(std::sqrt(static_cast<double>(layers.size()))));
  } else {
    const Result<std::int32_t> number = whole_number(options, "run", 1, "layers");
    if (!number) return number.error();
    run = *number;
  }
  if (run > 1 && *every > 1) {
    return bad_option("run", options.at("run"), "with every=1: a segment is layers in a row");
  }
  const auto count = static_cast<std::int32_t>(layers.size());
  const std::string all = count == 1 ? "'" + layers.front() + "' is the only layer of its kind"
                                     : "there are " + std::to_string(count) + " identical layers";
  if (*every > count) {
    rules.notes.push_back("policy checkpoint: " + all + ", so that with every=" +
                          std::to_string(*every) + " the first of them alone runs again");
  }
  if (run > count) {
    rules.notes.push_back("policy checkpoint: " + all + ", fewer than run=" + std::to_string(run));
  }
  simulator::Structure structure;
  for (std::size_t i = 0; i < layers.size(); i += static_cast<std::size_t>(*every)) {
    structure.recompute.push_back(layers[i]);
  }
  rules.recompute = simulator::recompute_rules(recording, structure);
  for (simulator::RecomputeRule& rule : rules.recompute) {
    const auto named = simulator::segments_named(recording, {rule});
    const std::size_t most = named ? named->size() : 1;
    rule.each = std::min(run, static_cast<std::int32_t>(most));
  }
  return rules;
}

}  // namespace stowage::planner::builtin
