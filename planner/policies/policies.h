// Inside the planner: what planner/policies/*.cpp offer to planner/policy.cpp, and what they share.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "planner/policy.h"
#include "simulator/plan/plan.h"
#include "simulator/step/step_index.h"
#include "traces/result.h"

namespace stowage::planner::builtin {

using Rules = Result<PolicyRules>;

// Values of all of a policy's options: the spec's, else the defaults.
using Options = std::map<std::string, std::string>;

// What some policies ask for beside their options.
struct Given {
  std::optional<PolicyBudget> budget;
  const StructurePool* pool = nullptr;  // of the recording; null: not known yet
};

[[nodiscard]] PolicyInfo resident_info();
[[nodiscard]] Rules resident_rules(const simulator::StepIndex& index, const Options& options);

[[nodiscard]] PolicyInfo save_on_cpu_info();
[[nodiscard]] Rules save_on_cpu_rules(const simulator::StepIndex& index, const Options& options);

[[nodiscard]] PolicyInfo layerwise_info();
[[nodiscard]] Rules layerwise_rules(const simulator::StepIndex& index, const Options& options);

[[nodiscard]] PolicyInfo torchtune_info();
[[nodiscard]] Rules torchtune_rules(const simulator::StepIndex& index, const Options& options);

[[nodiscard]] PolicyInfo thunder_info();
[[nodiscard]] Rules thunder_rules(const simulator::StepIndex& index, const Options& options);

[[nodiscard]] PolicyInfo checkpoint_info();
[[nodiscard]] Rules checkpoint_rules(const simulator::StepIndex& index, const Options& options,
                                     const Given& given);

[[nodiscard]] PolicyInfo fairscale_info();
[[nodiscard]] Rules fairscale_rules(const simulator::StepIndex& index, const Options& options,
                                    const Given& given);

[[nodiscard]] PolicyInfo zero_offload_info();
[[nodiscard]] Rules zero_offload_rules(const simulator::StepIndex& index, const Options& options);

[[nodiscard]] PolicyInfo selective_info();
[[nodiscard]] Rules selective_rules(const simulator::StepIndex& index, const Options& options);

[[nodiscard]] PolicyInfo tail_accumulation_info();
[[nodiscard]] Rules tail_accumulation_rules(const simulator::StepIndex& index,
                                            const Options& options);

[[nodiscard]] PolicyInfo captum_info();
[[nodiscard]] Rules captum_rules(const simulator::StepIndex& index, const Options& options);

// StructurePool::largest_kind(), of the given pool where there is one.
[[nodiscard]] std::vector<std::string> largest_kind(const simulator::StepIndex& index,
                                                    const Given& given);

// {"site": "*", "do": "keep"}, the last rule of a plan.
[[nodiscard]] simulator::SavedRule keep_the_rest();

// Adds the rule unless it would match nothing in this trace, which is an error in a plan.
void add_if_it_matches(const simulator::StepIndex& index, const simulator::SavedRule& rule,
                       std::vector<simulator::SavedRule>& rules);

// "option stash: ..": usage error about an option's value.
[[nodiscard]] Error bad_option(const std::string& name, const std::string& value,
                               const std::string& hint);
// An option that is a whole number, `least` or more; `what` it counts is said where it is none.
[[nodiscard]] Result<std::int32_t> whole_number(const Options& options, const std::string& name,
                                                std::int32_t least, const std::string& what);

}  // namespace stowage::planner::builtin
