// The real command on text that would move a terminal's cursor, that is no text, or that has no
// end.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "tests/cli/process.h"
#include "tests/support/small_trace.h"
#include "traces/file_io.h"
#include "traces/trace_file.h"

namespace stowage::cli_tests {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;
using testing::small_trace;
using Json = nlohmann::json;

const std::string kTitle = "\x1b]0;owned\x07";  // sets a window's title
const std::string kMegabyte(1 << 20, 'x');

bool is_plain(const std::string& text) {
  for (const char c : text) {
    const auto byte = static_cast<unsigned char>(c);
    if ((byte < 0x20 && c != '\n') || byte >= 0x7F) return false;
  }
  return true;
}

class HostileText : public ::testing::Test {
 protected:
  void SetUp() override {
    trace_ = folder_.file("t.json.gz");
    ASSERT_TRUE(save_trace(trace_, small_trace(3)).ok());
  }

  // What the command prints on either stream is short ASCII.
  static Outcome expect_plain(const std::vector<std::string>& args, const std::string& input = {}) {
    Command command;
    command.args = args;
    command.input = input;
    command.environment = {"LC_ALL=C"};  // a curve without block characters
    Outcome outcome = run(command);
    EXPECT_TRUE(is_plain(outcome.out)) << outcome.out;
    EXPECT_TRUE(is_plain(outcome.err)) << outcome.err;
    EXPECT_LT(outcome.err.size(), 5000U) << args.front();
    return outcome;
  }

  TemporaryFolder folder_;
  std::string trace_;
};

TEST_F(HostileText, InAnswersThatAreCompared) {
  const auto answer = [](const std::string& name, int bytes) {
    return Json({{"schema", "stowage-check/1"}, {"model", name}, {"peak_requested_bytes", bytes}})
        .dump();
  };
  const std::string a = folder_.write("a.json", answer("m" + kTitle, 1));
  const std::string b = folder_.write("b.json", answer("n\x1b[2J", 2));
  const Outcome outcome = expect_plain({"diff", a, b});
  EXPECT_EQ(outcome.code, 0);
  EXPECT_THAT(outcome.out, HasSubstr("m?]0;owned?"));
}

TEST_F(HostileText, InPlans) {
  const auto simulate = [&](const Json& plan) {
    return expect_plain({"simulate", trace_, "--plan", "-"}, plan.dump());
  };
  Json plan = {{"schema", "stowage-plan/1"}};
  plan["saved"] = {{{"site", "layers.*" + kTitle + "*"}, {"do", "offload"}}};
  EXPECT_THAT(simulate(plan).err, HasSubstr("/saved/0"));
  plan["saved"] = {{{"site", "*"}, {"do", kTitle + kMegabyte}}};
  EXPECT_EQ(simulate(plan).code, 3);
  plan["saved"] = Json::array();
  plan["for"] = {{"model", "m\x1b[2J" + kMegabyte}};
  EXPECT_EQ(simulate(plan).code, 3);
  plan["for"] = {{"model" + kTitle + kMegabyte, 1}};
  EXPECT_EQ(simulate(plan).code, 3);
  plan = {{"schema", "stowage-plan/1" + kTitle}};
  EXPECT_EQ(simulate(plan).code, 3);
}

TEST_F(HostileText, InArguments) {
  for (const std::string& word : {std::string("\xff\xfe"), kTitle, kMegabyte.substr(0, 100'000)}) {
    EXPECT_EQ(expect_plain({"inspect", word}).code, 3);
    EXPECT_EQ(expect_plain({word}).code, 2);
    EXPECT_EQ(expect_plain({"inspect", trace_, "--" + word}).code, 2);
    EXPECT_EQ(expect_plain({"inspect", trace_, "--at", word}).code, 2);
    EXPECT_EQ(expect_plain({"inspect", trace_, "--top", word}).code, 2);
    EXPECT_EQ(expect_plain({"inspect", trace_, "--color", word}).code, 2);
    EXPECT_EQ(expect_plain({"plan", trace_, "--budget", word}).code, 2);
    EXPECT_EQ(expect_plain({"simulate", trace_, "--policy", word}).code, 2);
    EXPECT_EQ(expect_plain({"simulate", trace_, "--set", word}).code, 2);
  }
}

TEST_F(HostileText, InTheNamesOfFilesThatAreWritten) {
  const std::string output = folder_.file("p\x1b[2J\xff.json");
  const Outcome outcome = expect_plain({"plan", trace_, "--budget", "70%", "-o", output});
  EXPECT_EQ(outcome.code, 0) << outcome.err;
  EXPECT_THAT(outcome.out, HasSubstr("p?[2J?.json"));
  EXPECT_EQ(expect_plain({"export", trace_, "-o", folder_.file("\x1b[2J.svg")}).code, 0);
  EXPECT_EQ(expect_plain({"simulate", trace_, "--plan", output, "--color", "never"}).code, 0);
}

TEST_F(HostileText, InJsonErrors) {
  const Outcome outcome = stowage({"inspect", kTitle + kMegabyte.substr(0, 100'000), "--json"});
  EXPECT_EQ(outcome.code, 3);
  const Json error = Json::parse(outcome.out).at("error");
  EXPECT_THAT(error.at("where").get<std::string>(), HasSubstr("?]0;owned?xxx"));
  EXPECT_LT(outcome.out.size(), 5000U);
}

}  // namespace
}  // namespace stowage::cli_tests
