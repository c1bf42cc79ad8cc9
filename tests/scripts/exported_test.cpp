// Models that Python exports to TorchScript (tests/data/export_scripts.py): loss and gradients as
// Python has them, and the main job with the real commands. Skipped where Python lacks a package.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "executor/device/cpu_device.h"
#include "executor/model.h"
#include "executor/run_options.h"
#include "executor/training_step.h"
#include "tests/cli/process.h"

namespace stowage {
namespace {

using cli_tests::Command;
using cli_tests::Outcome;
using nlohmann::json;

constexpr int kPackageMissing = 4;

Outcome stowage(const std::vector<std::string>& args) {
  Command command;
  command.args = args;
  return cli_tests::run(command);
}

class Exported : public ::testing::TestWithParam<std::string> {
 protected:
  void SetUp() override {
    Command python;
    python.program = STOWAGE_PYTHON;
    python.args = {"-B", STOWAGE_TEST_DATA_DIR "/export_scripts.py", folder_.path(), GetParam()};
    const Outcome outcome = cli_tests::run(python);
    if (outcome.code == kPackageMissing ||
        outcome.err.find("No module named 'torch'") != std::string::npos) {
      GTEST_SKIP() << outcome.err << "scripts/setup.sh exports installs what is missing";
    }
    ASSERT_EQ(outcome.code, 0) << outcome.err;
    std::string options = cli_tests::read_text(folder_.file(GetParam() + ".spec"));
    options.erase(options.find('\n'));
    model_ = "script:" + folder_.file(GetParam() + ".pt") + ":" + options;
  }

  // A plan for 70 %, or, where no plan reaches that, for the floor and 5 %.
  void make_plan() {
    const Outcome outcome = stowage({"plan", trace_, "--budget", "70%", "-o", plan_, "--json"});
    if (outcome.code == 0) return;
    ASSERT_EQ(outcome.code, 1) << outcome.err;
    const json answer = json::parse(outcome.out);
    const auto floor = answer.at("floor").at("bytes").get<double>();
    const std::string budget = std::to_string(static_cast<long>(floor * 1.05));
    const Outcome second = stowage({"plan", trace_, "--budget", budget, "-o", plan_});
    ASSERT_EQ(second.code, 0) << second.err;
  }

  cli_tests::TemporaryFolder folder_;
  std::string model_;
  std::string trace_ = folder_.file("t.json.gz");
  std::string plan_ = folder_.file("p.json");
};

void expect_close(double value, double expected, double scale, const std::string& what) {
  EXPECT_LE(std::abs(value - expected), 2e-5 * scale + 1e-12)
      << what << ": " << value << " against " << expected;
}

TEST_P(Exported, LossAndGradientsAreThoseOfPython) {
  const auto device = executor::cpu_device();
  ASSERT_TRUE(device.ok());
  ASSERT_TRUE(executor::apply_run_options({.threads = 1}).ok());
  const auto spec = executor::parse_model_spec(model_);
  ASSERT_TRUE(spec.ok());
  auto model = executor::make_model(*spec, (*device)->torch_device(), /*seed=*/1);
  ASSERT_TRUE(model.ok()) << model.error().text();
  const json python = json::parse(cli_tests::read_text(folder_.file(GetParam() + ".json")));
  executor::TrainingStep step(**device, std::move(model).value(),
                              {.seed = python.at("seed").get<std::int64_t>()});
  const double loss = step.run(0);
  const auto expected = python.at("loss").get<double>();
  expect_close(loss, expected, std::max(1.0, std::abs(expected)), "loss");
  const json& gradients = python.at("gradients");
  ASSERT_EQ(step.gradients().size(), gradients.size());
  for (const executor::NamedTensor& each : step.gradients()) {
    ASSERT_TRUE(gradients.contains(each.name)) << each.name;
    const json& figures = gradients.at(each.name);
    const auto absmax = figures.at("absmax").get<double>();
    expect_close(each.tensor.abs().max().item<double>(), absmax, absmax, each.name + " absmax");
    const at::Tensor flat = each.tensor.contiguous().view({-1});
    const auto every = figures.at("every").get<std::int64_t>();
    std::int64_t at = 0;
    for (const json& element : figures.at("elements")) {
      expect_close(flat[at].item<double>(), element.get<double>(), absmax, each.name);
      at += every;
    }
  }
}

TEST_P(Exported, IsRecordedPlannedExecutedAndVerifiedBitwise) {
  const Outcome profiled = stowage({"profile", model_, "--optimizer", "adamw", "--threads", "1",
                                    "--device", "cpu", "-o", trace_, "--json"});
  ASSERT_EQ(profiled.code, 0) << profiled.err;
  ASSERT_NO_FATAL_FAILURE(make_plan());
  const Outcome executed = stowage({"execute", "--plan", plan_, "--steps", "3", "--json"});
  ASSERT_EQ(executed.code, 0) << executed.err;
  EXPECT_EQ(json::parse(executed.out).at("error").at("peak_requested_bytes"), 0);
  const Outcome verified = stowage({"verify", "--plan", plan_, "--json"});
  ASSERT_EQ(verified.code, 0) << verified.err << verified.out;
  const json result = json::parse(verified.out);
  EXPECT_EQ(result.at("bitwise"), true);
  EXPECT_EQ(result.at("reference").at("repeatable"), true);
  EXPECT_EQ(result.at("error").at("peak_requested_bytes"), 0);
  EXPECT_LT(result.at("planned").at("peak_requested_bytes"),
            result.at("reference").at("peak_requested_bytes"));
  EXPECT_GT(result.at("planned").at("host_bytes").get<long>(), 0);
}

INSTANTIATE_TEST_SUITE_P(Scripts, Exported, ::testing::Values("branches", "resnet18", "gpt2"),
                         [](const auto& script) { return script.param; });

}  // namespace
}  // namespace stowage
