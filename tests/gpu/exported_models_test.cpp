// Models exported to TorchScript on the GPU: loss, gradients and buffers of a step are those that
// Python had there. STOWAGE_EXPORTED names the folder in which
// `tests/data/export_scripts.py --device cuda FOLDER NAME..` has written them.
#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <string>
#include <utility>
#include <vector>

#include "executor/model.h"
#include "executor/run_options.h"
#include "executor/training_step.h"
#include "tests/profiler_torch/hand_step.h"
#include "tests/scripts/pythons_step.h"

namespace stowage {
namespace {

class ExportedModels : public ::testing::TestWithParam<std::string> {};

TEST_P(ExportedModels, LossGradientsAndBuffersAreThoseOfPython) {
  const char* const folder = std::getenv("STOWAGE_EXPORTED");
  if (folder == nullptr) GTEST_SKIP() << "STOWAGE_EXPORTED names no folder";
  if (!std::filesystem::exists(std::string(folder) + "/" + GetParam() + ".json")) {
    FAIL() << GetParam() << " is not in " << folder << ": tests/data/export_scripts.py writes it";
  }
  executor::Device& device = testing::hand_device();
  ASSERT_TRUE(executor::apply_run_options({}).ok());
  const auto spec = executor::parse_model_spec(scripts_tests::script_in(folder, GetParam()));
  ASSERT_TRUE(spec.ok()) << spec.error().text();
  auto model = executor::make_model(*spec, device.torch_device(), /*seed=*/1);
  ASSERT_TRUE(model.ok()) << model.error().text();
  const nlohmann::json python = scripts_tests::python_of(folder, GetParam());
  executor::TrainingStep step(device, std::move(model).value(),
                              {.seed = python.at("seed").get<std::int64_t>()});
  std::vector<std::string> names;
  for (const executor::NamedTensor& each : step.parameters()) names.push_back(each.name);
  scripts_tests::expect_pythons_step(step, python, names);
}

INSTANTIATE_TEST_SUITE_P(Exported, ExportedModels,
                         ::testing::Values("resnet18", "gpt2", "resnet50_large", "gpt2_large"),
                         [](const auto& model) { return model.param; });

}  // namespace
}  // namespace stowage
