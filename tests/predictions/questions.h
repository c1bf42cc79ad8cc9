// What the `stowage` command is asked about each sample, and its answers: the predictions that must
// not change when the code behind them does. Everything goes through run_stowage(), so no engine
// type is named here.
#pragma once

#include <cstdint>
#include <map>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

namespace stowage::predictions {

// The order of keys is part of a plan's text.
using PlanJson = nlohmann::ordered_json;

struct Question {
  std::string
      name;  // "torchtune:stash=0", "auto 75%", "auto floor+5%": the key in the golden files
  std::string policy;  // of `stowage plan --policy`
  std::string budget;  // of `stowage plan --budget`; empty: without
  // Of `stowage plan --placement`. A budget is on active bytes with "caching", on what is reserved
  // with "planned".
  std::string placement = "caching";
  // The planner's own search: another answer is right when it is no worse. All others repeat
  // exactly.
  [[nodiscard]] bool searched() const { return policy == "auto"; }
};

struct Answer {
  // Flat: exit_code, outcome, budget_bytes, peak_requested_bytes, .., lower_bound_step_ns, gap. Of
  // an infeasible question too: exit_code 1, the floor, and the best that is known.
  nlohmann::json figures;
  std::string
      plan;  // plan_lines(); what `exit_code` 1 comes with is no plan to run, but a text as well
};

using Answers = std::map<std::string, Answer>;  // by the question's name

// All of traces/samples, without folder and ".trace.json.gz", sorted.
[[nodiscard]] std::vector<std::string> sample_names();
[[nodiscard]] std::string sample_file(const std::string& sample);

// The sample's lowest peak of any plan, in active bytes: that of the answer which says that a byte
// is not enough.
[[nodiscard]] std::int64_t memory_floor(const std::string& sample);

// What can be asked about a sample.
struct Recorded {
  bool layers = false;      // they can run again: it says what they are given
  bool ops = false;         // likewise: it says which are primitive
  bool driver = false;      // it says what the process took from a driver
  bool optimizer = false;   // its step updates the parameters
  bool parts = false;       // it has the step in micro-batches, too
  bool attributes = false;  // it is an attribution step
};
[[nodiscard]] Recorded recorded_of(const std::string& sample);

// The same for each sample but for two budgets that are made of its floor, policies that recompute,
// move the optimizer, divide the step or attribute, and planned memory.
[[nodiscard]] std::vector<Question> questions(std::int64_t floor, const Recorded& recorded);

// Throws std::runtime_error with what the command said when it neither answers nor says that
// nothing fits.
[[nodiscard]] Answer ask(const std::string& sample, const Question& question);

// What `stowage simulate --plan` says of the answer's plan: the keys of `figures` that a replay
// has.
[[nodiscard]] nlohmann::json replay(const std::string& sample, const Answer& answer);

// The plan as JSON with one rule a line, without what differs from run to run and from version to
// version: made_by.created, made_by.tool, for.trace_file.
[[nodiscard]] std::string plan_lines(PlanJson plan);

}  // namespace stowage::predictions
