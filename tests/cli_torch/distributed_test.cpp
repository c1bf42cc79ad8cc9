// Data-parallel training as a user has it: recorded, planned, executed and verified by ranks.
#include <gtest/gtest.h>
#include <signal.h>

#include <cstdint>
#include <fstream>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "tests/cli/main_job.h"
#include "tests/executor/distributed/ranks.h"
#include "traces/trace_file.h"

namespace stowage {
namespace {

using cli_tests::Child;
using cli_tests::Command;
using cli_tests::expect_error;
using cli_tests::MainJob;
using cli_tests::Outcome;
using cli_tests::stowage;
using nlohmann::json;

constexpr const char* kTied = "gpt2:layers=2,width=32,seq=32,vocab=1000,dropout=0.1";

Command command_of(std::vector<std::string> args) {
  Command command;
  command.args = std::move(args);
  return command;
}

std::vector<Outcome> two_ranks(const std::vector<std::string>& args) {
  return run_ranks({command_of(args), command_of(args)});
}

// What the first rank answers, in JSON; the others say nothing.
json answer_of(const std::vector<Outcome>& ranks) {
  for (const Outcome& rank : ranks) EXPECT_EQ(rank.code, 0) << rank.err << rank.out;
  for (std::size_t rank = 1; rank < ranks.size(); ++rank) {
    EXPECT_EQ(ranks[rank].out, "");
    EXPECT_EQ(ranks[rank].err, "");
  }
  return ranks.front().code == 0 ? json::parse(ranks.front().out) : json();
}

json record(const MainJob& job, const std::string& model, const std::string& optimizer = "adamw",
            const std::vector<std::string>& more = {}) {
  std::vector<std::string> args = {
      "profile",   model, "--batch", "3",      "--optimizer",   optimizer, "--device", "cpu",
      "--threads", "1",   "--quick", "--json", "--distributed", "-o",      job.trace};
  args.insert(args.end(), more.begin(), more.end());
  return answer_of(two_ranks(args));
}

void expect_verified(const json& verified) {
  ASSERT_TRUE(verified.is_object());
  EXPECT_TRUE(verified.at("bitwise").get<bool>());
  EXPECT_EQ(verified.at("failures"), json::array());
  EXPECT_EQ(verified.at("planned").at("ranks"), 2);
  EXPECT_EQ(verified.at("planned").at("collectives"), 1);
  EXPECT_EQ(verified.at("reference").at("collectives"), 1);
  EXPECT_EQ(verified.at("planned").at("peak_requested_bytes"),
            verified.at("predicted").at("peak_requested_bytes"));
  if (verified.at("micro_batches").is_null()) return;
  // What all parts have accumulated is reduced: gradients are those of the batch at once.
  EXPECT_LT(verified.at("plain_max_abs_diff").get<double>(), 1e-4);
}

// As ops of the step.
std::int64_t reductions(const Trace& trace) {
  std::int64_t count = 0;
  for (const StringId name : trace.ops.name) {
    if (trace.string(name) == "c10d::allreduce_") ++count;
  }
  return count;
}

// Recorded once, with a plan that changes nothing.
const MainJob& small_job() {
  static const MainJob job;
  static const bool recorded = [] {
    record(job, "mlp:layers=2,width=16", "none");
    return true;
  }();
  EXPECT_TRUE(recorded);
  job.write_plan(R"("micro_batches": [])");
  return job;
}

TEST(Distributed, TorchrunsRanksRecordExecuteAndVerify) {
  if (std::ifstream(STOWAGE_TORCHRUN).fail()) GTEST_SKIP() << "there is no torchrun";
  const MainJob job;
  const auto torchrun = [&](const std::vector<std::string>& args) {
    Command command;
    command.program = STOWAGE_TORCHRUN;
    command.args = {"--no-python",   "--nproc-per-node",          "2",
                    "--master-port", std::to_string(free_port()), cli_tests::built_stowage()};
    command.args.insert(command.args.end(), args.begin(), args.end());
    command.environment = {"OMP_NUM_THREADS=1"};
    return cli_tests::run(command);
  };
  const Outcome recorded = torchrun({"profile", "mlp:layers=3,width=32", "--batch", "2",
                                     "--optimizer", "sgd", "--device", "cpu", "--threads", "1",
                                     "--quick", "--distributed", "-o", job.trace, "--json"});
  ASSERT_EQ(recorded.code, 0) << recorded.err;
  EXPECT_EQ(json::parse(recorded.out).at("schema"), "stowage-profile/1");
  job.make_plan({"--policy", "layerwise"});
  const Outcome ran =
      torchrun({"execute", "--distributed", "--plan", job.plan, "--steps", "5", "--json"});
  ASSERT_EQ(ran.code, 0) << ran.err;
  EXPECT_EQ(json::parse(ran.out).at("measured").at("ranks"), 2);
  const Outcome verified = torchrun({"verify", "--distributed", "--plan", job.plan, "--json"});
  ASSERT_EQ(verified.code, 0) << verified.err;
  expect_verified(json::parse(verified.out));
}

// A recording for all tests of the suite.
class DistributedPolicy : public testing::TestWithParam<const char*> {
 protected:
  static void SetUpTestSuite() {
    job_ = std::make_unique<MainJob>();
    record(*job_, kTied, "adamw", {"--micro-batches", "head=3"});
  }
  static void TearDownTestSuite() { job_.reset(); }

