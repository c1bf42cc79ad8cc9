// The predictions of tests/golden/predictions once more: all of them with STOWAGE_EVERY_CASE=1 (the
// test with the label `full`), else of the searches, which take nine tenths of the time, every
// fourth. STOWAGE_UPDATE_GOLDEN=1 writes them instead; STOWAGE_PREDICTIONS_TABLE=1 prints what
// differs, what may differ included.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <iostream>
#include <sstream>

#include "cli/verbs.h"
#include "tests/predictions/differences.h"
#include "tests/predictions/golden_answers.h"
#include "tests/predictions/questions.h"

namespace stowage::predictions {
namespace {

std::vector<Difference>& all_differences() {
  static std::vector<Difference> rows;
  return rows;
}

class Table : public ::testing::Environment {
 public:
  void TearDown() override {
    const char* wanted = std::getenv("STOWAGE_PREDICTIONS_TABLE");
    if (wanted == nullptr || std::string(wanted) != "1") return;
    std::vector<Difference> searched;
    std::vector<Difference> exact;
    for (const Difference& row : all_differences())
      (row.question.starts_with("auto") ? searched : exact).push_back(row);
    std::cout << "\nResident, policies and replays of recorded plans\n"
              << table(exact) << "\nauto\n"
              << table(searched) << "\n";
  }
};

const auto* const kTable = ::testing::AddGlobalTestEnvironment(new Table);

void report(const std::vector<Difference>& rows) {
  std::vector<Difference> forbidden;
  for (const Difference& row : rows) {
    if (!row.allowed) forbidden.push_back(row);
    all_differences().push_back(row);
  }
  EXPECT_TRUE(forbidden.empty()) << table(forbidden);
}

// Whether the sample's question number `question` is asked: of a search every fourth sample is, the
// next search of the next ones.
bool asks(const std::string& sample, std::size_t question, bool searched) {
  if (!searched || update_wanted() || std::getenv("STOWAGE_EVERY_CASE") != nullptr) return true;
  const std::vector<std::string> names = sample_names();
  const auto number = std::find(names.begin(), names.end(), sample) - names.begin();
  return (static_cast<std::size_t>(number) + question) % 4 == 0;
}

class Sample : public ::testing::TestWithParam<std::string> {};

TEST_P(Sample, PredictsWhatWasRecorded) {
  const bool update = update_wanted();
  Answers golden = update ? Answers{} : read_answers(GetParam());
  // The recorded floor, so that both searches have the same budget.
  const std::int64_t floor =
      update ? memory_floor(GetParam())
             : golden.at("resident").figures.at("floor_bytes").get<std::int64_t>();
  Answers now;
  const std::vector<Question> list = questions(floor, recorded_of(GetParam()));
  for (std::size_t i = 0; i < list.size(); ++i) {
    const Question& question = list[i];
    SCOPED_TRACE(question.name);
    if (!asks(GetParam(), i, question.searched())) continue;
    now[question.name] = ask(GetParam(), question);
    if (update) continue;
    ASSERT_TRUE(golden.contains(question.name)) << "STOWAGE_UPDATE_GOLDEN=1 adds it";
    report(compare(GetParam(), question, golden.at(question.name), now.at(question.name)));
  }
  if (update) write_answers(GetParam(), now);
  EXPECT_EQ(read_answers(GetParam()).size(), list.size()) << "recorded, and asked no more";
}

// Pages and what shares them take little more than is active at the peak. Of a CPU's recording
// nothing is said.
// Plans that were made for another memory, whose pages nobody looked at, are the worst: up to what
// the planner leaves for the rests of pages.
void expect_placed_tightly(const nlohmann::json& figures, bool is_for_pages) {
  if (figures.at("planned_memory").is_null()) {
    EXPECT_TRUE(figures.at("peak_reserved_bytes").is_null());
    return;
  }
  const auto active = figures.at("peak_active_bytes").get<std::int64_t>();
  const auto planned = figures.at("planned_memory").at("bytes").get<std::int64_t>();
  EXPECT_GE(planned, figures.at("planned_memory").at("lower_bound_bytes").get<std::int64_t>());
  EXPECT_GE(planned, figures.at("peak_requested_bytes").get<std::int64_t>());
  EXPECT_LE(planned, active + std::max<std::int64_t>(active / (is_for_pages ? 100 : 50), 8 << 20));
}

// Apart from the search: a recorded plan, whatever the planner would say now, is worth what it was.
TEST_P(Sample, ReplaysRecordedPlansAsPredicted) {
  for (const auto& [name, answer] : read_answers(GetParam())) {
    SCOPED_TRACE(name);
    nlohmann::json figures = replay(GetParam(), answer);
    expect_placed_tightly(figures,
                          name.starts_with("auto planned") || name.starts_with("resident"));
    figures.erase("planned_memory");
    report(compare_replay(GetParam(), name, answer.figures, figures));
  }
}

std::string name_of(const ::testing::TestParamInfo<std::string>& info) {
  std::string name = info.param;
  std::replace(name.begin(), name.end(), '-', '_');
  return name;
}

INSTANTIATE_TEST_SUITE_P(Predictions, Sample, ::testing::ValuesIn(sample_names()), name_of);

TEST(Predictions, EachSampleIsRecordedAndNoOther) {
  if (update_wanted()) GTEST_SKIP() << "they are being written";
  EXPECT_EQ(recorded_samples(), sample_names());
}

TEST(Predictions, EachPolicyIsAsked) {
  std::ostringstream out;
  std::ostringstream err;
  ASSERT_EQ(cli::run_stowage({"policies", "--json"}, out, err), 0) << err.str();
  std::vector<std::string> asked;
  for (const Question& question : questions(1000, {true, true, true, true, true, true}))
    asked.push_back(question.policy);
  const auto policies = nlohmann::json::parse(out.str()).at("policies");
  EXPECT_GE(policies.size(), 6U);
  for (const auto& policy : policies)
    EXPECT_THAT(asked, ::testing::Contains(policy.at("name").get<std::string>()));
}

}  // namespace
}  // namespace stowage::predictions
