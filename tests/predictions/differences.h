// What differs between two answers to one question, and whether it may.
#pragma once

#include <string>
#include <vector>

#include "tests/predictions/questions.h"

namespace stowage::predictions {

struct Difference {
  std::string sample;
  std::string question;
  std::string field;  // a key of Answer::figures, or "plan line N"
  std::string golden;
  std::string now;
  bool allowed = false;
};

// Without a difference empty. A policy's answer must be the same in every figure and in the plan's
// text. A searched one may differ as long as it is no worse: what had a plan has one, within the
// budget, with a step that takes no longer and a lower bound that is not above it.
[[nodiscard]] std::vector<Difference> compare(const std::string& sample, const Question& question,
                                              const Answer& golden, const Answer& now);

// Only the keys of `now`, all of which must be the same.
[[nodiscard]] std::vector<Difference> compare_replay(const std::string& sample,
                                                     const std::string& question,
                                                     const nlohmann::json& golden,
                                                     const nlohmann::json& now);

// Columns for a terminal; says so when there are no rows.
[[nodiscard]] std::string table(const std::vector<Difference>& rows);

}  // namespace stowage::predictions
