// Ctrl-C: exit 130, one line, nothing half-written.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <csignal>
#include <nlohmann/json.hpp>

#include "tests/cli/process.h"
#include "tests/support/small_trace.h"
#include "traces/trace_file.h"

namespace stowage::cli_tests {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;
using testing::small_trace;

class Interrupt : public ::testing::Test {
 protected:
  void SetUp() override { trace_ = folder_.file("t.json.gz"); }
  void save(int layers) { ASSERT_TRUE(save_trace(trace_, small_trace(layers)).ok()); }

  // Each of these waits for a trace or a plan that never comes.
  void expect_interrupted(const std::vector<std::string>& args) {
    Command command;
    command.args = args;
    Child child(command);
    child.wait_until_blocked();
    child.send(SIGINT);
    const Outcome outcome = child.finish();
    EXPECT_EQ(outcome.code, 130) << args.front();
    EXPECT_EQ(outcome.out, "");
    EXPECT_THAT(outcome.err, HasSubstr("stowage: interrupted\n"));
  }

  TemporaryFolder folder_;
  std::string trace_;
};

TEST_F(Interrupt, WhileReadingStdin) {
  save(3);
  expect_interrupted({"inspect", "-"});
  expect_interrupted({"simulate", "-"});
  expect_interrupted({"simulate", trace_, "--plan", "-"});
  expect_interrupted({"plan", "-", "--budget", "60%", "-o", folder_.file("p.json")});
  EXPECT_THAT(folder_.names(), ElementsAre("t.json.gz"));
}

// Of one that waits for its trace, with --json.
Outcome ended_by(int signal) {
  Command command;
  command.args = {"inspect", "-", "--json"};
  Child child(command);
  child.wait_until_blocked();
  child.send(signal);
  return child.finish();
}

TEST_F(Interrupt, IsAnErrorInJsonToo) {
  const Outcome outcome = ended_by(SIGINT);
  EXPECT_EQ(outcome.code, 130);
  const auto json = nlohmann::json::parse(outcome.out);
  EXPECT_EQ(json.at("schema"), "stowage-error/1");
  EXPECT_EQ(json.at("error").at("code"), "interrupted");
  EXPECT_EQ(json.at("error").at("exit_code"), 130);
}

// As a failed assertion ends it.
TEST_F(Interrupt, AnAbortIsAnErrorInJsonToo) {
  const Outcome outcome = ended_by(SIGABRT);
  EXPECT_EQ(outcome.code, 70);
  EXPECT_EQ(nlohmann::json::parse(outcome.out).at("error").at("code"), "internal");
}

// What is on stdout already stays one object, or the beginning of one.
TEST_F(Interrupt, SaysNothingBehindAnAnswerThatHasBegun) {
  save(2000);
  Command command;
  command.args = {"inspect", trace_, "--json", "--top", "100000"};
  Child child(command);
  child.wait_until_writing();  // nobody reads: the pipe is full
  child.send(SIGINT);
  const Outcome outcome = child.finish();
  EXPECT_EQ(outcome.code, 130);
  EXPECT_THAT(outcome.out, HasSubstr("stowage-inspect/1"));
  EXPECT_THAT(outcome.out, Not(HasSubstr("stowage-error/1")));
}

TEST_F(Interrupt, DuringALongPlan) {
  save(2000);
  Command command;
  command.args = {"plan", trace_, "--budget", "50%", "-o", folder_.file("p.json")};
  Child child(command);
  child.wait_until_running_for(100);
  child.send(SIGINT);
  const Outcome outcome = child.finish();
  // On a fast machine the plan may be there before the signal; then it is whole.
  if (outcome.code == 0) {
    EXPECT_THAT(folder_.names(), ElementsAre("p.json", "t.json.gz"));
  } else {
    EXPECT_EQ(outcome.code, 130);
    EXPECT_THAT(folder_.names(), ElementsAre("t.json.gz"));
  }
}

TEST_F(Interrupt, ATerminationSignalIsObeyed) {
  Command command;
  command.args = {"inspect", "-"};
  Child child(command);
  child.wait_until_blocked();
  child.send(SIGTERM);
  EXPECT_EQ(child.finish().code, 128 + SIGTERM);
}

}  // namespace
}  // namespace stowage::cli_tests