  static std::unique_ptr<MainJob> job_;
};
std::unique_ptr<MainJob> DistributedPolicy::job_;

TEST_P(DistributedPolicy, IsBitwiseTheUnplannedRunOnAllRanks) {
  job_->make_plan({"--policy", GetParam()});
  expect_verified(
      answer_of(two_ranks({"verify", "--distributed", "--plan", job_->plan, "--json"})));
}

// Parameters that stream, gradients that leave and updates on the host, segments that run again,
// and a head in parts whose weight is tied to the layer ahead of them all.
INSTANTIATE_TEST_SUITE_P(, DistributedPolicy,
                         testing::Values("layerwise", "zero_offload", "checkpoint",
                                         "tail_accumulation"),
                         [](const auto& each) { return std::string(each.param); });

TEST(Distributed, PartsOfTheWholeStepAreReducedOnce) {
  const MainJob job;
  record(job, "mlp:layers=3,width=32", "adamw", {"--micro-batches", "*=3"});
  const Result<LoadedTrace> trace = load_trace(job.trace);
  ASSERT_TRUE(trace.ok());
  ASSERT_EQ(trace->trace.divided.size(), 1u);
  EXPECT_EQ(reductions(trace->trace), 1);
  EXPECT_EQ(reductions(*trace->trace.divided.front()), 1);
  job.write_plan(R"("micro_batches": [{"segment": "*", "count": 3}])");
  expect_verified(answer_of(two_ranks({"verify", "--distributed", "--plan", job.plan, "--json"})));
}

// Each rank has batches of its own: the first one's losses are those of every other batch.
TEST(Distributed, RanksShareTheBatches) {
  const MainJob& job = small_job();
  const json ranks = answer_of(
      two_ranks({"execute", "--distributed", "--plan", job.plan, "--steps", "3", "--json"}));
  const MainJob alone;
  alone.profile("mlp:layers=2,width=16", "3", "none", {"--quick"});
  alone.write_plan(R"("micro_batches": [])");
  const Outcome outcome = stowage({"execute", "--plan", alone.plan, "--steps", "5", "--json"});
  ASSERT_EQ(outcome.code, 0) << outcome.err;
  const json losses = json::parse(outcome.out).at("measured").at("losses");
  EXPECT_EQ(ranks.at("measured").at("losses"), json::array({losses[0], losses[2], losses[4]}));
}

TEST(Distributed, RefusesWhatItCannotDo) {
  expect_error(stowage({"profile", "mlp", "--device", "cpu", "--distributed", "-o", "t.json"}), 2,
               {"WORLD_SIZE is not set", "torchrun --no-python"});
  expect_error(stowage({"profile", "mlp", "--device", "cuda", "--distributed", "-o", "t.json"}), 2,
               {"--distributed with --device cuda", "from Python"});
  const std::vector<Outcome> ranks =
      two_ranks({"profile", "mlp", "--device", "cpu", "--optimizer", "sgd:update=backward",
                 "--distributed", "-o", "t.json"});
  for (const Outcome& rank : ranks) EXPECT_EQ(rank.code, 2) << rank.err;
  EXPECT_NE(ranks[0].err.find("update=backward"), std::string::npos) << ranks[0].err;
}

TEST(Distributed, PlansAreOfRanksOrOfOneAlone) {
  const MainJob& job = small_job();
  expect_error(stowage({"verify", "--plan", job.plan}), 2, {"data-parallel step", "--distributed"});
  const MainJob alone;
  alone.profile("mlp:layers=2,width=16", "3", "adamw", {"--quick"});
  alone.write_plan(R"("micro_batches": [])");
  for (const Outcome& rank : two_ranks({"verify", "--distributed", "--plan", alone.plan})) {
    EXPECT_EQ(rank.code, 2);
    EXPECT_NE(rank.err.find("whose gradients nobody reduces"), std::string::npos) << rank.err;
  }
}

// Under torchrun a command without the option is each process's own, as ever.
TEST(Distributed, IsAskedFor) {
  const MainJob job;
  job.profile("mlp:layers=2,width=16", "3", "adamw", {"--quick"});
  job.write_plan(R"("micro_batches": [])");
  const std::vector<std::string> args = {"execute", "--plan", job.plan, "--steps", "2", "--json"};
  for (const Outcome& rank : two_ranks(args)) {
    ASSERT_EQ(rank.code, 0) << rank.err;
    EXPECT_EQ(rank.err, "");
    EXPECT_EQ(json::parse(rank.out).at("measured").count("ranks"), 0u);
  }
}

TEST(Distributed, RanksWithOtherPlansAreTold) {
  const MainJob& job = small_job();
  const std::string other = job.folder.file("other.json");
  const Outcome planned = stowage({"plan", job.trace, "--policy", "layerwise", "-o", other});
  ASSERT_EQ(planned.code, 0) << planned.err;
  for (const Outcome& rank :
       run_ranks({command_of({"execute", "--distributed", "--plan", job.plan}),
                  command_of({"execute", "--distributed", "--plan", other})})) {
    EXPECT_EQ(rank.code, 3);
    EXPECT_NE(rank.err.find("the plan of rank 1 is not that of rank 0"), std::string::npos)
        << rank.err;
  }
}

// The one with more steps would wait for the other.
TEST(Distributed, RanksWithOtherNumbersOfStepsAreTold) {
  const MainJob& job = small_job();
  const std::vector<std::string> args = {"execute", "--distributed", "--plan", job.plan, "--steps"};
  std::vector<Command> commands;
  for (const char* steps : {"3", "4"}) {
    commands.push_back(command_of(args));
    commands.back().args.emplace_back(steps);
  }
  for (const Outcome& rank : run_ranks(commands)) {
    EXPECT_EQ(rank.code, 3);
    EXPECT_NE(rank.err.find("--steps of rank 1 is not that of rank 0: 4 and 3"), std::string::npos)
        << rank.err;
  }
}

TEST(Distributed, ARankThatFailsEndsTheOthersWithItsReason) {
  const MainJob& job = small_job();
  const std::vector<std::string> args = {"execute", "--distributed", "--plan", job.plan};
  std::vector<std::string> small = args;
  small.insert(small.end(), {"--memory-limit", "10kB"});
  const std::vector<Outcome> ranks = run_ranks({command_of(args), command_of(small)});
  EXPECT_EQ(ranks[1].code, 1);
  EXPECT_NE(ranks[1].err.find("out of memory"), std::string::npos) << ranks[1].err;
  EXPECT_EQ(ranks[0].code, 4);
  EXPECT_NE(ranks[0].err.find("another rank failed: rank 1: "), std::string::npos) << ranks[0].err;
  EXPECT_NE(ranks[0].err.find("out of memory"), std::string::npos) << ranks[0].err;
}

// Started without torchrun's agent, which would end the others itself.
TEST(Distributed, ARankThatIsKilledEndsTheOthers) {
  const MainJob& job = small_job();
  for (const int killed : {0, 1}) {
    const int port = free_port();
    Command command =
        command_of({"execute", "--distributed", "--plan", job.plan, "--steps", "1000000"});
    command.environment = rank_environment(0, 2, port);
    Child first(command);
    command.environment = rank_environment(1, 2, port);
    Child second(command);
    Child& gone = killed == 0 ? first : second;
    gone.wait_until_running_for(2500);  // most of that are steps
    gone.send(SIGKILL);
    EXPECT_EQ(gone.finish().code, 128 + SIGKILL);
    const Outcome left = killed == 0 ? second.finish() : first.finish();
    EXPECT_EQ(left.code, 4) << left.err;
    EXPECT_NE(left.err.find("stowage: error: "), std::string::npos) << left.err;
    EXPECT_NE(left.err.find("another rank is gone: "), std::string::npos) << left.err;
  }
}

}  // namespace
}  // namespace stowage
