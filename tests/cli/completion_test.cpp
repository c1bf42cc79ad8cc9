// The completions as the shells take them, and the manual page as its readers do.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <sstream>

#include "cli/completion_scripts.h"
#include "cli/man_page.h"
#include "cli/verb_description_json.h"
#include "tests/cli/process.h"

namespace stowage::cli_tests {
namespace {

using cli::VerbDescription;
using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;
using ::testing::UnorderedElementsAre;

// A verb with all that help texts may have in them.
VerbDescription odd_verb() {
  return {.verb = "odd",
          .usage = "stowage odd T [options]",
          .summary = "it's [odd]: \\ and 'quoted'",
          .arguments = {{.long_name = "T",
                         .value = "T",
                         .help = "a trace",
                         .offered = {.file = true, .endings = {".json", ".json.gz"}}}},
          .options = {{.short_name = "-o",
                       .long_name = "--output",
                       .value = "F",
                       .help = "it's [here]: 'a' \\ b $HOME `x`",
                       .offered = {.file = true}},
                      {.long_name = "--mode",
                       .value = "MODE",
                       .help = ".dot first",
                       .offered = {.words = {"near", "far", "next:"}}},
                      {.long_name = "--set", .value = "NAME=VALUE", .repeats = true},
                      {.long_name = "--json", .help = "a flag"}},
          .details = {".first\n'second\n  third \\fB"},
          .examples = {"stowage odd t.json -o -"}};
}

Outcome run_program(const std::string& program, const std::vector<std::string>& args) {
  Command command;
  command.program = program;
  command.args = args;
  return run(command);
}

bool has(const std::string& program) {
  return run_program("/bin/sh", {"-c", "command -v " + program}).code == 0;
}

class Completions : public ::testing::Test {
 protected:
  void SetUp() override {
    for (const char* name : {"a.json", "b.json.gz", "c.txt", "with space.json"}) {
      folder_.write(name, "{}");
    }
    std::filesystem::create_directory(folder_.file("sub"));
  }

  std::string script(const std::string& shell) {
    const Outcome outcome = stowage({"completions", shell, "--quiet"});
    EXPECT_EQ(outcome.code, 0) << outcome.err;
    return folder_.write("script." + shell, outcome.out);
  }

  static std::vector<std::string> lines(const std::string& text) {
    std::vector<std::string> all;
    std::istringstream stream(text);
    for (std::string line; std::getline(stream, line);) all.push_back(line);
    std::sort(all.begin(), all.end());
    return all;
  }

  // What bash replies when the last of `words` is being written.
  std::vector<std::string> bash(const std::vector<std::string>& words,
                                const std::string& script_file) {
    std::string array;
    for (const std::string& word : words) array += " '" + word + "'";
    const Outcome outcome =
        run_program("/bin/bash", {"--norc", "-c",
                                  "cd '" + folder_.file("") + "' && source '" + script_file +
                                      "' && COMP_WORDS=(" + array +
                                      ") COMP_CWORD=" + std::to_string(words.size() - 1) +
                                      " && _stowage && printf '%s\\n' \"${COMPREPLY[@]}\""});
    EXPECT_EQ(outcome.code, 0) << outcome.err;
    EXPECT_EQ(outcome.err, "");
    return lines(outcome.out);
  }

  // The words that fish offers, without what it says of them.
  std::vector<std::string> fish(const std::string& typed, const std::string& script_file) {
    const Outcome outcome =
        run_program("/bin/sh", {"-c", "cd '" + folder_.file("") + "' && HOME='" + folder_.file("") +
                                          "' fish --no-config -c 'source " + script_file +
                                          "; complete -C \"" + typed + "\"'"});
    EXPECT_EQ(outcome.code, 0) << outcome.err;
    std::vector<std::string> words = lines(outcome.out);
    for (std::string& word : words) word.erase(std::min(word.find('\t'), word.size()));
    return words;
  }

