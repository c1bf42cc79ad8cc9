// A step of Python code is handed over to python3 as it was said. What records it is tested in
// tests/python/test_training_profile.py.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>

#include "tests/cli/process.h"

namespace stowage::cli_tests {
namespace {

using ::testing::HasSubstr;

// With that script as the python3 of PATH.
Outcome profile_with(const TemporaryFolder& folder, const std::string& script,
                     std::vector<std::string> args) {
  const std::string python = folder.write("python3", "#!/bin/sh\n" + script);
  std::filesystem::permissions(python, std::filesystem::perms::owner_all);
  Command command;
  command.args = {"profile"};
  command.args.insert(command.args.end(), args.begin(), args.end());
  command.environment = {"PATH=" + folder.path() + ":/usr/bin:/bin"};
  return run(command);
}

TEST(PythonProfile, IsHandedOverWordByWord) {
  const TemporaryFolder folder;
  const Outcome outcome =
      profile_with(folder, "[ \"$1\" = -c ] && exit 0\nprintf '[%s]' \"$@\"\nexit 3\n",
                   {"-q", "python:a b.py:step", "-o", "t.json.gz"});
  EXPECT_EQ(outcome.out, "[-m][stowage][profile][-q][a b.py:step][-o][t.json.gz]");
  EXPECT_EQ(outcome.code, 3);
}

TEST(PythonProfile, WithoutThePackageSaysSo) {
  const TemporaryFolder folder;
  const Outcome outcome =
      profile_with(folder, "exit 3\n", {"python:step.py:step", "-o", "t.json.gz", "--json"});
  EXPECT_EQ(outcome.code, 4);
  EXPECT_THAT(outcome.out, HasSubstr("the Python package stowage, which the python3 on PATH"));
  EXPECT_EQ(count_lines(outcome.err), 1);
}

TEST(PythonProfile, WithoutPythonSaysSo) {
  const TemporaryFolder folder;
  Command command;
  command.args = {"profile", "python:step.py:step", "-o", "t.json.gz"};
  command.environment = {"PATH=" + folder.path()};
  const Outcome outcome = run(command);
  EXPECT_EQ(outcome.code, 4);
  EXPECT_EQ(count_lines(outcome.err), 1);
  EXPECT_THAT(outcome.err, HasSubstr("python3 cannot be started"));
}

}  // namespace
}  // namespace stowage::cli_tests
