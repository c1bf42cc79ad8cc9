// cli/command_files: no verb writes over what it reads.
#include "cli/command_files.h"

#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include "tests/cli/file_options.h"

namespace stowage::cli {
namespace {

using cli_tests::expect_no_output_is_another_file;
using cli_tests::FileRole;
using cli_tests::TemporaryFolder;

TEST(CommandFiles, OfEveryVerb) {
  expect_no_output_is_another_file({"inspect", {{"T", FileRole::input}}, {}});
  expect_no_output_is_another_file({"diff", {{"A", FileRole::input}, {"B", FileRole::input}}, {}});
  expect_no_output_is_another_file(
      {"simulate",
       {{"T", FileRole::input}, {"--plan", FileRole::input}, {"--timeline", FileRole::output}},
       {}});
  expect_no_output_is_another_file({"plan",
                                    {{"T", FileRole::input},
                                     {"--pins", FileRole::input},
                                     {"--output", FileRole::output},
                                     {"--timeline", FileRole::output}},
                                    {"--budget", "60%"}});
  expect_no_output_is_another_file(
      {"export",
       {{"T", FileRole::input}, {"--plan", FileRole::input}, {"--output", FileRole::output}},
       {"--format", "svg"}});
  expect_no_output_is_another_file(
      {"demo-report",
       {{"--trace", FileRole::input}, {"--plan", FileRole::input}, {"--verify", FileRole::input}},
       {}});
  for (const char* verb : {"doctor", "policies"}) expect_no_output_is_another_file({verb, {}, {}});
}

TEST(CommandFiles, WhatIsNotThereYet) {
  const TemporaryFolder folder;
  CommandFiles files;
  files.add({.name = "--one", .path = folder.file("new"), .written = true});
  files.add(
      {.name = "--two",
       .path = folder.path() + "/../" + folder.path().substr(folder.path().rfind('/') + 1) + "/new",
       .written = true});
  const Status status = files.check();
  ASSERT_FALSE(status);
  EXPECT_EQ(status.error().code, ErrorCode::usage);
  EXPECT_EQ(status.error().message, "--one and --two name the same file, " + folder.file("new"));
}

TEST(CommandFiles, DevicesAndStandardStreamsAreNobodys) {
  CommandFiles files;
  files.add({.name = "--one", .path = "/dev/null", .written = true});
  files.add({.name = "--two", .path = "/dev/null", .read = true, .written = true});
  files.add({.name = "--three", .path = "-", .written = true});
  files.add({.name = "--four", .path = "-", .read = true});
  EXPECT_TRUE(files.check());
  EXPECT_TRUE(files.may_write("/dev/null"));
}

TEST(CommandFiles, AFileThatIsFoundThroughAnother) {
  const TemporaryFolder folder;
  const std::string input = folder.write("t.json", "x");
  ASSERT_EQ(::link(input.c_str(), folder.file("hard").c_str()), 0);
  CommandFiles files;
  files.add({.name = "--output", .path = folder.file("hard"), .written = true});
  EXPECT_TRUE(files.check());
  EXPECT_TRUE(files.may_write(folder.file("hard")));
  const Status status = files.reads(input, "the plan's trace");
  ASSERT_FALSE(status);
  EXPECT_EQ(status.error().message,
            "--output " + folder.file("hard") +
                " is also an input, the plan's trace, and would be overwritten");
  EXPECT_FALSE(files.may_write(folder.file("hard")));
  EXPECT_TRUE(files.may_write(folder.file("another")));
}

TEST(CommandFiles, WhatIsKeptIsReadAndWritten) {
  const TemporaryFolder folder;
  const std::string baseline = folder.write("b.json", "x");
  CommandFiles files;
  files.add({.name = "--baseline", .path = baseline, .read = true, .written = true, .kept = true});
  EXPECT_TRUE(files.check());
  EXPECT_TRUE(files.may_write(baseline));
}

}  // namespace
}  // namespace stowage::cli
