// The command as a whole: its help, its version, and how it finds stowage-torch.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <nlohmann/json.hpp>

#include "tests/cli/golden.h"
#include "tests/cli/process.h"
#include "traces/build_info.h"

namespace stowage::cli_tests {
namespace {

namespace fs = std::filesystem;
using ::testing::HasSubstr;
using ::testing::Not;

TEST(Stowage, HelpIsAsItWas) {
  const Outcome all = stowage({"--help"});
  EXPECT_EQ(all.code, 0);
  expect_golden("help.txt", all.out);
  for (const char* verb : {"doctor", "inspect", "policies", "simulate", "plan", "diff", "export",
                           "completions", "man"}) {
    const Outcome outcome = stowage({verb, "--help"});
    EXPECT_EQ(outcome.code, 0);
    EXPECT_EQ(outcome.err, "");
    EXPECT_THAT(outcome.out, HasSubstr("\nexample"));
    expect_golden("help_" + std::string(verb) + ".txt", outcome.out);
    EXPECT_EQ(stowage({"help", verb}).out, outcome.out);
  }
}

TEST(Stowage, WithoutAVerbItIsAUsageError) {
  const Outcome outcome = stowage({});
  EXPECT_EQ(outcome.code, 2);
  EXPECT_EQ(outcome.out, "");
  EXPECT_THAT(outcome.err, HasSubstr("usage: stowage VERB"));
}

TEST(Stowage, HiddenVerbsAreNotListed) {
  const std::string help = stowage({"--help"}).out;
  for (const char* word : {"demo-report", "check-steps", "import"}) {
    EXPECT_THAT(help, Not(HasSubstr(std::string("  ") + word + " "))) << word;
  }
}

TEST(Stowage, Version) {
  EXPECT_EQ(stowage({"--version"}).out, "stowage " + std::string(kVersion) + "\n");
}

TEST(Stowage, PoliciesAreListedWithTheirOptions) {
  const Outcome text = stowage({"policies"});
  EXPECT_EQ(text.code, 0);
  const auto json = nlohmann::json::parse(stowage({"policies", "--json"}).out);
  EXPECT_EQ(json["schema"], "stowage-policies/1");
  std::vector<std::string> names;
  for (const auto& policy : json["policies"]) {
    names.push_back(policy["name"].get<std::string>());
    EXPECT_THAT(text.out, HasSubstr(names.back()));
  }
  EXPECT_THAT(names,
              ::testing::IsSupersetOf({"resident", "save_on_cpu", "torchtune", "thunder", "auto"}));
}

// A copy of the command in a folder of its own, so that no stowage-torch of the build is beside it.
class TorchVerbs : public ::testing::Test {
 protected:
  void SetUp() override {
    fs::create_directories(folder_.file("bin"));
    fs::create_directories(folder_.file("path"));
    fs::copy_file(STOWAGE_BIN_DIR "/stowage", folder_.file("bin/stowage"));
  }
  void script(const std::string& name, const std::string& text) const {
    fs::create_directories(fs::path(folder_.file(name)).parent_path());
    folder_.write(name, "#!/bin/sh\n" + text);
    fs::permissions(folder_.file(name), fs::perms::owner_all);
  }
  Outcome run_copy(std::vector<std::string> args) const {
    Command command;
    command.program = folder_.file("bin/stowage");
    command.args = std::move(args);
    command.environment = {"PATH=" + folder_.file("path") + ":/usr/bin:/bin"};
    return run(command);
  }
  TemporaryFolder folder_;
};

TEST_F(TorchVerbs, WithoutItTheySayHowToGetIt) {
  for (const char* verb : {"profile", "execute", "verify", "models"}) {
    const Outcome outcome = run_copy({verb, "--json"});
    EXPECT_EQ(outcome.code, 4);
    EXPECT_EQ(count_lines(outcome.err), 1);
    EXPECT_THAT(outcome.err, HasSubstr("scripts/demo.sh"));
    EXPECT_THAT(outcome.err, HasSubstr("-DSTOWAGE_WITH_TORCH=ON"));
    EXPECT_EQ(nlohmann::json::parse(outcome.out)["error"]["code"], "environment");
  }
}

TEST_F(TorchVerbs, ItIsStartedWithTheVerbAndEverythingBehind) {
  script("bin/stowage-torch", "printf '<%s>' \"$@\"; echo oops >&2; exit 7\n");
  const Outcome outcome = run_copy({"profile", "mlp:layers=2", "-o", "a b", "--json"});
  EXPECT_EQ(outcome.code, 7);
  EXPECT_EQ(outcome.out, "<profile><mlp:layers=2><-o><a b><--json>");
  EXPECT_EQ(outcome.err, "oops\n");
}

TEST_F(TorchVerbs, BesideComesBeforeLibexecBeforePath) {
  script("path/stowage-torch", "echo path\n");
  EXPECT_EQ(run_copy({"models"}).out, "path\n");
  script("libexec/stowage/stowage-torch", "echo libexec\n");
  EXPECT_EQ(run_copy({"models"}).out, "libexec\n");
  script("bin/stowage-torch", "echo beside\n");
  EXPECT_EQ(run_copy({"models"}).out, "beside\n");
}

TEST_F(TorchVerbs, DoctorAsksIt) {
  script("bin/stowage-torch",
         "[ \"$*\" = 'doctor --json' ] && echo '{\"libtorch\": {\"version\": \"9.9\"}}'\n");
  EXPECT_THAT(run_copy({"doctor"}).out, HasSubstr("LibTorch 9.9"));
  const auto json = nlohmann::json::parse(run_copy({"doctor", "--json"}).out);
  EXPECT_EQ(json["libtorch"]["version"], "9.9");
  script("bin/stowage-torch", "exit 1\n");
  const Outcome broken = run_copy({"doctor"});
  EXPECT_EQ(broken.code, 0);
  EXPECT_THAT(broken.out, HasSubstr("does not run"));
}

}  // namespace
}  // namespace stowage::cli_tests
