// Models that Python exports to TorchScript (tests/data/export_scripts.py): loss and gradients as
// Python has them, the main job and `check` with the real commands; and torchvision's weights in
// the built-in models. Skipped where Python lacks a package, but for STOWAGE_EXPORTS_NEEDED=1, with
// which scripts/test.sh runs them.
#include <gtest/gtest.h>
#include <torch/csrc/jit/serialization/import.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "executor/device/cpu_device.h"
#include "executor/model.h"
#include "executor/run_options.h"
#include "executor/training_step.h"
#include "tests/cli/main_job.h"
#include "tests/scripts/pythons_step.h"

namespace stowage {
namespace {

using cli_tests::Command;
using cli_tests::Outcome;
using cli_tests::stowage;
using executor::NamedTensor;
using nlohmann::json;
using scripts_tests::expect_pythons_step;
using scripts_tests::python_of;
using scripts_tests::script_in;

constexpr int kPackageMissing = 4;

// Why it could not be exported, empty when it was: then NAME.pt, .spec and .json lie in `folder`.
std::string export_script(const std::string& name, const std::string& folder) {
  Command python;
  python.program = STOWAGE_PYTHON;
  python.args = {"-B", STOWAGE_TEST_DATA_DIR "/export_scripts.py", folder, name};
  const Outcome outcome = cli_tests::run(python);
  if (outcome.code == kPackageMissing ||
      outcome.err.find("No module named 'torch'") != std::string::npos) {
    const char* const needed = std::getenv("STOWAGE_EXPORTS_NEEDED");
    EXPECT_TRUE(needed == nullptr || std::string(needed) != "1") << outcome.err;
    return outcome.err + "scripts/setup.sh exports installs what is missing";
  }
  EXPECT_EQ(outcome.code, 0) << outcome.err;
  return "";
}

executor::TrainingStep make_step(const std::string& text, std::int64_t seed) {
  const auto device = executor::cpu_device();
  EXPECT_TRUE(device.ok() && executor::apply_run_options({.threads = 1}).ok());
  const auto spec = executor::parse_model_spec(text);
  EXPECT_TRUE(spec.ok());
  auto model = executor::make_model(*spec, (*device)->torch_device(), /*seed=*/1);
  EXPECT_TRUE(model.ok()) << model.error().text();
  return {**device, std::move(model).value(), {.seed = seed}};
}

class Exported : public ::testing::TestWithParam<std::string> {
 protected:
  void SetUp() override {
    if (const std::string why = export_script(GetParam(), job_.folder.path()); !why.empty()) {
      GTEST_SKIP() << why;
    }
    model_ = script_in(job_.folder.path(), GetParam());
  }

