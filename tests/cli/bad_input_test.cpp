// The real command on bad input: the exit code, one clear line on stderr, nothing left behind.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <nlohmann/json.hpp>

#include "tests/cli/process.h"
#include "tests/support/small_trace.h"
#include "traces/build_info.h"
#include "traces/file_io.h"
#include "traces/trace_file.h"

namespace stowage::cli_tests {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;
using testing::small_trace;
using ::testing::StartsWith;
using Json = nlohmann::json;

class BadInput : public ::testing::Test {
 protected:
  void SetUp() override {
    trace_ = folder_.file("t.json.gz");
    ASSERT_TRUE(save_trace(trace_, small_trace(3)).ok());
    const auto text = read_file(trace_);
    ASSERT_TRUE(text.ok());
    json_ = Json::parse(text.value());
  }

  // Runs and expects `code`, no stdout, and one line on stderr, which is returned.
  std::string error_of(int code, const std::vector<std::string>& args,
                       const std::string& input = {}) {
    const Outcome outcome = stowage(args, input);
    EXPECT_EQ(outcome.code, code) << outcome.err;
    EXPECT_EQ(outcome.out, "");
    EXPECT_EQ(count_lines(outcome.err), 1) << outcome.err;
    EXPECT_THAT(outcome.err, StartsWith("stowage: error: "));
    return outcome.err;
  }
  // Of `inspect` on a changed trace.
  std::string error_of_trace(const Json& json) {
    return error_of(3, {"inspect", "-"}, json.dump());
  }

