#include "cli/command_line.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <nlohmann/json.hpp>
#include <sstream>
#include <stdexcept>

#include "cli/progress_bar.h"

namespace stowage::cli {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

struct Ran {
  int code = 0;
  std::string out;
  std::string err;
};

struct Values {
  std::optional<std::string> file;
  std::optional<std::string> budget;
  std::optional<std::int64_t> top;
  std::vector<std::string> set;
  bool explain = false;
};

Ran run(const Args& args, Values& values, const std::function<Result<int>(Console&)>& body) {
  CommandLine line("try", "Tries");
  line.positional_input("T", values.file, "a file");
  line.option("--budget", "B", values.budget, "bytes");
  line.option("-n,--top", "N", values.top, "rows");
  line.option("--set", "K=V", values.set, "settings");
  line.flag("--explain", values.explain, "more");
  line.future_option("--pareto");
  line.example("stowage try x");
  std::ostringstream out;
  std::ostringstream err;
  const int code = run_verb(line, args, out, err, body);
  return {code, out.str(), err.str()};
}

Ran run(const Args& args, Values& values) {
  return run(args, values, [](Console&) -> Result<int> { return 0; });
}

Ran run(const Args& args) {
  Values values;
  return run(args, values);
}

TEST(CommandLine, BindsWhatIsGiven) {
  Values values;
  const Ran ran =
      run({"t.json", "--budget", "60%", "-n", "7", "--set", "a=1", "--set", "b=2"}, values);
  EXPECT_EQ(ran.code, 0) << ran.err;
  EXPECT_EQ(values.file, "t.json");
  EXPECT_EQ(values.budget, "60%");
  EXPECT_EQ(values.top, 7);
  EXPECT_THAT(values.set, ::testing::ElementsAre("a=1", "b=2"));
  EXPECT_FALSE(values.explain);
}

TEST(CommandLine, AnOptionTakesOneValueAndLeavesThePositional) {
  Values values;
  EXPECT_EQ(run({"--set", "a=1", "--explain", "t.json"}, values).code, 0);
  EXPECT_EQ(values.file, "t.json");
  EXPECT_TRUE(values.explain);
}

TEST(CommandLine, NumbersAreWholeAndFit) {
  EXPECT_THAT(run({"t", "--top", "x"}).err, HasSubstr("--top: 'x' is not a whole number"));
  EXPECT_THAT(run({"t", "--top", "1.5"}).err, HasSubstr("'1.5' is not a whole number"));
  EXPECT_THAT(run({"t", "--top", "99999999999999999999"}).err, HasSubstr("is too large"));
  EXPECT_EQ(run({"t", "--top", "x"}).code, 2);
  Values values;
  EXPECT_EQ(run({"t", "-n", "-7"}, values).code, 0);
  EXPECT_EQ(values.top, -7);
}

TEST(CommandLine, MissingAndRepeatedValuesInPlainWords) {
  EXPECT_THAT(run({"t", "--budget"}).err, HasSubstr("--budget needs a value"));
  EXPECT_THAT(run({"t", "--top"}).err, HasSubstr("--top needs a value"));
  EXPECT_THAT(run({"t", "--budget", "1", "--budget", "2"}).err,
              HasSubstr("--budget is given more than once"));
  EXPECT_THAT(run({"t", "-n", "1", "--top", "2"}).err, HasSubstr("--top is given more than once"));
}

TEST(CommandLine, TwoDashesEndTheOptions) {
  Values values;
  EXPECT_EQ(run({"--top", "3", "--", "-x.json"}, values).code, 0);
  EXPECT_EQ(values.file, "-x.json");
  EXPECT_EQ(values.top, 3);
  EXPECT_EQ(run({"t", "--"}).code, 0);
  EXPECT_THAT(run({"t", "--", "-y"}).err, HasSubstr("unexpected argument '-y'"));
  EXPECT_THAT(run({"-y", "--", "t"}).err, HasSubstr("unknown option '-y'"));
}

TEST(CommandLine, NegativeNumbersAndDashesAreValues) {
  Values values;
  EXPECT_EQ(run({"-", "--budget", "-1"}, values).code, 0);
  EXPECT_EQ(values.file, "-");
  EXPECT_EQ(values.budget, "-1");
}

TEST(CommandLine, HelpIsForStdout) {
  const Ran ran = run({"--help"});
  EXPECT_EQ(ran.code, 0);
  EXPECT_THAT(ran.out, HasSubstr("usage: stowage try T [options]"));
  EXPECT_THAT(ran.out, HasSubstr("--budget B"));
  EXPECT_THAT(ran.out, HasSubstr("stowage try x"));
  EXPECT_THAT(ran.out, Not(HasSubstr("pareto")));
  EXPECT_EQ(ran.err, "");
}

TEST(CommandLine, UsageErrorsAreOneLineAndTwo) {
  for (const Args& args : std::vector<Args>{{},
                                            {"a", "b"},
                                            {"a", "--top", "x"},
                                            {"a", "--budget"},
                                            {"a", "--explain=5x"},
                                            {"a", "--color", "blue"},
                                            {"a", "--budget", "1", "--budget", "2"}}) {
    const Ran ran = run(args);
    EXPECT_EQ(ran.code, 2) << ::testing::PrintToString(args);
    EXPECT_EQ(ran.out, "");
    EXPECT_THAT(ran.err, HasSubstr("stowage: error: "));
    EXPECT_EQ(std::count(ran.err.begin(), ran.err.end(), '\n'), 1) << ran.err;
  }
}

TEST(CommandLine, AnUnknownOptionNamesTheNearest) {
  EXPECT_EQ(run({"a", "--budgte", "5"}).err,
            "stowage: error: unknown option '--budgte' (did you mean --budget?)\n");
  EXPECT_EQ(run({"--explian=x"}).err,
            "stowage: error: unknown option '--explian' (did you mean --explain?)\n");
  EXPECT_THAT(run({"a", "--xyzzy"}).err, HasSubstr("see stowage try --help"));
}

TEST(CommandLine, WhatIsNotThereYetSaysSo) {
  for (const char* argument : {"--pareto", "--pareto=5"}) {
    const Ran ran = run({"a", argument, "50"});
    EXPECT_EQ(ran.code, 2);
    EXPECT_EQ(ran.err, "stowage: error: --pareto is not supported yet\n");
  }
}

TEST(CommandLine, ErrorsAreJsonToo) {
  const Ran ran = run({"a", "--nope", "--json"});
  EXPECT_EQ(ran.code, 2);
  const auto json = nlohmann::json::parse(ran.out);
  EXPECT_EQ(json["error"]["code"], "usage");
  EXPECT_EQ(json["error"]["exit_code"], 2);
  EXPECT_EQ(json["error"]["message"], "unknown option '--nope'");
  EXPECT_EQ(json["error"]["where"], "");
  EXPECT_TRUE(json["error"].contains("hint"));
}

TEST(CommandLine, AnErrorOfTheBodyHasItsCodeAndPlace) {
  Values values;
  const Ran ran = run({"a", "--json"}, values, [](Console&) -> Result<int> {
    return Error{ErrorCode::bad_input, "two\nlines", "f.json", "/a/3", "mend it"};
  });
  EXPECT_EQ(ran.code, 3);
  EXPECT_EQ(ran.err, "stowage: error: f.json: /a/3: two?lines (mend it)\n");
  const auto json = nlohmann::json::parse(ran.out);
  EXPECT_EQ(json["error"]["where"], "f.json: /a/3");
  EXPECT_EQ(json["error"]["hint"], "mend it");
}

TEST(CommandLine, ExceptionsEndHere) {
  Values values;
  EXPECT_EQ(run({"a"}, values, [](Console&) -> Result<int> { throw std::bad_alloc(); }).code, 4);
  const Ran ran =
      run({"a"}, values, [](Console&) -> Result<int> { throw std::runtime_error("oh"); });
  EXPECT_EQ(ran.code, 70);
  EXPECT_THAT(ran.err, HasSubstr("internal error: oh"));
}

TEST(CommandLine, QuietSilencesRemarksButNotErrors) {
  Values values;
  const auto body = [](Console& console) -> Result<int> {
    console.warn("a warning");
    console.note("a remark");
    return usage_error("an error");
  };
  EXPECT_EQ(run({"a", "--quiet"}, values, body).err, "stowage: error: an error\n");
  EXPECT_EQ(run({"a"}, values, body).err,
            "stowage: warning: a warning\nstowage: a remark\nstowage: error: an error\n");
}

TEST(CommandLine, ColourOnlyWhereItIsWanted) {
  ::unsetenv("NO_COLOR");
  ::setenv("TERM", "xterm", 1);
  EXPECT_TRUE(paint_for("auto", true).on());
  EXPECT_FALSE(paint_for("auto", false).on());
  EXPECT_TRUE(paint_for("always", false).on());
  EXPECT_FALSE(paint_for("never", true).on());
  ::setenv("NO_COLOR", "1", 1);
  EXPECT_FALSE(paint_for("auto", true).on());
  EXPECT_TRUE(paint_for("always", true).on());
  ::unsetenv("NO_COLOR");
  ::setenv("TERM", "dumb", 1);
  EXPECT_FALSE(paint_for("auto", true).on());
}

TEST(ProgressBar, SaysHowFarHowFastAndHowLong) {
  EXPECT_EQ(ProgressBar::line("planning", 50, 200, 10.0, "plans", "best step 2 ms", 100),
            "planning [#####               ]  25 %, 5 plans/s, at most 30 s left, best step 2 ms");
  EXPECT_EQ(ProgressBar::line("planning", 5, 200, 10.0, "plans", "", 20), "planning [     ]   2");
}

// The bar gives way, then the remark, then the end.
TEST(ProgressBar, IsNoWiderThanItsTerminal) {
  const auto line = [](int width) {
    return ProgressBar::line("planning", 50, 200, 10.0, "plans", "best step 2 ms", width);
  };
  const std::string rest = "]  25 %, 5 plans/s, at most 30 s left";
  // 10 columns ahead of the bar, 37 behind it, and 16 of the remark.
  ASSERT_EQ(rest.size(), 37U);
  EXPECT_EQ(line(83), "planning [#####               " + rest + ", best step 2 ms");
  EXPECT_EQ(line(79), "planning [####            " + rest + ", best step 2 ms");
  EXPECT_EQ(line(68), "planning [#    " + rest + ", best step 2 ms");
  EXPECT_EQ(line(67), "planning [#####               " + rest);
  EXPECT_EQ(line(60), "planning [###          " + rest);
  EXPECT_EQ(line(40), ("planning [#    " + rest).substr(0, 40));
  for (int width = 0; width < 100; ++width) {
    EXPECT_LE(line(width).size(), static_cast<std::size_t>(width));
  }
}

TEST(ProgressBar, WritesNothingInTheFirstSecondNorWhenDisabled) {
  std::ostringstream err;
  {
    ProgressBar bar(err, true, "t", "u", 80);
    bar.update(1, 2, "");
    ProgressBar off(err, false, "t", "u", 80);
    off.update(1, 2, "");
  }
  EXPECT_EQ(err.str(), "");
}

}  // namespace
}  // namespace stowage::cli