  TemporaryFolder folder_;
};

TEST_F(Completions, OfBash) {
  const std::string file = script("bash");
  EXPECT_THAT(bash({"stowage", "ins"}, file), ElementsAre("inspect"));
  EXPECT_THAT(bash({"stowage", "plan", "t", "--bud"}, file),
              ElementsAre("--budget", "--budget-on"));
  EXPECT_THAT(bash({"stowage", "plan", "t", "--budget-on", "re"}, file),
              ElementsAre("requested", "reserved"));
  EXPECT_THAT(bash({"stowage", "plan", "t", "--budget-on", "=", "res"}, file),
              ElementsAre("reserved"));
  EXPECT_THAT(bash({"stowage", "plan", "t", "--placement", "="}, file),
              ElementsAre("caching", "planned"));
  EXPECT_THAT(bash({"stowage", "simulate", "t", "--policy", "torch"}, file),
              ElementsAre("torchtune"));
  EXPECT_THAT(bash({"stowage", "simulate", "t", "--set", "link.h2d"}, file),
              ElementsAre("link.h2d_gbps="));
  EXPECT_THAT(bash({"stowage", "inspect", ""}, file),
              ElementsAre("a.json", "b.json.gz", "sub", "with space.json"));
  EXPECT_THAT(bash({"stowage", "simulate", "t", "--plan", "a"}, file), ElementsAre("a.json"));
  EXPECT_THAT(bash({"stowage", "simulate", "t", "--plan", "c"}, file), ElementsAre(""));
  EXPECT_THAT(bash({"stowage", "completions", "z"}, file), ElementsAre("zsh"));
}

TEST_F(Completions, OfBashWithOddTexts) {
  const std::string file = folder_.write("odd.bash", cli::bash_completions({odd_verb()}));
  EXPECT_THAT(bash({"stowage", "odd", "t", "--mode", "ne"}, file), ElementsAre("near", "next:"));
  EXPECT_THAT(bash({"stowage", "odd", "t", "-o", "c"}, file), ElementsAre("c.txt"));
  EXPECT_THAT(bash({"stowage", "odd", "t", "--"}, file),
              ElementsAre("--json", "--mode", "--output", "--set"));
}

TEST_F(Completions, OfFish) {
  if (!has("fish")) GTEST_SKIP() << "fish is not installed";
  const std::string file = script("fish");
  EXPECT_THAT(fish("stowage ins", file), ElementsAre("inspect"));
  EXPECT_THAT(fish("stowage plan t --bud", file), ElementsAre("--budget", "--budget-on"));
  EXPECT_THAT(fish("stowage plan t --budget-on res", file), ElementsAre("reserved"));
  EXPECT_THAT(fish("stowage simulate t --policy torch", file), ElementsAre("torchtune"));
  EXPECT_THAT(fish("stowage simulate t --plan a", file), ElementsAre("a.json"));
  EXPECT_THAT(fish("stowage completions ", file), UnorderedElementsAre("bash", "fish", "zsh"));
  const std::string odd = folder_.write("odd.fish", cli::fish_completions({odd_verb()}));
  EXPECT_THAT(fish("stowage odd t --mode ne", odd), ElementsAre("near", "next:"));
}

TEST_F(Completions, OfZsh) {
  if (!has("zsh")) GTEST_SKIP() << "zsh is not installed";
  const std::string odd = folder_.write("odd.zsh", cli::zsh_completions({odd_verb()}));
  for (const std::string& file : {script("zsh"), odd}) {
    const Outcome syntax = run_program("/bin/sh", {"-c", "zsh -n '" + file + "'"});
    EXPECT_EQ(syntax.code, 0) << syntax.err;
    EXPECT_EQ(syntax.err, "");
  }
}

TEST_F(Completions, OfAnUnknownShell) {
  const Outcome outcome = stowage({"completions", "fisch"});
  EXPECT_EQ(outcome.code, 2);
  EXPECT_THAT(outcome.err, HasSubstr("did you mean fish?"));
  EXPECT_EQ(stowage({"completions", "bash", "--json"}).code, 2);
}

TEST_F(Completions, HaveEveryOptionOfHelp) {
  const std::string scripts = stowage({"completions", "bash"}).out;
  for (const char* verb : {"inspect", "simulate", "plan", "diff", "export", "policies", "doctor"}) {
    std::istringstream help(stowage({verb, "--help"}).out);
    int options = 0;
    for (std::string line; std::getline(help, line);) {
      const auto at = line.find("  --") == 0 ? 2 : line.find(", --") == 4 ? 6 : line.find("--");
      if (!line.starts_with("  ") || at == std::string::npos || at > 6) continue;
      const std::string name = line.substr(at, line.find(' ', at) - at);
      const auto of_verb = scripts.find(std::string("      ") + verb + ") _stowage_words");
      ASSERT_NE(of_verb, std::string::npos) << verb;
      const std::string words =
          scripts.substr(of_verb, scripts.find('\n', of_verb) - of_verb) + " ";
      EXPECT_TRUE(words.find(name + " ") != std::string::npos ||
                  words.find(name + "'") != std::string::npos)
          << verb << " " << name;
      ++options;
    }
    EXPECT_GE(options, 4) << verb;
  }
}

TEST_F(Completions, ADescriptionComesBackAsItWas) {
  const VerbDescription odd = odd_verb();
  EXPECT_EQ(cli::read_verb_description(cli::verb_description_json(odd)), odd);
  EXPECT_EQ(cli::read_verb_description("unknown verb"), std::nullopt);
  EXPECT_EQ(cli::read_verb_description(R"({"schema":"stowage-verb/2"})"), std::nullopt);
}

class ManPage : public Completions {
 protected:
  // What a reader finds wrong with a page.
  std::string complaints(const std::string& reader, const std::string& page) {
    const std::string file = folder_.write("stowage.1", page);
    const Outcome outcome = run_program("/bin/sh", {"-c", reader + " '" + file + "'"});
    return outcome.out + outcome.err;
  }
};

TEST_F(ManPage, ItsReadersAreContent) {
  if (!has("groff") && !has("mandoc")) GTEST_SKIP() << "neither groff nor mandoc is installed";
  const std::string page = stowage({"man", "--quiet"}).out;
  EXPECT_THAT(page, HasSubstr("\\fB\\-\\-budget\\-on\\fR \\fICOUNTER\\fR"));
  for (const std::string& text : {page, cli::man_page({odd_verb()})}) {
    if (has("groff")) {
      EXPECT_EQ(complaints("groff -man -ww -z -Tutf8", text), "");
    }
    if (has("mandoc")) {
      EXPECT_EQ(complaints("mandoc -Tlint -W warning", text), "");
    }
  }
}

TEST_F(ManPage, OddTextsAreShownAsTheyAre) {
  if (!has("mandoc")) GTEST_SKIP() << "mandoc is not installed";
  const std::string shown = complaints("mandoc -Tascii", cli::man_page({odd_verb()}));
  for (const char* text : {".first", "'second", "third \\fB", "stowage odd t.json -o -"}) {
    EXPECT_THAT(shown, HasSubstr(text));
  }
}

}  // namespace
}  // namespace stowage::cli_tests
