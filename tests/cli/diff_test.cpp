// `stowage diff`: exit codes, JSON and text; what is compared is tests/report/diff_test.cpp's.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <random>
#include <sstream>

#include "cli/verbs.h"
#include "tests/cli/process.h"
#include "tests/support/small_trace.h"
#include "traces/trace_file.h"
#include "traces/trace_json.h"

namespace stowage::cli_tests {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;
using testing::small_trace;
using Json = nlohmann::json;

class DiffVerb : public ::testing::Test {
 protected:
  void SetUp() override {
    two_ = folder_.file("two.json.gz");
    three_ = folder_.file("three.json");
    ASSERT_TRUE(save_trace(two_, small_trace(2)).ok());
    ASSERT_TRUE(save_trace(three_, small_trace(3)).ok());
  }
  static Outcome diff(const std::vector<std::string>& args) {
    std::ostringstream out;
    std::ostringstream err;
    const int code = cli::verb_diff(args, out, err);
    return {code, out.str(), err.str()};
  }

  TemporaryFolder folder_;
  std::string two_;
  std::string three_;
};

TEST_F(DiffVerb, ADifferenceIsAnAnswerNotAFailure) {
  const Outcome other = diff({two_, three_});
  EXPECT_EQ(other.code, 0) << other.err;
  EXPECT_THAT(other.out, HasSubstr("Two traces: "));
  EXPECT_THAT(other.out, HasSubstr("peak_requested_bytes"));
  const Outcome same = diff({two_, two_});
  EXPECT_EQ(same.code, 0);
  EXPECT_THAT(same.out, HasSubstr("0 changes"));
}

TEST_F(DiffVerb, JsonListsEveryChangeWithDifferences) {
  const Outcome outcome = diff({two_, three_, "--json"});
  ASSERT_EQ(outcome.code, 0) << outcome.err;
  const Json json = Json::parse(outcome.out);
  EXPECT_EQ(json["schema"], "stowage-diff/1");
  EXPECT_EQ(json["kind"], "trace");
  EXPECT_EQ(json["before"], two_);
  EXPECT_EQ(json["equal"], false);
  bool found = false;
  for (const Json& change : json["changes"]) {
    if (change["name"] != "peak_requested_bytes") continue;
    found = true;
    EXPECT_EQ(change["unit"], "bytes");
    EXPECT_EQ(change["difference"].get<std::int64_t>(),
              change["after"].get<std::int64_t>() - change["before"].get<std::int64_t>());
    EXPECT_DOUBLE_EQ(change["relative"].get<double>(),
                     change["difference"].get<double>() / change["before"].get<double>());
  }
  EXPECT_TRUE(found);
  EXPECT_EQ(Json::parse(diff({two_, two_, "--json"}).out)["equal"], true);
}

TEST_F(DiffVerb, TopCutsTablesAndSaysSo) {
  const Outcome outcome = diff({two_, three_, "--top", "1"});
  EXPECT_EQ(outcome.code, 0);
  EXPECT_THAT(outcome.out, HasSubstr("more (--top N shows them)"));
  EXPECT_EQ(diff({two_, three_, "--top", "0"}).code, 2);
}

TEST_F(DiffVerb, TakesAnswersOfVerbs) {
  const auto answer = [&](const std::string& name, const std::string& policy) {
    std::ostringstream out;
    std::ostringstream err;
    EXPECT_EQ(cli::verb_simulate({three_, "--policy", policy, "--json"}, out, err), 0);
    return folder_.write(name, out.str());
  };
  const std::string a = answer("a.json", "resident");
  const std::string b = answer("b.json", "save_on_cpu");
  const Outcome outcome = diff({a, b, "--json"});
  ASSERT_EQ(outcome.code, 0) << outcome.err;
  const Json json = Json::parse(outcome.out);
  EXPECT_EQ(json["kind"], "simulate");
  bool found = false;
  for (const Json& change : json["changes"]) {
    if (change["name"] != "step_ns") continue;
    found = true;
    EXPECT_EQ(change["difference"], 1'500'000);  // 6 blocking copies of 0.25 ms
  }
  EXPECT_TRUE(found);
  const std::string text = diff({a, b}).out;
  EXPECT_THAT(text, HasSubstr("Two answers of simulate"));
  // Each section is one table, wherever its facts stand.
  EXPECT_EQ(text.find("\nwhole\n"), text.rfind("\nwhole\n")) << text;
}

TEST_F(DiffVerb, MixedKindsAreAUsageError) {
  const std::string plan = folder_.write("p.json", R"({"schema": "stowage-plan/1"})");
  const Outcome outcome = diff({two_, plan});
  EXPECT_EQ(outcome.code, 2);
  EXPECT_THAT(outcome.err, HasSubstr("is a trace"));
  EXPECT_THAT(outcome.err, HasSubstr("is a plan"));
  EXPECT_EQ(diff({"-", "-"}).code, 2);
  EXPECT_EQ(diff({two_}).code, 2);
}

// One clear line and exit 3, whatever the bytes are.
TEST_F(DiffVerb, DamagedFilesAreBadInput) {
  EXPECT_EQ(diff({two_, folder_.file("none.json")}).code, 3);
  std::mt19937_64 dice(5);
  const std::string good = trace_to_json(small_trace(1));
  for (int i = 0; i < 60; ++i) {
    std::string bad(dice() % 200, '\0');
    for (char& c : bad) c = static_cast<char>(dice());
    if (i % 2 == 1) bad = good.substr(0, dice() % good.size());
    const Outcome outcome = diff({two_, folder_.write("bad.json", bad)});
    ASSERT_EQ(outcome.code, 3) << i << outcome.err;
    ASSERT_EQ(count_lines(outcome.err), 1) << outcome.err;
    ASSERT_THAT(outcome.err, HasSubstr("bad.json: "));
  }
  const Outcome json = diff({two_, folder_.write("bad.json", "x"), "--json"});
  EXPECT_EQ(Json::parse(json.out)["error"]["exit_code"], 3);
}

// Names of a foreign file do not move the cursor.
TEST_F(DiffVerb, ControlCharactersAreNotPrinted) {
  const auto result = [&](const std::string& name, const char* value) {
    return folder_.write(name, std::string(R"({"schema": "stowage-x/1", "a\u001b[2J": ")") + value +
                                   R"(\u001b[31m"})");
  };
  const Outcome outcome = diff({result("a.json", "1"), result("b.json", "2")});
  EXPECT_EQ(outcome.code, 0) << outcome.err;
  EXPECT_THAT(outcome.out, Not(HasSubstr("\x1b")));
  EXPECT_THAT(outcome.out, HasSubstr("1 change"));
}

}  // namespace
}  // namespace stowage::cli_tests
