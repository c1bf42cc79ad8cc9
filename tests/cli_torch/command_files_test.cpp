// No verb of stowage-torch writes over what it reads, named on the command line or found through
// what is named there.
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <filesystem>
#include <nlohmann/json.hpp>

#include "tests/cli/file_options.h"
#include "tests/cli/main_job.h"

namespace stowage {
namespace {

using cli_tests::expect_no_output_is_another_file;
using cli_tests::FileRole;
using cli_tests::Outcome;
using cli_tests::read_text;
using cli_tests::stowage;
using cli_tests::TemporaryFolder;

TEST(TorchCommandFiles, OfEveryVerb) {
  expect_no_output_is_another_file(
      {"profile",
       {{"--output", FileRole::output}, {"--plan", FileRole::input}, {"--trace", FileRole::input}},
       {"mlp"}});
  expect_no_output_is_another_file(
      {"execute", {{"--plan", FileRole::input}, {"--trace", FileRole::input}}, {}});
  expect_no_output_is_another_file(
      {"verify",
       {{"--plan", FileRole::input}, {"--trace", FileRole::input}, {"--reference", FileRole::kept}},
       {}});
  expect_no_output_is_another_file({"check",
                                    {{"--plan", FileRole::input},
                                     {"--trace", FileRole::input},
                                     {"--baseline", FileRole::kept},
                                     {"--junit", FileRole::output}},
                                    {},
                                    {{"--baseline", {"--update-baseline"}}}});
  expect_no_output_is_another_file({"models", {}, {}});
}

void expect_kept(const std::vector<std::string>& args, const std::string& file) {
  const std::string before = read_text(file);
  cli_tests::expect_error(stowage(args), 2, {"is also an input", file});
  EXPECT_EQ(read_text(file), before);
}

// The model is a file: on the command line, in the plan, and as a plugin's option.
TEST(TorchCommandFiles, TheModelsFile) {
  const TemporaryFolder folder;
  const std::string plugin = folder.file("net.so");
  std::filesystem::copy_file(STOWAGE_PLUGIN_DIR "/faulty.so", plugin);
  const std::string script = folder.write("net.pt", "a script");
  for (const std::string& file : {plugin, script}) {
    const std::string model = (file == script ? "script:" : "plugin:") + file;
    expect_kept({"profile", model, "-o", file}, file);
    expect_kept({"profile", model + ":width=8", "-o", file}, file);
    expect_kept({"check", "--model", model, "--budget", "1GiB", "--junit", file}, file);
    expect_kept({"check", "--model", model, "--update-baseline", "--baseline", file}, file);
    const nlohmann::json plan = {
        {"schema", "stowage-plan/1"},
        {"for", {{"model", file == script ? model + ":shape=1x8" : model}}}};
    const std::string plan_file = folder.write("p.json", plan.dump());
    expect_kept({"check", "--plan", plan_file, "--budget", "1GiB", "--junit", file}, file);
  }
  expect_kept({"profile", "plugin:" + plugin + ":weights=" + script, "-o", script}, script);
}

// The trace that the plan names; the model that the trace names.
TEST(TorchCommandFiles, ThePlansTrace) {
  const TemporaryFolder folder;
  const std::string trace = folder.file("t.json");
  const std::string plan = folder.file("p.json");
  ASSERT_EQ(
      stowage({"profile", "mlp:layers=2,width=16", "--batch", "4", "--threads", "1", "-o", trace})
          .code,
      0);
  ASSERT_EQ(stowage({"plan", trace, "--policy", "torchtune:min_bytes=1", "-o", plan}).code, 0);
  expect_kept({"check", "--plan", plan, "--budget", "1GiB", "--junit", trace}, trace);
  expect_kept({"profile", "--plan", plan, "-o", trace}, trace);
  expect_kept({"check", "--plan", plan, "--baseline", trace, "--update-baseline"}, trace);
  expect_kept({"verify", "--plan", plan, "--reference", trace}, trace);
  cli_tests::Command command;
  command.args = {"check", "--plan", "-", "--budget", "1GiB", "--junit", "t.json"};
  command.input = read_text(plan);
  command.folder = folder.path();
  cli_tests::expect_error(cli_tests::run(command), 2, {"is also an input", "the plan's trace"});

  const std::string script = folder.write("net.pt", "a script");
  nlohmann::json of_script = nlohmann::json::parse(read_text(trace));
  of_script["run"]["model"] = "script:" + script + ":shape=4x8";
  const std::string named = folder.write("named.json", of_script.dump());
  const std::string bare = folder.write("bare.json", R"({"schema": "stowage-plan/1"})");
  expect_kept({"verify", "--plan", bare, "--trace", named, "--reference", script}, script);
}

// What is no regular file may never end, or wait for a writer for ever.
TEST(TorchCommandFiles, APlansTraceIsARegularFile) {
  const TemporaryFolder folder;
  ASSERT_EQ(::mkfifo(folder.file("pipe").c_str(), 0600), 0);
  for (const std::string& name :
       {std::string("/dev/zero"), folder.file("pipe"), folder.path(), std::string("/dev/tty")}) {
    SCOPED_TRACE(name);
    const nlohmann::json plan = {
        {"schema", "stowage-plan/1"},
        {"for", {{"model", "mlp:layers=1,width=8"}, {"trace_file", name}}}};
    const std::string file = folder.write("p.json", plan.dump());
    for (const std::vector<std::string>& args :
         std::vector<std::vector<std::string>>{{"execute", "--plan", file},
                                               {"verify", "--plan", file},
                                               {"check", "--plan", file, "--budget", "1GiB"}}) {
      const Outcome outcome = stowage(args);
      cli_tests::expect_error(outcome, 3, {"/for/trace_file", "no regular file", name});
    }
  }
}

}  // namespace
}  // namespace stowage
