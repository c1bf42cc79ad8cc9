// Models of the user's own with the real commands: plugins from the recording to the verification,
// and one line with the right exit code for what cannot be used.
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <string>
#include <utility>
#include <vector>

#include "tests/cli/main_job.h"

namespace stowage {
namespace {

using cli_tests::MainJob;
using cli_tests::Outcome;
using cli_tests::stowage;
using cli_tests::TemporaryFolder;
using nlohmann::json;

const std::string kPlugins = STOWAGE_PLUGIN_DIR;

void expect_error(const std::string& model, int code, const std::vector<std::string>& words) {
  const TemporaryFolder folder;
  cli_tests::expect_error(
      stowage({"profile", model, "--device", "cpu", "--threads", "1", "-o", folder.file("t.json")}),
      code, words);
  EXPECT_TRUE(folder.names().empty());
}

std::string faulty(const std::string& fault) {
  return "plugin:" + kPlugins + "/faulty.so:fault=" + fault;
}

TEST(OwnModels, APluginIsRecordedPlannedAndVerified) {
  const MainJob job;
  // Its option `seq` is no number of tokens, and was not given.
  job.profile(faulty("none"), "4096", "adamw");
  job.make_plan({"--policy", "torchtune:min_bytes=1"});
  job.verify(true);
}

TEST(OwnModels, AModelThatSavesNothingIsRecordedAndNoPlanHelpsIt) {
  const MainJob job;
  job.profile(faulty("nothing-saved"), "", "none");
  const Outcome planned = stowage({"plan", job.trace, "--budget", "80%"});
  EXPECT_EQ(planned.code, 1);
  EXPECT_NE(planned.err.find("infeasible"), std::string::npos) << planned.err;
  job.make_plan({"--policy", "resident"});
  job.verify(false);
}

TEST(OwnModels, BadPluginsAreBadInput) {
  expect_error("plugin:no/such.so", 3, {"no/such.so", "No such file"});
  expect_error("plugin:" + kPlugins + "/other_torch.so", 3, {"LibTorch 2.3.1", "this program"});
  expect_error(faulty("make-throws"), 3, {"faulty.so", "out of ideas"});
  expect_error(faulty("batch-throws"), 3, {"load_batch() threw: no data today"});
  expect_error(faulty("batch-anew"), 3, {"load_batch() put a new tensor", "input 'x'", "copy_()"});
  expect_error(faulty("forward-throws-int"), 3, {"forward() threw: something"});
  expect_error(faulty("loss-throws"), 3, {"faulty.so: its forward() threw: no loss today"});
  expect_error(faulty("backward-throws"), 3, {"faulty.so: its backward threw: no gradient"});
  expect_error(faulty("backward-throws-int"), 3, {"faulty.so: its backward threw: something"});
  expect_error("plugin:" + kPlugins + "/throwing_static.so", 3,
               {"throwing_static.so: its static objects threw", "no licence"});
  expect_error(faulty("torch-error"), 3, {faulty("torch-error") + ": ", "cannot be multiplied"});
  expect_error("plugin:" + kPlugins + "/faulty.so:falt=none", 2, {"falt", "fault"});
  expect_error("plugin:" + kPlugins + "/faulty.so:fault", 2, {"'fault' is not an option"});
  expect_error("plugin:", 2, {"names no file"});
}

TEST(OwnModels, BadScriptsAreBadInput) {
  const TemporaryFolder folder;
  const std::string text = folder.write("net.pt", "import torch\n");
  expect_error("script:no/such.pt:shape=4x8", 3, {"no/such.pt", "cannot open it"});
  expect_error("script:" + text + ":shape=4x8", 3, {"net.pt", "it is not TorchScript"});
  const std::string pickle = folder.write("saved.pt", "\x80\x02\x8a\x0al");
  expect_error("script:" + pickle + ":shape=4x8", 3, {"it is torch.save()'s", "torch.jit"});
  expect_error("script:" + text, 2, {"needs the shape", "batch first"});
  expect_error("script:" + text + ":shape=4by8", 2, {"shape=4by8 is not allowed"});
}

TEST(OwnModels, ModelsListsThemAndAPluginsOptions) {
  const Outcome all = stowage({"models"});
  ASSERT_EQ(all.code, 0) << all.err;
  for (const char* const word : {"gpt2", "plugin:LIB.so", "script:FILE.pt", "shape="}) {
    EXPECT_NE(all.out.find(word), std::string::npos) << word;
  }
  const Outcome one = stowage({"models", "plugin:" + kPlugins + "/faulty.so", "--json"});
  ASSERT_EQ(one.code, 0) << one.err;
  const json models = json::parse(one.out).at("models");
  ASSERT_EQ(models.size(), 1U);
  EXPECT_EQ(models[0].at("options")[0].at("name"), "fault");
  EXPECT_EQ(models[0].at("options")[0].at("default"), "none");
  EXPECT_EQ(stowage({"models", "gtp2"}).code, 2);
  EXPECT_EQ(stowage({"models", "plugin:no.so"}).code, 3);
  const TemporaryFolder folder;
  const std::string text = folder.write("net.pt", "import torch\n");
  for (const auto& [file, word] : {std::pair<std::string, std::string>{"/nope.pt", "cannot open"},
                                   {folder.path(), "it is not a file"},
                                   {text, "it is not TorchScript"}}) {
    const Outcome outcome = stowage({"models", "script:" + file});
    cli_tests::expect_error(outcome, 3, {file + ": ", word});
    EXPECT_EQ(outcome.out, "");
  }
  const Outcome help = stowage({"models", "--help"});
  EXPECT_NE(help.out.find("code"), std::string::npos) << help.out;
}

}  // namespace
}  // namespace stowage
