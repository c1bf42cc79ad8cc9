// The real command, started without stdin, stdout or stderr: what it opens does not take their
// place.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <csignal>
#include <filesystem>

#include "tests/cli/process.h"
#include "tests/support/small_trace.h"
#include "traces/trace_file.h"

namespace stowage::cli_tests {
namespace {

using ::testing::HasSubstr;
using testing::small_trace;

std::string opened_as(pid_t pid, int fd) {
  return std::filesystem::read_symlink("/proc/" + std::to_string(pid) + "/fd/" + std::to_string(fd))
      .string();
}

TEST(ClosedStreams, AreNotTakenByWhatTheCommandOpens) {
  const TemporaryFolder folder;
  const std::string trace = folder.file("t.json.gz");
  ASSERT_TRUE(save_trace(trace, small_trace(3)).ok());
  Command command;
  command.args = {"simulate", trace, "--plan", "-"};  // waits for a plan
  command.closed = {1, 2};
  Child child(command);
  child.wait_until_blocked();
  EXPECT_EQ(opened_as(child.pid(), 1), "/dev/null");
  EXPECT_EQ(opened_as(child.pid(), 2), "/dev/null");
  child.send(SIGINT);
  EXPECT_EQ(child.finish().code, 130);
}

TEST(ClosedStreams, NoAnswerIsLostInSilence) {
  Command command;
  command.args = {"policies"};
  command.closed = {1};
  const Outcome without_stdout = run(command);
  EXPECT_EQ(without_stdout.code, 4);
  EXPECT_EQ(without_stdout.err, "stowage: error: stdout: it is closed\n");

  command.closed = {2};
  const Outcome without_stderr = run(command);
  EXPECT_EQ(without_stderr.code, 0);
  EXPECT_THAT(without_stderr.out, HasSubstr("torchtune"));

  command.args = {"inspect", "-"};
  command.closed = {0};
  const Outcome without_stdin = run(command);
  EXPECT_EQ(without_stdin.code, 3) << without_stdin.err;
  EXPECT_THAT(without_stdin.err, HasSubstr("stowage: error: <stdin>: "));
}

}  // namespace
}  // namespace stowage::cli_tests
