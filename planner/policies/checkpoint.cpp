// Layers keep what they are given alone and run again in backward: torch.utils.checkpoint around
// each layer (use_reentrant=False, early stop), checkpoint_sequential with `run`, whose default
// there is a number of segments. "sqrt" is Chen et al., "Training Deep Nets with Sublinear Memory
// Cost" (2016): segments of about as many layers as there are segments.
//
// Approximated: which layers a user would wrap is not recorded; the identical layers that free the
// most bytes are taken.
#include <charconv>
#include <cmath>
#include <string>

#include "planner/policies/policies.h"
#include "planner/structure_pool.h"
#include "simulator/step/plan_structure.h"

namespace stowage::planner::builtin {
namespace {

Result<std::int32_t> number(const Options& options, const std::string& name) {
  const std::string& text = options.at(name);
  std::int32_t value = 0;
  const auto [end, status] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (status != std::errc() || end != text.data() + text.size() || value < 1) {
    return bad_option(name, text, "a number of layers, 1 or more");
  }
  return value;
}

}  // namespace

PolicyInfo checkpoint_info() {
  return {"checkpoint",
          "Each layer keeps what it is given alone and runs again in backward",
          {{"every", "1", "of the identical layers every Nth runs again"},
           {"run", "1", "layers in a segment, which runs again as one; sqrt: their number's root"}},
          true};
}

Rules checkpoint_rules(const simulator::StepIndex& index, const Options& options) {
  const Result<std::int32_t> every = number(options, "every");
  if (!every) return every.error();
  const std::vector<std::string> layers = StructurePool(index).largest_kind();
  if (layers.empty()) {
    return Error{ErrorCode::bad_input, "policy checkpoint: no layer of the recording can run again",
                 "", "", "record it again, with layers that are callables"};
  }
  std::int32_t run = 1;
  if (options.at("run") == "sqrt") {
    run = static_cast<std::int32_t>(std::lround(std::sqrt(static_cast<double>(layers.size()))));
  } else {
    const Result<std::int32_t> given = number(options, "run");
    if (!given) return given.error();
    run = *given;
  }
  if (run > 1 && *every > 1) {
    return bad_option("run", options.at("run"), "with every=1: a segment is layers in a row");
  }
  simulator::Structure structure;
  for (std::size_t i = 0; i < layers.size(); i += static_cast<std::size_t>(*every)) {
    structure.recompute.push_back(layers[i]);
  }
  PolicyRules rules{{keep_the_rest()}, {}, {}};
  rules.recompute = simulator::recompute_rules(index.step().recording(), structure);
  for (simulator::RecomputeRule& rule : rules.recompute) rule.each = run;
  return rules;
}

}  // namespace stowage::planner::builtin