  cli_tests::MainJob job_;
  std::string model_;
};

TEST_P(Exported, LossAndGradientsAreThoseOfPython) {
  const json python = python_of(job_.folder.path(), GetParam());
  executor::TrainingStep step = make_step(model_, python.at("seed").get<std::int64_t>());
  std::vector<std::string> names;
  for (const NamedTensor& each : step.parameters()) names.push_back(each.name);
  expect_pythons_step(step, python, names);
}

// For 70 %, or, where no plan reaches that, for the floor and 5 %.
TEST_P(Exported, IsRecordedPlannedExecutedAndVerifiedBitwise) {
  const json profiled = job_.profile(model_, "", "adamw");
  ASSERT_FALSE(profiled.is_null());
  const double peak = profiled.at("peak_requested_bytes").get<double>();
  if (static_cast<double>(job_.floor()) < 0.7 * peak) {
    job_.make_plan({"--budget", "70%"});
  } else {
    job_.make_plan_near_the_floor();
  }
  const Outcome executed = stowage({"execute", "--plan", job_.plan, "--steps", "3", "--json"});
  ASSERT_EQ(executed.code, 0) << executed.err;
  EXPECT_EQ(json::parse(executed.out).at("error").at("peak_requested_bytes"), 0);
  job_.verify(true);
}

TEST_P(Exported, ItsMemoryIsChecked) {
  const std::string baseline = job_.folder.file("b.json");
  const auto check = [&](std::vector<std::string> more) {
    more.insert(more.begin(), {"check", "--baseline", baseline});
    return stowage(more);
  };
  const Outcome written = check({"--model", model_, "--device", "cpu", "--update-baseline"});
  ASSERT_EQ(written.code, 0) << written.err << written.out;
  const Outcome again = check({"--model", model_, "--device", "cpu", "--json"});
  EXPECT_EQ(again.code, 0) << again.err << again.out;
  EXPECT_EQ(again.err, "");
  EXPECT_EQ(json::parse(again.out).at("passed"), true);
  const long peak = json::parse(again.out).at("measured").at("peak_requested_bytes").get<long>();
  const Outcome over =
      check({"--model", model_, "--device", "cpu", "--budget", std::to_string(peak - 1)});
  EXPECT_EQ(over.code, 1) << over.err;
  EXPECT_NE(over.out.find("1 bytes above the budget"), std::string::npos) << over.out;

  // Under a plan, where host bytes count.
  ASSERT_FALSE(job_.profile(model_, "", "none").is_null());
  job_.make_plan({"--policy", "save_on_cpu"});
  ASSERT_EQ(std::remove(baseline.c_str()), 0);
  ASSERT_EQ(check({"--plan", job_.plan, "--update-baseline"}).code, 0);
  EXPECT_GT(json::parse(cli_tests::read_text(baseline)).at("measured").at("host_bytes").get<long>(),
            0);
  const Outcome planned = check({"--plan", job_.plan, "--json"});
  EXPECT_EQ(planned.code, 0) << planned.err << planned.out;
  cli_tests::expect_error(
      stowage({"check", "--model", "script:no.pt:shape=2x2", "--device", "cpu", "--budget", "1GB"}),
      3, {"no.pt", "cannot open it"});
}

// A suite a package: to ctest a suite is skipped as a whole, so none is partly.
std::string name_of_script(const ::testing::TestParamInfo<std::string>& script) {
  return script.param;
}
INSTANTIATE_TEST_SUITE_P(Torch, Exported, ::testing::Values("branches"), name_of_script);
INSTANTIATE_TEST_SUITE_P(Torchvision, Exported, ::testing::Values("resnet18"), name_of_script);
INSTANTIATE_TEST_SUITE_P(Transformers, Exported, ::testing::Values("gpt2"), name_of_script);

// The commit after the one that the baseline was written in: a script of the same file name.
TEST(CheckedScript, WhatItKeepsFailsTheBaseline) {
  const cli_tests::TemporaryFolder before;
  const cli_tests::TemporaryFolder after;
  for (const auto& [name, folder] :
       {std::pair{"branches", &before}, {"branches_keeping", &after}}) {
    if (const std::string why = export_script(name, folder->path()); !why.empty()) {
      GTEST_SKIP() << why;
    }
  }
  for (const char* const end : {".pt", ".spec"}) {
    ASSERT_EQ(std::rename(after.file(std::string("branches_keeping") + end).c_str(),
                          after.file(std::string("branches") + end).c_str()),
              0);
  }
  const auto check = [&](const cli_tests::TemporaryFolder& folder) {
    return std::vector<std::string>{"check",
                                    "--model",
                                    script_in(folder.path(), "branches"),
                                    "--device",
                                    "cpu",
                                    "--baseline",
                                    before.file("b.json")};
  };
  std::vector<std::string> write = check(before);
  write.emplace_back("--update-baseline");
  ASSERT_EQ(stowage(write).code, 0);
  EXPECT_EQ(stowage(check(before)).code, 0);
  const Outcome grown = stowage(check(after));
  EXPECT_EQ(grown.code, 1) << grown.err;
  // 16 rows of 32 floats, and what the buffer is before the first step.
  EXPECT_NE(grown.out.find("2,052 bytes more than the baseline's"), std::string::npos) << grown.out;
  EXPECT_NE(grown.out.find("made by aten::sin"), std::string::npos) << grown.out;
}

// Weights, batch and names of torchvision's model in the built-in one.
class BuiltIn : public ::testing::TestWithParam<std::pair<std::string, std::string>> {};

TEST_P(BuiltIn, LossGradientsAndBuffersAreThoseOfTorchvision) {
  const auto& [name, options] = GetParam();
  const cli_tests::TemporaryFolder folder;
  if (const std::string why = export_script(name, folder.path()); !why.empty()) {
    GTEST_SKIP() << why;
  }
  const json python = python_of(folder.path(), name);
  executor::TrainingStep step =
      make_step(name + ":" + options, python.at("seed").get<std::int64_t>());
  const torch::jit::Module script = torch::jit::load(folder.file(name + ".pt"));
  std::vector<std::string> names;
  const c10::NoGradGuard no_grad;
  for (const auto& theirs : script.named_parameters()) {
    ASSERT_LT(names.size(), step.parameters().size());
    const NamedTensor& ours = step.parameters()[names.size()];
    ASSERT_EQ(ours.tensor.sizes(), theirs.value.sizes()) << ours.name << ", " << theirs.name;
    ours.tensor.detach().copy_(theirs.value);
    names.push_back(theirs.name);
  }
  const at::AutoGradMode grad(true);
  expect_pythons_step(step, python, names);
}

INSTANTIATE_TEST_SUITE_P(
    Torchvision, BuiltIn,
    ::testing::Values(std::pair{"resnet50", "blocks=2-1-1-1,classes=40,image=64,loss=mean,batch=4"},
                      std::pair{
                          "vit",
                          "layers=2,width=32,heads=2,mlp=64,patch=8,image=32,classes=40,loss=mean,"
                          "batch=4"}),
    [](const auto& model) { return model.param.first; });

}  // namespace
}  // namespace stowage
