// Policies: known systems as plans, each in its own file under planner/policies/. A policy is a
// function from a trace and options to rules; it sees a budget only where its system has one.
// `auto`, the planner itself, is listed with them and has no rules of its own.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "simulator/plan/plan.h"
#include "simulator/step/step_index.h"
#include "traces/result.h"
#include "traces/units.h"

namespace stowage::planner {

class StructurePool;

struct PolicyOption {
  std::string name;
  std::string default_value;  // as it is written in a spec
  std::string help;
};

// Whether a policy's plans run the step in micro-batches; those have to be recorded.
enum class Divides : std::uint8_t { never, on_request, always };

struct PolicyInfo {
  std::string name;
  std::string summary;  // one line, no full stop
  std::vector<PolicyOption> options;
  bool recomputes = false;  // its plans let segments run again
  Divides divides = Divides::never;
};

// What a policy decides, as it stands in a plan.
struct PolicyRules {
  std::vector<simulator::SavedRule> saved;
  std::optional<simulator::ParameterPlan> parameters;
  std::optional<Bytes> automatic;  // PlanBudget::automatic: 0 = at once and on demand
  std::vector<simulator::RecomputeRule> recompute{};
  std::vector<simulator::OptimizerRule> optimizer{};
  std::vector<simulator::GradientRule> gradients{};
  // The other rules are of the step in these; it was recorded so.
  std::vector<simulator::MicroBatchRule> micro_batches{};
  std::vector<std::string> notes{};  // what of the system these rules leave out in this trace
};

// What a plan has to stay within.
struct PolicyBudget {
  Bytes bytes = 0;
  simulator::PeakKind on = simulator::PeakKind::active;
};

// All of them in the order of listing: resident, save_on_cpu, layerwise, torchtune, thunder,
// fairscale, zero_offload, checkpoint, selective, tail_accumulation, captum, auto.
[[nodiscard]] const std::vector<PolicyInfo>& policies();

// "torchtune:stash=5,min_bytes=1KiB" -> "torchtune".
[[nodiscard]] std::string policy_name(const std::string& spec);

// The rules of a policy for this trace. `pool`: of that, where the caller has one. Usage errors: an
// unknown policy or option (with the nearest name), a value that does not parse, a policy that
// needs a budget without one, `auto` (it needs one: planner/planner.h).
[[nodiscard]] Result<PolicyRules> policy_rules(const simulator::StepIndex& index,
                                               const std::string& spec,
                                               const std::optional<PolicyBudget>& budget = {},
                                               const StructurePool* pool = nullptr);

// An error about a policy's rules in the words of one who wrote none: they are in no file.
[[nodiscard]] Error of_policy(const std::string& spec, Error error);

}  // namespace stowage::planner
