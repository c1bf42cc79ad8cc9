// Every option of a verb whose value is a file, as its help tells, and what happens when an output
// of the verb is one of the others.
#pragma once

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <map>
#include <sstream>
#include <string>
#include <vector>

#include "tests/cli/process.h"

namespace stowage::cli_tests {

enum class FileRole { input, output, kept };

struct VerbFiles {
  std::string verb;
  std::map<std::string, FileRole> roles;  // by option or positional, "T", "--plan"
  std::vector<std::string> arguments;     // besides them
  // Options that come with one of the roles': {"--baseline", {"--update-baseline"}}
  std::map<std::string, std::vector<std::string>> beside = {};
};

// The options and positionals of a help whose value is a file.
inline std::vector<std::string> file_options_of_help(const std::string& verb) {
  const std::vector<std::string> words = {"FILE", "F", "OUT", "P", "T", "V", "A", "B"};
  const auto is_file = [&](const std::string& word) {
    return std::find(words.begin(), words.end(), word) != words.end();
  };
  std::vector<std::string> found;
  std::istringstream lines(stowage({verb, "--help"}).out);
  for (std::string line; std::getline(lines, line);) {
    std::istringstream rest(line);
    std::string first;
    std::string second;
    std::string third;
    rest >> first >> second >> third;
    if (line.rfind("  ", 0) != 0 || line.rfind("  stowage", 0) == 0) continue;
    if (first.rfind("--", 0) == 0 && second != "B" && is_file(second)) found.push_back(first);
    if (first.size() == 3 && first[0] == '-' && first[2] == ',' && is_file(third)) {
      found.push_back(second);
    }
    if (line.size() > 4 && line[2] != ' ' && is_file(first)) found.push_back(first);
  }
  std::sort(found.begin(), found.end());
  return found;
}

// The verb with a file of its own for each option.
inline std::vector<std::string> command_of(const VerbFiles& verb,
                                           const std::map<std::string, std::string>& paths) {
  std::vector<std::string> args = {verb.verb};
  args.insert(args.end(), verb.arguments.begin(), verb.arguments.end());
  for (const auto& [option, role] : verb.roles) {
    if (option.rfind("--", 0) == 0) args.push_back(option);
    args.push_back(paths.at(option));
    const auto more = verb.beside.find(option);
    if (more != verb.beside.end()) {
      args.insert(args.end(), more->second.begin(), more->second.end());
    }
  }
  return args;
}

// Each output under each other file's name, spelt in four ways: refused, and nothing is changed.
inline void expect_no_output_is_another_file(const VerbFiles& verb) {
  SCOPED_TRACE(verb.verb);
  std::vector<std::string> listed;
  for (const auto& [option, role] : verb.roles) listed.push_back(option);
  EXPECT_EQ(file_options_of_help(verb.verb), listed);
  const TemporaryFolder folder;
  std::map<std::string, std::string> paths;
  for (const std::string& option : listed) {
    paths[option] = folder.write(option.substr(option.rfind('-') + 1), "content of " + option);
  }
  for (const auto& [output, role] : verb.roles) {
    if (role == FileRole::input) continue;
    for (const std::string& other : listed) {
      if (other == output) continue;
      const std::string& file = paths[other];
      const std::string link = folder.file("link");
      const std::string hard_link = folder.file("hard");
      ASSERT_EQ(::symlink(file.c_str(), link.c_str()), 0);
      ASSERT_EQ(::link(file.c_str(), hard_link.c_str()), 0);
      for (const std::string& name :
           {file, folder.path() + "/./" + file.substr(folder.path().size() + 1), link, hard_link}) {
        SCOPED_TRACE(output + " " + name + ", which is " + other);
        std::map<std::string, std::string> same = paths;
        same[output] = name;
        const Outcome outcome = stowage(command_of(verb, same));
        EXPECT_EQ(outcome.code, 2) << outcome.err;
        EXPECT_THAT(outcome.err, ::testing::AnyOf(::testing::HasSubstr("is also an input"),
                                                  ::testing::HasSubstr("name the same file")));
        EXPECT_THAT(outcome.err, ::testing::HasSubstr(output));
        EXPECT_EQ(count_lines(outcome.err), 1);
        for (const auto& [option, path] : paths) {
          EXPECT_EQ(read_text(path), "content of " + option);
        }
      }
      ::unlink(link.c_str());
      ::unlink(hard_link.c_str());
    }
  }
}

}  // namespace stowage::cli_tests