  TemporaryFolder folder_;
  std::string trace_;
  Json json_;
};

TEST_F(BadInput, FilesThatAreNoTraces) {
  EXPECT_THAT(error_of(3, {"inspect", "-"}, "nonsense"), HasSubstr("<stdin>"));
  EXPECT_THAT(error_of(3, {"inspect", "-"}, ""), HasSubstr("<stdin>"));
  EXPECT_THAT(error_of(3, {"inspect", "-"}, "[]"), HasSubstr("not an object"));
  EXPECT_THAT(error_of(3, {"inspect", "-"}, "\x1f\x8b"), HasSubstr("gzip"));
  const std::string packed = read_text(trace_);
  const std::string cut = folder_.write("cut.json.gz", packed.substr(0, packed.size() / 2));
  EXPECT_THAT(error_of(3, {"inspect", cut}), HasSubstr("cut.json.gz: truncated gzip"));
  EXPECT_THAT(error_of(3, {"inspect", folder_.file("none")}), HasSubstr("no such file"));
  EXPECT_THAT(error_of(3, {"inspect", folder_.path()}), HasSubstr("directory"));
  EXPECT_THAT(error_of(3, {"inspect", folder_.write("two\nlines", "x")}), HasSubstr("two?lines"));
}

TEST_F(BadInput, NestedVeryDeeply) {
  const std::string brackets(200'000, '[');
  error_of(3, {"inspect", "-"}, brackets);
  error_of(3, {"inspect", "-"}, "{\"schema\":" + brackets);
  error_of(3, {"simulate", trace_, "--plan", "-"}, brackets);
  error_of(3, {"simulate", trace_, "--plan", "-"}, "{\"saved\":" + brackets);
}

// 24 MiB of the smallest elements there are, in a gzip of 24 KiB. Without a limit a trace's lists
// took 300 MB, a library's document more.
TEST_F(BadInput, SmallFilesThatWouldNeedMuchMemory) {
  constexpr std::size_t kUnpacked = std::size_t{24} << 20;
  // The text itself, what is made up to the limits, and what the sanitizers add.
  const std::int64_t most = kSanitizers.empty() ? 150'000 : 500'000;
  const auto many = [&](const std::string& begin, const std::string& element,
                        const std::string& end = "0") {
    std::string text = begin;
    text.reserve(kUnpacked + begin.size() + element.size());
    while (text.size() < kUnpacked) text += element;
    return gzip(text + end);
  };
  const auto expect_refused = [&](const std::vector<std::string>& args, const std::string& packed) {
    const std::string file = folder_.write("many.json.gz", packed);
    std::vector<std::string> words = args;
    for (std::string& word : words) {
      if (word == "MANY") word = file;
    }
    const Outcome outcome = stowage(words);
    EXPECT_EQ(outcome.code, 3) << outcome.err;
    EXPECT_THAT(outcome.err, StartsWith("stowage: error: " + file + ": "));
    EXPECT_THAT(outcome.err, HasSubstr("more than"));
    EXPECT_EQ(count_lines(outcome.err), 1);
    EXPECT_LT(outcome.peak_kib, most) << outcome.err;
  };
  for (const char* element : {"[],", "[0],"}) {
    expect_refused({"inspect", "MANY"}, many("{\"lists\":[", element));
  }
  expect_refused({"inspect", "MANY"}, many("{\"strings\":[", "\"\","));
  expect_refused({"inspect", "MANY"}, many("{\"legend\":{\"dtype\":[", "\"\","));
  expect_refused({"inspect", "MANY"}, many("{\"run\":{\"model\":\"", "x", "\""));
  for (const char* element : {"[],", "{},", "0,", "\"\",", "[[[[[]]]]],"}) {
    SCOPED_TRACE(element);
    const std::string plan = many("{\"schema\":\"stowage-plan/1\",\"saved\":[", element);
    expect_refused({"simulate", trace_, "--plan", "MANY"}, plan);
    expect_refused({"diff", "MANY", "MANY"}, plan);
    expect_refused({"diff", "MANY", "MANY"},
                   many("{\"schema\":\"stowage-verify/1\",\"steps\":[", element));
  }
}

TEST_F(BadInput, AnotherMajorSchema) {
  Json json = json_;
  json["schema"]["major"] = 99;
  EXPECT_THAT(error_of_trace(json), HasSubstr("/schema/major"));
}

TEST_F(BadInput, ColumnsOfDifferentLength) {
  Json json = json_;
  json["storages"]["bytes"].erase(0);
  EXPECT_THAT(error_of_trace(json), HasSubstr("/storages/bytes"));
}

TEST_F(BadInput, DanglingIds) {
  Json json = json_;
  json["saved"]["tensor"][0] = 12345;
  EXPECT_THAT(error_of_trace(json), HasSubstr("/saved/tensor/0"));
}

TEST_F(BadInput, NegativeAndAbsurdSizes) {
  for (const char* value : {"-4096", "9223372036854775807", "1e300", "\"many\"", "null"}) {
    Json json = json_;
    json["storages"]["bytes"][1] = Json::parse(value);
    EXPECT_THAT(error_of_trace(json), HasSubstr("/storages/bytes")) << value;
  }
}

TEST_F(BadInput, PlansForSomethingElse) {
  Json plan = {{"schema", "stowage-plan/1"},
               {"for",
                {{"model", "small:layers=3"},
                 {"batch", 64},
                 {"fingerprint", "sha256:" + std::string(64, '1')}}},
               {"saved", Json::array()}};
  const std::string file = folder_.write("p.json", plan.dump());
  EXPECT_THAT(error_of(3, {"simulate", trace_, "--plan", file}),
              HasSubstr("/for/batch: the plan is for batch 64, the trace is of batch 4"));
  plan["for"] = Json::object();
  plan["saved"] = {{{"site", "layers.3#0"}, {"do", "offload"}}};
  folder_.write("p.json", plan.dump());
  EXPECT_THAT(error_of(3, {"simulate", trace_, "--plan", file}), HasSubstr("/saved/0/site"));
}

TEST_F(BadInput, Budgets) {
  for (const char* budget : {"0", "-1", "12XB", "", "0%", "nan", "1e400GB"}) {
    EXPECT_THAT(error_of(2, {"plan", trace_, "--budget", budget}), HasSubstr("--budget: "))
        << budget;
  }
  EXPECT_THAT(error_of(2, {"plan", trace_}), HasSubstr("no --budget"));
  EXPECT_THAT(error_of(2, {"plan", trace_, "--budget", "60%", "--host-budget", "60%"}),
              HasSubstr("--host-budget: "));
  EXPECT_THAT(error_of(2, {"plan", trace_, "--budget", "60%", "--budget-on", "reserved"}),
              HasSubstr("reserved"));
  EXPECT_THAT(error_of(2, {"plan", trace_, "--budget", "60%", "--budget-on", "actve"}),
              HasSubstr("did you mean active?"));
  EXPECT_THAT(error_of(2, {"plan", trace_, "--budget", "60%", "--time-limit", "5"}),
              HasSubstr("--time-limit: "));
}

TEST_F(BadInput, ABudgetBelowTheFloor) {
  const std::string out = folder_.file("p.json");
  const Outcome outcome = stowage({"plan", trace_, "--budget", "1MB", "-o", out});
  EXPECT_EQ(outcome.code, 1);
  EXPECT_EQ(count_lines(outcome.err), 1);
  EXPECT_THAT(outcome.err, HasSubstr("stowage: error: infeasible: the floor is "));
  EXPECT_THAT(outcome.err, HasSubstr("in layer layers."));
  EXPECT_THAT(outcome.err, HasSubstr("the budget is 1.00 MB (1,000,000 bytes)"));
  EXPECT_THAT(outcome.out, HasSubstr("The floor: "));
  EXPECT_THAT(folder_.names(), ElementsAre("t.json.gz"));
}

TEST_F(BadInput, AnOlderFileWhereTheAnswerDidNotGoIsNamed) {
  const std::string out = folder_.write("p.json", "the older plan");
  const auto err_of = [](const std::vector<std::string>& args) { return stowage(args).err; };
  const std::string remark = "stowage: " + out + " is as it was before: nothing was written to it";
  EXPECT_THAT(err_of({"plan", trace_, "--budget", "1MB", "-o", out}), HasSubstr(remark));
  EXPECT_THAT(err_of({"plan", trace_, "--budget", "1XB", "-o", out}), HasSubstr(remark));
  EXPECT_THAT(err_of({"plan", trace_, "--bugdet", "1MB", "-o", out}), HasSubstr(remark));
  EXPECT_THAT(err_of({"plan", trace_, "--bugdet", "1MB", "-o", out, "-q"}),
              Not(HasSubstr("as it was")));
  EXPECT_THAT(
      err_of({"export", trace_, "--plan", folder_.file("none"), "-o", out, "--format", "svg"}),
      HasSubstr(remark));
  EXPECT_EQ(read_text(out), "the older plan");
  EXPECT_THAT(err_of({"plan", trace_, "--budget", "1MB", "-o", folder_.file("none")}),
              Not(HasSubstr("as it was")));
  EXPECT_EQ(err_of({"plan", trace_, "--budget", "70%", "-o", out}), "");
  // It says that the budget is not kept, and wrote its lanes all the same.
  EXPECT_THAT(
      err_of({"simulate", trace_, "--plan",
              folder_.write("q.json", R"({"schema":"stowage-plan/1","budget":{"device":1}})"),
              "--timeline", out}),
      Not(HasSubstr("as it was")));
}

TEST_F(BadInput, AnOptionIsNoValueOfTheOneAheadOfIt) {
  EXPECT_THAT(error_of(2, {"plan", trace_, "--budget", "70%", "-o", "--quiet"}),
              HasSubstr("-o needs a value, and --quiet is an option (a file of that name is "
                        "written ./--quiet)"));
  EXPECT_THAT(error_of(2, {"plan", trace_, "-o", folder_.file("p.json"), "--budget", "-q"}),
              HasSubstr("--budget needs a value, and -q is an option"));
  EXPECT_THAT(error_of(2, {"inspect", trace_, "--color", "--by", "op"}),
              HasSubstr("--color needs a value"));
  EXPECT_THAT(error_of(2, {"inspect", trace_, "--by", "--", "op"}),
              HasSubstr("--by needs a value"));
  // It was a file "=p.json".
  EXPECT_THAT(error_of(2, {"plan", trace_, "--budget", "70%", "-o=p.json"}),
              HasSubstr("-o=p.json is not allowed: a short option has its value behind a space "
                        "(-o p.json)"));
  EXPECT_THAT(folder_.names(), ElementsAre("t.json.gz"));
  Command command;
  command.args = {"plan", trace_, "--budget", "70%", "-o", "./--json"};
  command.folder = folder_.path();
  EXPECT_EQ(run(command).code, 0);
  EXPECT_THAT(folder_.names(), ElementsAre("--json", "t.json.gz"));
}

TEST_F(BadInput, UnknownNamesAreAnsweredWithTheNearest) {
  EXPECT_THAT(error_of(2, {"inspct", trace_}), HasSubstr("did you mean inspect?"));
  EXPECT_THAT(error_of(2, {"inspect", trace_, "--tpo", "4"}), HasSubstr("did you mean --top?"));
  EXPECT_THAT(error_of(2, {"plan", trace_, "--policy", "thuner"}), HasSubstr("thunder"));
  EXPECT_THAT(error_of(2, {"--json", "plan"}), HasSubstr("before the verb"));
  EXPECT_THAT(error_of(2, {"inspect"}), HasSubstr("T is required"));
}

TEST_F(BadInput, WhatCannotFit) {
  EXPECT_THAT(error_of(2, {"plan", trace_, "--fit", "24GiB"}), HasSubstr("no reserved bytes"));
  EXPECT_THAT(error_of(2, {"plan", trace_, "--fit", "60%"}), HasSubstr("--fit"));
  EXPECT_THAT(error_of(2, {"plan", trace_, "--fit", "1GiB", "--budget", "60%"}),
              HasSubstr("without --budget"));
}

TEST_F(BadInput, WhatIsNotThereYet) {
  EXPECT_THAT(error_of(2, {"import", trace_}), HasSubstr("not supported yet"));
  for (const char* option : {"--pareto", "--maximize", "--minimize", "--max-slowdown"}) {
    EXPECT_THAT(error_of(2, {"plan", trace_, option, "x"}), HasSubstr("not supported yet"))
        << option;
  }
}

TEST_F(BadInput, AnOutputThatCannotBeWritten) {
  const std::string none = folder_.file("no/such/folder/p.json");
  EXPECT_THAT(error_of(4, {"simulate", trace_, "--timeline", none}), HasSubstr(none));
  EXPECT_THAT(error_of(4, {"plan", trace_, "--budget", "70%", "-o", none}), HasSubstr(none));
  EXPECT_THAT(error_of(4, {"plan", trace_, "--budget", "70%", "-o", "/dev/full"}),
              HasSubstr("/dev/full"));
  EXPECT_THAT(error_of(4, {"simulate", trace_, "--timeline", folder_.path()}),
              HasSubstr(folder_.path()));
  EXPECT_THAT(folder_.names(), ElementsAre("t.json.gz"));
}

TEST_F(BadInput, AnOutputThatIsAnInput) {
  const std::string before = read_text(trace_);
  EXPECT_THAT(error_of(2, {"plan", trace_, "--budget", "70%", "-o", trace_}),
              HasSubstr("--output " + trace_ + " is also an input"));
  ASSERT_EQ(::symlink(trace_.c_str(), folder_.file("link").c_str()), 0);
  error_of(2, {"plan", trace_, "--budget", "70%", "-o", folder_.file("link")});
  error_of(2, {"simulate", trace_, "--timeline", trace_});
  const std::string plan = folder_.write("p.json", R"({"schema": "stowage-plan/1"})");
  error_of(2, {"simulate", trace_, "--plan", plan, "--timeline", plan});
  EXPECT_EQ(read_text(trace_), before);
  EXPECT_EQ(read_text(plan), R"({"schema": "stowage-plan/1"})");
}

TEST_F(BadInput, AFileOfTheOtherKind) {
  const std::string plan = folder_.write("p.json", R"({"schema": "stowage-plan/1"})");
  EXPECT_THAT(error_of(3, {"inspect", plan}), HasSubstr("a plan, for one"));
  EXPECT_THAT(error_of(3, {"simulate", trace_, "--plan", trace_}), HasSubstr("this is no plan"));
}

TEST_F(BadInput, APlanWithoutAFingerprintForSomethingElse) {
  Json plan = {{"schema", "stowage-plan/1"}, {"for", {{"model", json_["run"]["model"]}}}};
  const std::string file = folder_.write("p.json", plan.dump());
  EXPECT_EQ(stowage({"simulate", trace_, "--plan", file}).code, 0);
  plan["for"]["model"] = "small";
  folder_.write("p.json", plan.dump());
  EXPECT_EQ(stowage({"simulate", trace_, "--plan", file}).code, 0);
  plan["for"]["model"] = "small:layers=4";
  folder_.write("p.json", plan.dump());
  EXPECT_THAT(error_of(3, {"simulate", trace_, "--plan", file}), HasSubstr("/for/model: "));
  plan["for"] = {{"batch", 64}};
  folder_.write("p.json", plan.dump());
  EXPECT_THAT(error_of(3, {"simulate", trace_, "--plan", file}), HasSubstr("/for/batch: "));
}

TEST_F(BadInput, ABudgetThatAPlanDoesNotKeep) {
  Json plan = {{"schema", "stowage-plan/1"},
               {"budget", {{"host", 1}}},
               {"saved", {{{"site", "layers.0#0"}, {"do", "offload"}}}}};
  const std::string file = folder_.write("p.json", plan.dump());
  Outcome outcome = stowage({"simulate", trace_, "--plan", file});
  EXPECT_EQ(outcome.code, 1);
  EXPECT_EQ(count_lines(outcome.err), 1);
  EXPECT_THAT(outcome.err, HasSubstr("p.json: /budget/host: the plan does not keep"));
  EXPECT_THAT(outcome.out, HasSubstr("Host budget: 1 B"));
  plan["budget"] = {{"device", 1000000}};
  folder_.write("p.json", plan.dump());
  outcome = stowage({"simulate", trace_, "--plan", file, "--json"});
  EXPECT_EQ(outcome.code, 1);
  EXPECT_THAT(outcome.err, HasSubstr("/budget/device: the plan does not keep"));
  EXPECT_EQ(Json::parse(outcome.out)["feasible"], false);
  plan["budget"] = {{"device", "90%"}, {"on", "reserved"}};
  folder_.write("p.json", plan.dump());
  EXPECT_THAT(error_of(3, {"simulate", trace_, "--plan", file}), HasSubstr("p.json: /budget/on"));

  outcome = stowage({"plan", trace_, "--budget", "70%", "--host-budget", "1"});
  EXPECT_EQ(outcome.code, 1);
  EXPECT_THAT(outcome.err, HasSubstr("the host budget is 1 B"));
}

TEST_F(BadInput, ARuleThatDecidesNothingIsNoted) {
  const Json plan = {
      {"schema", "stowage-plan/1"},
      {"saved", {{{"site", "*"}, {"do", "keep"}}, {{"site", "layers.0#0"}, {"do", "offload"}}}}};
  const Outcome outcome = stowage({"simulate", trace_, "--plan", "-"}, plan.dump());
  EXPECT_EQ(outcome.code, 0);
  EXPECT_THAT(outcome.err, HasSubstr("warning: -: /saved/1: decides nothing"));
  const std::string file = folder_.write("p.json", plan.dump());
  EXPECT_THAT(stowage({"simulate", trace_, "--plan", file}).err,
              HasSubstr("warning: " + file + ": /saved/1: decides nothing"));
}

TEST_F(BadInput, AnyRuleThatDecidesNothingIsNoted) {
  const auto err_of = [&](const char* first, const char* second, const char* site) {
    const Json plan = {
        {"schema", "stowage-plan/1"},
        {"saved",
         {{{"site", "layers.*"}, {"do", first}}, {{"site", site}, {"do", second}, {"by", "ops"}}}}};
    Json rules = plan;
    if (std::string(second) != "recompute") rules["saved"][1].erase("by");
    const Outcome outcome = stowage({"simulate", trace_, "--plan", "-"}, rules.dump());
    EXPECT_EQ(outcome.code, 0) << outcome.err;
    return outcome.err;
  };
  // Somebody who protects a layer is told that it leaves.
  EXPECT_THAT(err_of("offload", "keep", "layers.0#0"), HasSubstr("/saved/1: decides nothing"));
  // Nothing computes again, so nothing is refused.
  EXPECT_THAT(err_of("keep", "recompute", "layers.0#0"), HasSubstr("/saved/1: decides nothing"));
  // The usual last rule.
  EXPECT_THAT(err_of("offload", "keep", "*"), Not(HasSubstr("decides nothing")));
}

TEST_F(BadInput, NamesThatWouldMoveTheCursor) {
  Json json = json_;
  for (Json& text : json["strings"]) {
    text = "\x1b[31m\n\xc2\x9b" + text.get<std::string>();
  }
  for (const std::vector<std::string>& args : std::vector<std::vector<std::string>>{
           {"inspect", "-"}, {"simulate", "-"}, {"plan", "-", "--policy", "thunder"}}) {
    const Outcome outcome = stowage(args, json.dump());
    EXPECT_EQ(outcome.code, 0) << outcome.err;
    for (const std::string& text : {outcome.out, outcome.err}) {
      EXPECT_EQ(text.find('\x1b'), std::string::npos) << text;
      EXPECT_EQ(text.find("\xc2\x9b"), std::string::npos) << text;
    }
  }
}

TEST_F(BadInput, AFullDiskBehindStdout) {
  for (const std::vector<std::string>& args :
       std::vector<std::vector<std::string>>{{"inspect", trace_},
                                             {"simulate", trace_, "--json"},
                                             {"plan", trace_, "--budget", "70%", "--quiet"},
                                             {"policies"},
                                             {"doctor"},
                                             {"--help"},
                                             {"--version"}}) {
    Command command;
    command.args = args;
    command.stdout_file = "/dev/full";
    const Outcome outcome = run(command);
    EXPECT_EQ(outcome.code, 4) << args.front();
    EXPECT_EQ(outcome.err, "stowage: error: stdout: No space left on device\n");
  }
}

TEST_F(BadInput, AClosedStdout) {
  Command command;
  command.program = "/bin/sh";
  command.args = {"-c", "{ \"$0\" inspect \"$1\"; echo $? >&2; } | true",
                  STOWAGE_BIN_DIR "/stowage", trace_};
  const Outcome outcome = run(command);
  // Who is first, the reader's end or the writer, is not said; silence would be wrong in one case.
  if (outcome.err != "0\n") {
    EXPECT_EQ(outcome.err,
              "stowage: error: stdout: it was closed before everything was written\n4\n");
  }
}

TEST_F(BadInput, JsonTellsTheErrorOnStdoutToo) {
  const Outcome outcome = stowage({"inspect", folder_.file("none"), "--json"});
  EXPECT_EQ(outcome.code, 3);
  const Json json = Json::parse(outcome.out);
  EXPECT_EQ(json["error"]["code"], "bad_input");
  EXPECT_EQ(json["error"]["where"], folder_.file("none"));
  EXPECT_EQ(count_lines(outcome.err), 1);
}

}  // namespace
}  // namespace stowage::cli_tests
