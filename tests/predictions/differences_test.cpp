#include "tests/predictions/differences.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace stowage::predictions {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

const Question kPolicy{"torchtune", "torchtune", ""};
const Question kSearch{"auto 60%", "auto", "60%"};

Answer answer() {
  return {{{"exit_code", 0},
           {"budget_bytes", 600},
           {"peak_active_bytes", 590},
           {"step_ns", 1100},
           {"lower_bound_step_ns", 1000}},
          "{\n\"saved\": [\n{\"do\":\"keep\"}\n]\n}"};
}

Answer with(const std::string& key, const nlohmann::json& value) {
  Answer changed = answer();
  changed.figures[key] = value;
  return changed;
}

// "field+" for a difference that may be, "field-" for one that may not.
std::vector<std::string> verdicts(const Question& question, const Answer& golden,
                                  const Answer& now) {
  std::vector<std::string> fields;
  for (const Difference& row : compare("mlp", question, golden, now)) {
    EXPECT_EQ(row.sample, "mlp");
    EXPECT_EQ(row.question, question.name);
    fields.push_back(row.field + (row.allowed ? "+" : "-"));
  }
  return fields;
}

TEST(Differences, TheSameIsNone) {
  EXPECT_THAT(verdicts(kPolicy, answer(), answer()), IsEmpty());
  EXPECT_THAT(verdicts(kSearch, answer(), answer()), IsEmpty());
}

TEST(Differences, APolicyRepeatsToTheNanosecondEvenWhereLessIsBetter) {
  EXPECT_THAT(verdicts(kPolicy, answer(), with("step_ns", 1099)), ElementsAre("step_ns-"));
  EXPECT_THAT(verdicts(kPolicy, answer(), with("peak_active_bytes", 589)),
              ElementsAre("peak_active_bytes-"));
  EXPECT_THAT(verdicts(kPolicy, with("host_bytes", 5), answer()), ElementsAre("host_bytes-"));
  EXPECT_THAT(verdicts(kPolicy, answer(), with("host_bytes", 5)), ElementsAre("host_bytes-"));
}

TEST(Differences, APlanIsComparedLineByLine) {
  Answer other = answer();
  other.plan = "{\n\"saved\": [\n{\"do\":\"offload\"}\n]\n}";
  EXPECT_THAT(verdicts(kPolicy, answer(), other), ElementsAre("plan line 3-"));
  EXPECT_THAT(verdicts(kSearch, answer(), other), ElementsAre("plan line 3+"));
  Answer longer = answer();
  longer.plan += "\n";
  longer.plan += "more";
  const auto rows = compare("mlp", kPolicy, answer(), longer);
  ASSERT_EQ(rows.size(), 1U);
  EXPECT_EQ(rows[0].golden, "(end)");
  EXPECT_EQ(rows[0].now, "more");
}

TEST(Differences, ASearchMayOnlyGetBetter) {
  EXPECT_THAT(verdicts(kSearch, answer(), with("step_ns", 1099)), ElementsAre("step_ns+"));
  EXPECT_THAT(verdicts(kSearch, answer(), with("step_ns", 1101)), ElementsAre("step_ns-"));
  EXPECT_THAT(verdicts(kSearch, answer(), with("peak_active_bytes", 600)),
              ElementsAre("peak_active_bytes+"));
  EXPECT_THAT(verdicts(kSearch, answer(), with("peak_active_bytes", 601)),
              ElementsAre("peak_active_bytes-"));
  // A step below its own lower bound is a bound that is none.
  EXPECT_THAT(verdicts(kSearch, answer(), with("lower_bound_step_ns", 1101)),
              ElementsAre("lower_bound_step_ns-"));
  // Another budget is another question.
  EXPECT_THAT(verdicts(kSearch, answer(), with("budget_bytes", 700)), ElementsAre("budget_bytes-"));
}

TEST(Differences, WhatHadAPlanHasOne) {
  EXPECT_THAT(verdicts(kSearch, answer(), with("exit_code", 1)), ElementsAre("exit_code-"));
  EXPECT_THAT(verdicts(kSearch, with("exit_code", 1), answer()), ElementsAre("exit_code+"));
  // Of what fits neither then nor now, the step is no prediction.
  Answer now = with("exit_code", 1);
  now.figures["step_ns"] = 2000;
  EXPECT_THAT(verdicts(kSearch, with("exit_code", 1), now), ElementsAre("step_ns+"));
}

// An answer that was over the budget when it was recorded is still wrong.
TEST(Differences, OverTheBudgetIsWrongEvenIfItWasRecorded) {
  const Answer over = with("peak_active_bytes", 601);
  EXPECT_THAT(verdicts(kSearch, over, over), ElementsAre("peak_active_bytes-"));
}

TEST(Differences, AReplayIsComparedInWhatItSays) {
  const nlohmann::json golden = {{"step_ns", 7}, {"exit_code", 0}, {"stall_ns", 1}};
  EXPECT_THAT(compare_replay("mlp", "auto 60%", golden, {{"step_ns", 7}, {"stall_ns", 1}}),
              IsEmpty());
  const auto rows = compare_replay("mlp", "auto 60%", golden, {{"step_ns", 6}, {"stall_ns", 1}});
  ASSERT_EQ(rows.size(), 1U);
  EXPECT_EQ(rows[0].question, "replay of auto 60%");
  EXPECT_FALSE(rows[0].allowed);
}

TEST(Differences, TheTableSaysWhatWasAndWhatIs) {
  EXPECT_EQ(table({}), "No difference.\n");
  const std::string text = table(compare("mlp", kPolicy, answer(), with("step_ns", 1099)));
  EXPECT_THAT(text, HasSubstr("mlp     torchtune  step_ns  1100    1099  NOT ALLOWED\n"));
}

TEST(Differences, OfALongLineTheTableShowsWhereItDiffers) {
  const std::string same(200, 'x');
  const std::string text =
      table({{"mlp", "resident", "plan line 3", same + "A", same + "B", false}});
  EXPECT_THAT(text, HasSubstr(".." + std::string(30, 'x') + "A  "));
  EXPECT_THAT(text, HasSubstr(".." + std::string(30, 'x') + "B  "));
}

}  // namespace
}  // namespace stowage::predictions
