// Bad input to the verbs of stowage-torch: the exit code and one clear line each, nothing written.
#include <gtest/gtest.h>

#include <csignal>
#include <string>
#include <vector>

#include "tests/cli/main_job.h"

namespace stowage {
namespace {

using cli_tests::Command;
using cli_tests::Outcome;
using cli_tests::stowage;
using cli_tests::TemporaryFolder;

void expect_error(const std::vector<std::string>& args, int code,
                  const std::vector<std::string>& words) {
  cli_tests::expect_error(stowage(args), code, words);
}

// What a plan says is no default of the model's.
TEST(TorchBadInput, HelpNamesTheDefaultsOfItsVerb) {
  for (const char* verb : {"execute", "verify"}) {
    const std::string help = stowage({verb, "--help"}).out;
    for (const char* words :
         {"fp32, tf32 (GPU only) or bf16 (default: the recording's)",
          "cpu or cuda (default: the recording's)", "of parameters and batches (default: the "}) {
      EXPECT_NE(help.find(words), std::string::npos) << verb << words;
    }
    EXPECT_EQ(help.find("(default: fp32)"), std::string::npos);
  }
  EXPECT_NE(stowage({"execute", "--help"}).out.find("steps to run (default: 10)"),
            std::string::npos);
  EXPECT_NE(stowage({"verify", "--help"}).out.find("more are run (default: 3)"), std::string::npos);
  const std::string profile = stowage({"profile", "--help"}).out;
  EXPECT_NE(profile.find("fp32, tf32 (GPU only) or bf16 (default: fp32)"), std::string::npos);
}

TEST(TorchBadInput, ProfileNamesWhatIsWrong) {
  const TemporaryFolder folder;
  const std::string out = folder.file("t.json");
  expect_error({"profile", "gtp2", "-o", out}, 2, {"gtp2", "gpt2", "script:FILE.pt"});
  expect_error({"profile", "gpt2:layer=2", "-o", out}, 2, {"layer", "layers"});
  expect_error({"profile", "gpt2:layers=0", "-o", out}, 2, {"layers"});
  expect_error({"profile", "mlp:batch=4", "--batch", "8", "-o", out}, 2, {"batch", "4", "8"});
  expect_error({"profile", "mlp", "--seq", "8", "-o", out}, 2, {"seq"});
  expect_error({"profile", "mlp", "--batch", "-1", "-o", out}, 2, {"batch", "-1"});
  expect_error({"profile", "mlp", "--optimizer", "adma", "-o", out}, 2, {"adma", "adam"});
  expect_error({"profile", "mlp", "--dtype", "fp8", "-o", out}, 2, {"fp8"});
  expect_error({"profile", "mlp", "--batchs", "4", "-o", out}, 2, {"batchs", "--batch"});
  expect_error({"profile", "mlp", "--batch-sweep", "4", "-o", out}, 2, {"not supported yet"});
  expect_error({"profile", "mlp", "--device", "cuda", "-o", out}, 4, {"CUDA"});
  expect_error({"profile", "mlp"}, 2, {"output"});
  expect_error({"profile", "mlp", "--seed", "x", "-o", out}, 2, {"seed", "'x'", "whole number"});
  EXPECT_TRUE(folder.names().empty());
}

TEST(TorchBadInput, AnOutputThatCannotBeWrittenIsAnEnvironmentError) {
  const TemporaryFolder folder;
  const std::vector<std::string> job = {
      "profile", "mlp:layers=1,width=8", "--batch", "2", "--threads", "1", "-o"};
  std::vector<std::string> args = job;
  args.push_back(folder.file("no/such/folder/t.json"));
  expect_error(args, 4, {"no/such/folder"});
  // Known before the recording, which would take hours here.
  args.insert(args.end(), {"--warmup", "10000", "--batch", "1000000"});
  args.erase(args.begin() + 2, args.begin() + 4);
  expect_error(args, 4, {"no/such/folder"});
  args = job;
  args.emplace_back();
  args.back() = "/dev/full";
  expect_error(args, 4, {"/dev/full"});
  EXPECT_TRUE(folder.names().empty());
}

TEST(TorchBadInput, ExecuteAndVerifyRefuseAPlanForAnotherStep) {
  const TemporaryFolder folder;
  const std::string trace = folder.file("t.json");
  const std::string other = folder.file("other.json");
  const std::string plan = folder.file("p.json");
  for (const auto& [file, batch] : {std::pair{trace, "4"}, std::pair{other, "6"}}) {
    ASSERT_EQ(stowage({"profile", "mlp:layers=2,width=16", "--batch", batch, "--threads", "1", "-o",
                       file})
                  .code,
              0);
  }
  ASSERT_EQ(stowage({"plan", trace, "--policy", "torchtune:min_bytes=1", "-o", plan}).code, 0);
  for (const char* verb : {"execute", "verify"}) {
    SCOPED_TRACE(verb);
    expect_error({verb, "--plan", plan, "--trace", other}, 3, {"batch", "4", "6"});
    expect_error({verb, "--plan", plan, "--batch", "5"}, 2, {"batch", "5", "4"});
    expect_error({verb, "--plan", plan, "--model", "gpt2"}, 2, {"gpt2", "mlp"});
    expect_error({verb, "--plan", folder.file("none.json")}, 3, {"none.json"});
    expect_error({verb, "--plan", plan, "--trace", plan}, 3, {"p.json"});
    expect_error({verb, "--plan", plan, "--memory-limit", "12XB"}, 2, {"12XB"});
    expect_error({verb, "--plan", plan, "--steps", "0"}, 2, {"steps"});
    expect_error({verb}, 2, {"plan"});
  }
  Command from_stdin;
  from_stdin.args = {"verify", "--plan", "-", "--trace", trace};
  from_stdin.input = cli_tests::read_text(plan);
  const Outcome verified = cli_tests::run(from_stdin);
  EXPECT_EQ(verified.code, 0) << verified.err;
  const std::string broken = folder.write("broken.json", "{\"schema\":");
  expect_error({"verify", "--plan", broken}, 3, {"broken.json"});
}

// Written by hand, with no trace: what the plan does not say is as `profile` has it.
TEST(TorchBadInput, APlanWithoutATraceMayLeaveOutWhatTheModelHasADefaultFor) {
  const TemporaryFolder folder;
  const std::string plan = folder.write(
      "p.json", R"({"schema": "stowage-plan/1", "for": {"model": "mlp:layers=2,width=16"}})");
  const Outcome outcome = stowage({"execute", "--plan", plan, "--steps", "4", "--dtype", "bf16"});
  EXPECT_EQ(outcome.code, 0) << outcome.err;
  EXPECT_NE(outcome.out.find(", bf16, optimizer none"), std::string::npos) << outcome.out;
  EXPECT_EQ(stowage({"execute", "--plan", plan, "--steps", "4"}).code, 0);
  const std::string wrong =
      folder.write("w.json", R"({"schema": "stowage-plan/1", "for": {"model": "mlp:layer=2"}})");
  expect_error({"execute", "--plan", wrong, "--steps", "4"}, 3, {"w.json: /for/model: ", "layers"});
}

// Its backward makes scratch tensors on every thread, at times that nobody can predict.
TEST(TorchBadInput, FusedAttentionOnSeveralThreadsIsRefusedWithTheWayOut) {
  const TemporaryFolder folder;
  const std::string out = folder.file("t.json");
  const std::string model = "vit:layers=2,width=32,patch=8,image=32,classes=10";
  const auto with_threads = [&](const std::string& count) -> std::vector<std::string> {
    return {"profile", model, "--batch", "2", "--device", "cpu", "--threads", count, "-o", out};
  };
  expect_error(with_threads("2"), 3,
               {model + ": ", "2 CPU threads at once", "run with --threads 1"});
  EXPECT_TRUE(folder.names().empty());
  EXPECT_EQ(stowage(with_threads("1")).code, 0);
}

// A step of it takes seconds and ten thousand ahead of the recording hours: none is run.
TEST(TorchBadInput, FusedAttentionOnSeveralThreadsIsRefusedAheadOfAnyStep) {
  const TemporaryFolder folder;
  expect_error({"profile", "vit", "--device", "cpu", "--threads", "2", "--warmup", "10000", "-o",
                folder.file("t.json")},
               3, {"vit: ", "2 CPU threads at once"});
}

// One head of one sample is one thread's, and math spreads no op's scratch.
TEST(TorchBadInput, AttentionThatStaysOnOneThreadIsRecorded) {
  const TemporaryFolder folder;
  const std::string small = "vit:layers=1,width=32,patch=8,image=32,classes=10";
  for (const std::string& model : {small + ",heads=1", small + ",attention=math"}) {
    const Outcome outcome =
        stowage({"profile", model, "--batch", model.ends_with("math") ? "2" : "1", "--device",
                 "cpu", "--threads", "2", "-o", folder.file("t.json")});
    EXPECT_EQ(outcome.code, 0) << outcome.err;
  }
}

TEST(TorchBadInput, WithJsonTheErrorIsAnObjectToo) {
  const Outcome outcome = stowage({"profile", "gtp2", "-o", "-", "--json"});
  EXPECT_EQ(outcome.code, 2);
  EXPECT_NE(outcome.out.find("\"usage\""), std::string::npos) << outcome.out;
  const Outcome both = stowage({"profile", "mlp", "-o", "-", "--json"});
  EXPECT_EQ(both.code, 2);
  EXPECT_NE(both.err.find("would both write to stdout"), std::string::npos) << both.err;
}

TEST(TorchBadInput, CtrlCEndsEachVerbWith130AndLeavesNoFile) {
  const TemporaryFolder folder;
  const std::string trace = folder.file("t.json");
  const std::string plan = folder.file("p.json");
  ASSERT_EQ(
      stowage({"profile", "mlp:layers=2,width=64", "--batch", "64", "--threads", "1", "-o", trace})
          .code,
      0);
  ASSERT_EQ(stowage({"plan", trace, "--policy", "torchtune", "-o", plan}).code, 0);
  const std::vector<std::vector<std::string>> commands = {
      {"profile", "mlp:layers=2,width=64", "--batch", "64", "--threads", "1", "--warmup", "10000",
       "-o", folder.file("new.json")},
      {"execute", "--plan", plan, "--steps", "1000000"},
      {"verify", "--plan", plan, "--steps", "1000000"},
  };
  for (const auto& args : commands) {
    SCOPED_TRACE(args.front());
    Command command;
    command.args = args;
    cli_tests::Child child(command);
    // `verify` and `profile` wait for a child process; `execute` works itself.
    if (args.front() == "execute") {
      child.wait_until_running_for(1000);
    } else {
      child.wait_until_has_child();
    }
    child.send(SIGINT);
    EXPECT_EQ(child.finish().code, 130);
    EXPECT_EQ(folder.names(), (std::vector<std::string>{"p.json", "t.json"}));
  }
}

}  // namespace
}  // namespace stowage
