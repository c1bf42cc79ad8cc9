#include "planner/policy.h"

#include <algorithm>
#include <charconv>
#include <cstddef>
#include <utility>

#include "planner/policies/policies.h"
#include "planner/structure_pool.h"
#include "simulator/plan/rule_match.h"
#include "traces/nearest.h"

namespace stowage::planner {
namespace {

using builtin::Options;

struct Entry {
  PolicyInfo info;
  builtin::Rules (*rules)(const simulator::StepIndex&, const Options&);  // null for `auto`
  // Of a policy that may ask for more, in the place of `rules`.
  builtin::Rules (*rules_given)(const simulator::StepIndex&, const Options&,
                                const builtin::Given&) = nullptr;
};

const std::vector<Entry>& entries() {
  static const std::vector<Entry> all = {
      {builtin::resident_info(), builtin::resident_rules},
      {builtin::save_on_cpu_info(), builtin::save_on_cpu_rules},
      {builtin::layerwise_info(), builtin::layerwise_rules},
      {builtin::torchtune_info(), builtin::torchtune_rules},
      {builtin::thunder_info(), builtin::thunder_rules},
      {builtin::fairscale_info(), nullptr, builtin::fairscale_rules},
      {builtin::zero_offload_info(), builtin::zero_offload_rules},
      {builtin::checkpoint_info(), nullptr, builtin::checkpoint_rules},
      {builtin::selective_info(), builtin::selective_rules},
      {builtin::tail_accumulation_info(), builtin::tail_accumulation_rules},
      {builtin::captum_info(), builtin::captum_rules},
      {{"auto", "The planner: the fastest plan that it finds within the budget", {}}, nullptr},
  };
  return all;
}

Error unknown(const std::string& what, const std::string& name,
              const std::vector<std::string>& known) {
  const std::string near = nearest(name, known);
  std::string hint;
  if (!near.empty()) {
    hint = "did you mean '" + near + "'?";
  } else if (known.empty()) {
    hint = "it has none";
  } else {
    for (const std::string& item : known) hint += (hint.empty() ? "one of " : ", ") + item;
  }
  return {ErrorCode::usage, "unknown " + what + " '" + name + "'", "", "", hint};
}

Result<Options> parse_options(const PolicyInfo& policy, const std::string& text) {
  Options options;
  Options given;
  std::vector<std::string> known;
  for (const PolicyOption& option : policy.options) {
    options[option.name] = option.default_value;
    known.push_back(option.name);
  }
  for (std::size_t start = 0; start < text.size();) {
    const std::size_t comma = std::min(text.find(',', start), text.size());
    const std::string item = text.substr(start, comma - start);
    start = comma + 1;
    const std::size_t equals = item.find('=');
    const std::string name = item.substr(0, equals);
    const auto found = options.find(name);
    if (found == options.end()) {
      return unknown("option of policy " + policy.name, name, known);
    }
    if (equals == std::string::npos) {
      return Error{ErrorCode::usage, "option '" + name + "' has no value", "", "",
                   "write " + name + "=" + found->second};
    }
    if (!given.emplace(name, "").second) {
      return Error{ErrorCode::usage, "option '" + name + "' stands twice", "", "", "give it once"};
    }
    found->second = item.substr(equals + 1);
  }
  return options;
}

}  // namespace

const std::vector<PolicyInfo>& policies() {
  static const std::vector<PolicyInfo> infos = [] {
    std::vector<PolicyInfo> out;
    for (const Entry& entry : entries()) out.push_back(entry.info);
    return out;
  }();
  return infos;
}

std::string policy_name(const std::string& spec) {
  return spec.substr(0, spec.find(':'));
}

Result<PolicyRules> policy_rules(const simulator::StepIndex& index, const std::string& spec,
                                 const std::optional<PolicyBudget>& budget,
                                 const StructurePool* pool) {
  const std::string name = policy_name(spec);
  std::vector<std::string> known;
  for (const Entry& entry : entries()) {
    known.push_back(entry.info.name);
    if (entry.info.name != name) continue;
    if (spec.size() == name.size() + 1) {
      return Error{ErrorCode::usage, "policy '" + spec + "' names no option", "", "",
                   "leave the colon out"};
    }
    auto options = parse_options(
        entry.info, spec.size() > name.size() ? spec.substr(name.size() + 1) : std::string());
    if (!options) return options.error();
    if (entry.rules_given != nullptr) return entry.rules_given(index, *options, {budget, pool});
    if (entry.rules == nullptr) {
      return Error{ErrorCode::usage, "policy 'auto' has no rules of its own", "", "",
                   "stowage plan --budget finds its plan"};
    }
    return entry.rules(index, *options);
  }
  return unknown("policy", name, known);
}

Error of_policy(const std::string& spec, Error error) {
  if (error.pointer.empty()) return error;
  error.pointer.clear();
  error.message = "policy " + spec + ": " + error.message;
  error.hint = "another option of the policy (stowage policies lists them), or --policy auto";
  return error;
}

}  // namespace stowage::planner

namespace stowage::planner::builtin {

std::vector<std::string> largest_kind(const simulator::StepIndex& index, const Given& given) {
  return given.pool != nullptr ? given.pool->largest_kind() : StructurePool(index).largest_kind();
}

simulator::SavedRule keep_the_rest() {
  simulator::SavedRule rule;
  rule.site = "*";
  return rule;
}

void add_if_it_matches(const simulator::StepIndex& index, const simulator::SavedRule& rule,
                       std::vector<simulator::SavedRule>& rules) {
  const Trace& trace = index.trace();
  const auto matcher = simulator::RuleMatcher::make(trace, rule);
  for (std::size_t s = 0; matcher && s < trace.saved.size(); ++s) {
    if (matcher->matches(SavedId(s))) {
      rules.push_back(rule);
      return;
    }
  }
}

Error bad_option(const std::string& name, const std::string& value, const std::string& hint) {
  return {ErrorCode::usage, "option " + name + ": '" + value + "' is not usable", "", "", hint};
}

Result<std::int32_t> whole_number(const Options& options, const std::string& name,
                                  std::int32_t least, const std::string& what) {
  const std::string& text = options.at(name);
  std::int32_t value = 0;
  const auto [end, status] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (status != std::errc() || end != text.data() + text.size() || value < least) {
    return bad_option(name, text,
                      "a number of " + what + ", " + std::to_string(least) + " or more");
  }
  return value;
}

}  // namespace stowage::planner::builtin
