// Runs of the model are processes of their own: copies of the command's where that will do.
#include <dlfcn.h>
#include <gtest/gtest.h>

#include <csignal>
#include <string>
#include <vector>

#include "cli/torch/end_process.h"
#include "tests/cli/main_job.h"
#include "tests/cli/process.h"

namespace stowage {
namespace {

using cli_tests::Command;
using cli_tests::MainJob;
using cli_tests::Outcome;
using cli_tests::TemporaryFolder;

// How many processes loaded their libraries while a command ran: the loader writes a file for each.
int loads_of(const std::vector<std::string>& args) {
  const TemporaryFolder folder;
  Command command;
  command.args = args;
  command.environment = {"LD_DEBUG=statistics", "LD_DEBUG_OUTPUT=" + folder.file("loads")};
  const Outcome outcome = cli_tests::run(command);
  EXPECT_EQ(outcome.code, 0) << outcome.err;
  return static_cast<int>(folder.names().size());
}

bool has_driver_of_gpu() {
  return ::dlopen("libcuda.so.1", RTLD_LAZY) != nullptr;
}

// The planned run, the reference and the reference again.
TEST(RunsOfTheModel, AreCopiesWhereThatWillDo) {
  const MainJob job;
  job.profile("mlp:layers=2,width=16", "4", "sgd");
  job.make_plan({"--policy", "torchtune:min_bytes=1"});
  const bool are_copies = !cli::kIsSanitized && !has_driver_of_gpu();
  EXPECT_EQ(loads_of({"verify", "--plan", job.plan}), are_copies ? 1 : 4);
}

TEST(RunsOfTheModel, AreNewProcessesWhereAPluginWasLoaded) {
  const MainJob job;
  const std::string model = std::string("plugin:") + STOWAGE_PLUGIN_DIR + "/faulty.so:fault=none";
  EXPECT_GT(loads_of({"profile", model, "--device", "cpu", "--threads", "1", "--batch", "4096",
                      "-o", job.trace}),
            1);
}

TEST(RunsOfTheModel, ThatTheSystemKillsAreSaidToBe) {
  const MainJob job;
  Command command;
  command.args = {
      "profile", "gpt2:layers=4,width=256,seq=256", "--device", "cpu", "--threads", "1", "-o",
      job.trace};
  cli_tests::Child child(command);
  ASSERT_EQ(::kill(child.wait_until_has_child(), SIGKILL), 0);
  cli_tests::expect_error(child.finish(), 4, {"a run of the model was killed by the system"});
  EXPECT_TRUE(job.folder.names().empty());
}

}  // namespace
}  // namespace stowage
