// What the verbs that replay a trace take: --plan P, --policy NAME, --placement MODE and --set
// NAME=VALUE.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "report/simulation.h"
#include "simulator/plan/plan.h"
#include "simulator/step/step_index.h"
#include "traces/result.h"
#include "traces/trace_file.h"

namespace stowage::cli {

struct ChosenPlan {
  std::optional<std::string> plan_file;
  std::optional<std::string> policy;  // absent without a plan: resident
  std::vector<std::string> settings;
  // --placement: absent = the plan's; of a policy, the usual one of the trace's device.
  std::optional<std::string> placement;

  // "plan p.json", "policy torchtune"
  [[nodiscard]] std::string title() const;
};

// Errors of the options themselves, ahead of any work: usage.
[[nodiscard]] Status check_choice(const ChosenPlan& choice, const std::string& trace_file);

// Applies --set to the trace's calibration. Errors: usage.
[[nodiscard]] Status apply_settings(const std::vector<std::string>& settings, Trace& trace);

struct ChosenReplay {
  simulator::Plan plan;           // with its budget in bytes
  report::Simulation simulation;  // its notes begin with those of the policy
};
// `sha256` is the trace's (LoadedTrace). Errors: a plan that cannot be read or was made for another
// trace, an unknown policy or placement, a budget that is none, those of report::simulate().
[[nodiscard]] Result<ChosenReplay> replay_choice(const ChosenPlan& choice,
                                                 const simulator::StepIndex& index,
                                                 const std::string& sha256);

}  // namespace stowage::cli
