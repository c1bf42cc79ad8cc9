// Plugins: what a good one gives, and one clear error for each bad one.
#include "executor/plugin_library.h"

#include <gtest/gtest.h>

#include <fstream>
#include <string>

#include "tests/executor/layer_log.h"
#include "tests/executor/model_support.h"

namespace stowage::executor {
namespace {

const std::string kFolder = STOWAGE_PLUGIN_DIR;

Result<std::unique_ptr<Model>> make(const std::string& text) {
  const auto spec = parse_model_spec(text);
  EXPECT_TRUE(spec.ok()) << text;
  return make_model(*spec, test_device().torch_device(), /*seed=*/1);
}

void expect_error(const std::string& text, ErrorCode code, const std::vector<std::string>& words) {
  SCOPED_TRACE(text);
  const auto model = make(text);
  ASSERT_FALSE(model.ok());
  EXPECT_EQ(model.error().code, code);
  const std::string said = model.error().text();
  EXPECT_EQ(said.find('\n'), std::string::npos) << said;
  for (const std::string& word : words) {
    EXPECT_NE(said.find(word), std::string::npos) << word << " in: " << said;
  }
}

std::string faulty(const std::string& fault) {
  return "plugin:" + kFolder + "/faulty.so:fault=" + fault;
}

TEST(PluginSpec, TheFileEndsWhereOptionsBegin) {
  const auto name_of = [](const std::string& text) {
    const auto spec = parse_model_spec(text);
    return spec.ok() ? spec->name : "error: " + spec.error().message;
  };
  EXPECT_EQ(name_of("plugin:a.so"), "plugin:a.so");
  EXPECT_EQ(name_of("plugin:dir/a.so:x=1"), "plugin:dir/a.so");
  EXPECT_EQ(name_of("plugin:a:b/c.so:x=1:2"), "plugin:a:b/c.so");
  EXPECT_EQ(name_of("plugin:a:b.so"), "plugin:a:b.so");
  EXPECT_NE(name_of("plugin:a.so:width").find("'width' is not an option"), std::string::npos);
  EXPECT_NE(name_of("plugin:a.so:").find("'' is not an option"), std::string::npos);
  EXPECT_NE(name_of("plugin:").find("names no file"), std::string::npos);
  const auto spec = parse_model_spec("plugin:dir/a.so:x=./y,batch=3,dtype=bf16");
  ASSERT_TRUE(spec.ok());
  EXPECT_EQ(spec->file(), "dir/a.so");
  EXPECT_EQ(spec->text(), "plugin:dir/a.so:x=./y");
  EXPECT_EQ(spec->batch, 3);
  EXPECT_EQ(spec->dtype, "bf16");
}

TEST(Plugin, ItsSpecIsCompletedFromWhatItDeclares) {
  const auto spec = parse_model_spec("plugin:" + kFolder + "/faulty.so");
  ASSERT_TRUE(spec.ok());
  const auto complete = complete_model_spec(*spec);
  ASSERT_TRUE(complete.ok()) << complete.error().text();
  EXPECT_EQ(complete->text(), "plugin:" + kFolder + "/faulty.so:fault=none");
  EXPECT_EQ(complete->batch, 8);
}

// The plugin has stowage::layer linked into itself; its events reach this program's driver.
TEST(Plugin, ItsLayersReachTheProgramsDriver) {
  auto model = make(faulty("none"));
  ASSERT_TRUE(model.ok()) << model.error().text();
  TrainingStep step(test_device(), std::move(model).value(), {.seed = 1});
  const double plain = step.run(0);
  std::vector<std::string> rows;
  double logged = 0;
  {
    LayerLog log(/*bytes=*/0);
    logged = step.run(0);
    rows = log.rows;
  }
  EXPECT_EQ(plain, logged);
  // The inputs of the first need no gradient, so it has no end in backward.
  EXPECT_EQ(rows, (std::vector<std::string>{"<first", ">first", "<second", ">second", "[second",
                                            "]second", "[first"}));
  EXPECT_EQ(step.gradients().size(), 2U);
}

TEST(Plugin, BadFilesAreNamed) {
  expect_error("plugin:nowhere/a.so", ErrorCode::bad_input, {"nowhere/a.so", "No such file"});
  expect_error("plugin:" + kFolder, ErrorCode::bad_input, {"not a file"});
  const std::string text_file = ::testing::TempDir() + "/no_library.so";
  std::ofstream(text_file) << "int main() {}\n";
  expect_error("plugin:" + text_file, ErrorCode::bad_input, {"no_library.so: it cannot be loaded"});
  expect_error("plugin:" + kFolder + "/no_interface.so", ErrorCode::bad_input,
               {"without Stowage's plugin interface", "STOWAGE_PLUGIN"});
  EXPECT_EXIT(static_cast<void>(make("plugin:" + kFolder + "/throwing_static.so")),
              ::testing::ExitedWithCode(static_cast<int>(ErrorCode::bad_input)),
              "throwing_static.so: its static objects threw while it was loaded: no licence\n");
  expect_error("plugin:" + kFolder + "/only_missing_symbol.so", ErrorCode::bad_input,
               {"cannot be loaded", "stowage_test_missing_symbol"});
}

TEST(Plugin, AnotherVersionIsRefusedAndBothAreNamed) {
  const auto file = [](const std::string& what) {
    return "plugin:" + kFolder + "/" + what + ".so";
  };
  const std::string own = std::to_string(kPluginInterface);
  expect_error(
      file("other_interface"), ErrorCode::bad_input,
      {"interface " + std::to_string(kPluginInterface + 1), "has " + own, "build it again"});
  expect_error(file("other_stowage"), ErrorCode::bad_input,
               {"Stowage 0.0.7", std::string(kVersion)});
  expect_error(file("other_torch"), ErrorCode::bad_input, {"LibTorch 2.3.1", TORCH_VERSION});
  expect_error(file("other_abi"), ErrorCode::bad_input,
               {"CXX11_ABI=0", "this program with libstdc++, _GLIBCXX_USE_CXX11_ABI=1"});
  // Cannot be loaded as it is, and still says why.
  expect_error(file("missing_symbol"), ErrorCode::bad_input, {"LibTorch 2.3.1", TORCH_VERSION});
}

TEST(Plugin, WrongOptionsAreUsageErrors) {
  const std::string file = "plugin:" + kFolder + "/faulty.so";
  expect_error(file + ":falt=none", ErrorCode::usage,
               {"no option 'falt'", "did you mean 'fault'?"});
  expect_error(file + ":dtype=fp8", ErrorCode::usage, {"fp8"});
  expect_error(file + ":dtype=tf32", ErrorCode::usage, {"needs a CUDA device"});
  expect_error(faulty("make-refuses"), ErrorCode::usage,
               {"faulty.so: fault=make-refuses, it says"});
}

TEST(Plugin, AModelThatCannotBeTrainedIsRefused) {
  expect_error(faulty("make-throws"), ErrorCode::bad_input,
               {"faulty.so: making its model threw: out of ideas"});
  expect_error(faulty("make-throws-int"), ErrorCode::bad_input, {"no std::exception"});
  expect_error(faulty("no-model"), ErrorCode::bad_input, {"it made no model"});
  expect_error(faulty("no-parameters"), ErrorCode::bad_input, {"no trainable parameter"});
  expect_error(faulty("duplicate-name"), ErrorCode::bad_input, {"two parameters named 'a'"});
  expect_error(faulty("duplicate-tensor"), ErrorCode::bad_input,
               {"'a' and 'b' are one tensor", "once"});
  expect_error(faulty("frozen"), ErrorCode::bad_input, {"'a' is not a leaf tensor"});
  expect_error(faulty("undefined"), ErrorCode::bad_input, {"'a' is undefined"});
}

TEST(Plugin, WhatItThrowsInAStepNamesItAndTheNextStepIsClean) {
  const auto thrown = [](const std::string& fault) -> std::string {
    auto model = make(faulty(fault));
    EXPECT_TRUE(model.ok()) << model.error().text();
    TrainingStep step(test_device(), std::move(model).value(), {.seed = 1, .file = "faulty.so"});
    try {
      step.run(0);
    } catch (const c10::Error& error) {
      return error.what_without_backtrace();
    }
    return "nothing";
  };
  const auto has = [](const std::string& text, const std::string& words) {
    EXPECT_NE(text.find(words), std::string::npos) << text;
  };
  has(thrown("batch-throws"), "its load_batch() threw: no data today");
  has(thrown("forward-throws"), "its forward() threw: forward");
  has(thrown("forward-throws-int"), "its forward() threw: something");
  has(thrown("torch-error"), "mat1 and mat2 shapes cannot be multiplied");
  has(thrown("loss-throws"), "its forward() threw: no loss today");
  EXPECT_EQ(thrown("backward-throws"), "faulty.so: its backward threw: no gradient");
  EXPECT_EQ(thrown("backward-throws-int"),
            "faulty.so: its backward threw: something that is no std::exception");
  has(thrown("backward-throws-torch"), "no gradient today");
  has(thrown("no-graph"), "depends on no parameter");
  has(thrown("not-scalar"), "sizes [8, 16] and no gradient");
  has(thrown("no-result"), "undefined tensor");
  EXPECT_EQ(thrown("none"), "nothing");
}

}  // namespace
}  // namespace stowage::executor
