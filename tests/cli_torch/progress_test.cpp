// What the commands that run a model say while they do, on a terminal, and that they need no
// stream.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "tests/cli/main_job.h"

namespace stowage::cli_tests {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

class Progress : public ::testing::Test {
 protected:
  void SetUp() override {
    job_.profile("mlp:layers=2,width=32", "4", "none");
    job_.make_plan({"--budget", "90%"});
  }
  static Outcome on_terminal(std::vector<std::string> args) {
    Command command;
    command.args = std::move(args);
    command.terminal_columns = 60;
    Outcome outcome = run(command);
    EXPECT_EQ(outcome.code, 0) << outcome.err;
    return outcome;
  }
  std::vector<std::string> check_args() const {
    return {"check", "--plan", job_.plan, "--budget", "1GB"};
  }

  MainJob job_;
};

TEST_F(Progress, NamesTheRunThatIsGoingOn) {
  const std::string verify = on_terminal({"verify", "--plan", job_.plan}).err;
  const std::size_t planned = verify.find("stowage: the planned run ..");
  const std::size_t reference = verify.find("stowage: the reference ..");
  EXPECT_LT(planned, reference) << verify;
  EXPECT_NE(verify.find("stowage: the reference ..", reference + 1), std::string::npos) << verify;
  EXPECT_THAT(on_terminal({"execute", "--plan", job_.plan}).err,
              HasSubstr("stowage: the planned run .."));
  EXPECT_THAT(on_terminal(check_args()).err, HasSubstr("stowage: the checked run .."));
  const std::string profile =
      on_terminal({"profile", "mlp:layers=2,width=32", "--batch", "4", "--device", "cpu", "-o",
                   job_.folder.file("again.json.gz")})
          .err;
  EXPECT_THAT(profile, HasSubstr("stowage: clean steps and calibration of the copy lanes .."));
  EXPECT_THAT(profile, HasSubstr("stowage: observed steps .."));
}

TEST_F(Progress, IsSilentWhereItIsNotAskedFor) {
  EXPECT_EQ(stowage({"verify", "--plan", job_.plan}).err, "");
  EXPECT_EQ(stowage(check_args()).err, "");
  EXPECT_EQ(on_terminal({"verify", "--plan", job_.plan, "--quiet"}).err, "");
}

TEST_F(Progress, EachAnswerSaysOfWhichStepItIs) {
  const std::string again = job_.folder.file("again.json.gz");
  for (const std::vector<std::string>& args : std::vector<std::vector<std::string>>{
           {"profile", "mlp:layers=2,width=32", "--batch", "4", "--device", "cpu", "-o", again},
           {"simulate", job_.trace},
           {"plan", job_.trace, "--budget", "90%"},
           {"verify", "--plan", job_.plan},
           {"execute", "--plan", job_.plan},
           check_args()}) {
    SCOPED_TRACE(args.front());
    std::vector<std::string> words = args;
    words.emplace_back("--json");
    const auto answer = nlohmann::json::parse(stowage(words).out);
    EXPECT_EQ(answer.at("model").get<std::string>().rfind("mlp:", 0), 0U);
    EXPECT_EQ(answer.at("batch"), 4);
    EXPECT_EQ(answer.at("dtype"), "fp32");
    EXPECT_EQ(answer.at("device"), "cpu");
    EXPECT_EQ(answer.at("optimizer"), "none");
    EXPECT_TRUE(answer.at("autocast").is_null());
  }
}

// A child's results went where stderr had been.
TEST_F(Progress, NoStreamIsNeeded) {
  const std::vector<std::vector<std::string>> commands = {
      {"profile", "mlp:layers=2,width=32", "--batch", "4", "--device", "cpu", "--threads", "1",
       "-o", job_.folder.file("again.json.gz")},
      {"verify", "--plan", job_.plan},
      {"execute", "--plan", job_.plan},
      check_args()};
  for (const std::vector<std::string>& args : commands) {
    SCOPED_TRACE(args.front());
    Command command;
    command.args = args;
    command.closed = {0, 2};
    EXPECT_EQ(run(command).code, 0);
    command.closed = {1};
    const Outcome without_stdout = run(command);
    EXPECT_EQ(without_stdout.code, 4);
    EXPECT_EQ(without_stdout.err, "stowage: error: stdout: it is closed\n");
    command.closed = {0, 1, 2};
    EXPECT_EQ(run(command).code, 4);
  }
}

}  // namespace
}  // namespace stowage::cli_tests
