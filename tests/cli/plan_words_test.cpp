// The real `stowage plan` on recordings of traces/samples: what its answer says, and in which
// units.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "tests/cli/process.h"
#include "tests/support/small_trace.h"
#include "traces/trace_file.h"

namespace stowage::cli_tests {
namespace {

using ::testing::ContainsRegex;
using ::testing::HasSubstr;
using ::testing::Not;
using testing::small_trace;
using Json = nlohmann::json;

std::string sample(const std::string& name) {
  return STOWAGE_SOURCE_DIR "/traces/samples/" + name + ".trace.json.gz";
}

// The answer in words; the plan goes to a file of its own.
std::string words_of(std::vector<std::string> args, int code = 0) {
  const TemporaryFolder folder;
  args.insert(args.begin(), "plan");
  args.insert(args.end(), {"-o", folder.file("p.json")});
  const Outcome outcome = stowage(args);
  EXPECT_EQ(outcome.code, code) << outcome.err;
  return outcome.out;
}

// A model of six layers, each of an attention and an MLP.
TEST(PlanWords, ModulesAreCountedAndNamed) {
  const std::string words =
      words_of({sample("gpt2-l6-fp32-cpu"), "--budget", "40%", "--allow", "params,offload"});
  EXPECT_THAT(words, ::testing::ContainsRegex("Parameters of [0-9]+ modules \\(.*layers\\..*attn, "
                                              "layers\\..*mlp\\) stream"));
  EXPECT_THAT(words, Not(HasSubstr("layers stream")));
}

// 3 layers with one saved tensor of 2 MB each, of which two can be away at the peak.
TEST(PlanWords, SavedTensorsThatLeaveAreNamed) {
  const TemporaryFolder folder;
  const std::string trace = folder.file("t.json.gz");
  ASSERT_TRUE(save_trace(trace, small_trace(3)).ok());
  const std::string two = words_of({trace, "--budget", "6208000", "--allow", "offload"});
  EXPECT_THAT(two, HasSubstr("leaves for the host  tensors    bytes\n"
                             "  layers.[0-1]#0             2  4.00 MB\n"));
  EXPECT_THAT(words_of({trace, "--policy", "resident"}), Not(HasSubstr("leaves for the host")));
}

// At the peak of small_trace(3), in the last layer's backward op: its 2 MB are made there and its
// activation is in use (4.00 MB needed), the other two activations wait (4.00 MB), the loss of
// 8,000 B is used no more. The rest of the 9,408,000 B is idle; 9,408,000 - 6,208,000 are gone.
TEST(PlanWords, WhatThePeakIsForAndWhatLessOfItCosts) {
  const TemporaryFolder folder;
  const std::string trace = folder.file("t.json.gz");
  ASSERT_TRUE(save_trace(trace, small_trace(3)).ok());
  const std::string words = words_of({trace, "--budget", "6208000", "--allow", "offload"});
  EXPECT_THAT(words, HasSubstr("At its peak the step has 9.41 MB: 8.00 kB dead, 4.00 MB saved and "
                               "idle, 1.40 MB idle, 4.00 MB needed; 3.20 MB less cost no time.\n"));
  // Figures of the table below it.
  const std::string slower = words_of({sample("gpt2-l6-fp32-cpu"), "--policy", "save_on_cpu"});
  EXPECT_THAT(slower, HasSubstr("107 MB less cost 24.1 ms (+2.1 %).\n"));
  const auto inspected = Json::parse(stowage({"inspect", trace, "--json"}).out);
  const auto planned = Json::parse(
      stowage({"plan", trace, "--budget", "6208000", "--json", "-o", folder.file("p.json")}).out);
  EXPECT_EQ(planned["peak_by_use"], inspected["peak"]["by_use"]);
  EXPECT_EQ(planned["peak_by_use"]["saved_bytes"], 4'000'000);
}

TEST(PlanWords, TopIsTheRowsOfItsTables) {
  const std::vector<std::string> args = {sample("gpt2-l6-fp32-cpu"), "--policy", "save_on_cpu"};
  const auto rows = [&](const std::string& top) {
    std::vector<std::string> with = args;
    with.insert(with.end(), {"--top", top});
    const std::string words = words_of(with);
    const auto begin = words.find("leaves for the host");
    const auto end = words.find("  together", begin);
    EXPECT_NE(end, std::string::npos) << words;
    return count_lines(words.substr(begin, end - begin));
  };
  EXPECT_EQ(rows("1"), 3);  // the head, one site, the others
  EXPECT_EQ(rows("3"), 5);
  EXPECT_EQ(stowage({"plan", args[0], "--budget", "60%", "--top", "0"}).code, 2);
}

// The lanes are those that simulate draws of the same plan.
TEST(PlanWords, TheTimelineIsTheOneOfItsReplay) {
  const TemporaryFolder folder;
  const std::string trace = sample("mlp-l6-fp32-cpu");
  const std::string plan = folder.file("p.json");
  const std::string planned = folder.file("planned.json");
  const std::string replayed = folder.file("replayed.json");
  ASSERT_EQ(stowage({"plan", trace, "--budget", "70%", "-o", plan, "--timeline", planned}).code, 0);
  ASSERT_EQ(stowage({"simulate", trace, "--plan", plan, "--timeline", replayed}).code, 0);
  EXPECT_EQ(read_text(planned), read_text(replayed));
  EXPECT_EQ(stowage({"plan", trace, "--budget", "70%", "--timeline", "-"}).code, 2);
}

TEST(PlanWords, BytesAreInTheUnitsOfTheBudget) {
  const std::string trace = sample("mlp-l6-fp32-h200");
  const std::string binary = words_of({trace, "--budget", "2GiB"});
  EXPECT_THAT(binary, HasSubstr("Budget: 2.00 GiB (2,147,483,648 bytes) reserved."));
  EXPECT_THAT(binary, HasSubstr("2.00 GiB \xe2\x94\x82"));
  EXPECT_THAT(binary, Not(HasSubstr(" GB")));
  EXPECT_THAT(binary, Not(HasSubstr(" MB")));
  const std::string decimal = words_of({trace, "--budget", "2GB"});
  EXPECT_THAT(decimal, HasSubstr("Budget: 2.00 GB (2,000,000,000 bytes) reserved."));
  EXPECT_THAT(decimal, Not(HasSubstr("iB")));
  const TemporaryFolder folder;
  const std::string plan = folder.file("p.json");
  ASSERT_EQ(stowage({"plan", trace, "--budget", "2GiB", "-o", plan}).code, 0);
  const std::string replayed = stowage({"simulate", trace, "--plan", plan}).out;
  EXPECT_THAT(replayed, HasSubstr("2.00 GiB \xe2\x94\x82"));
  EXPECT_THAT(replayed, Not(HasSubstr(" GB")));
  EXPECT_THAT(replayed, Not(HasSubstr(" MB")));
  EXPECT_THAT(words_of({trace, "--fit", "3GiB"}), HasSubstr("Device of 3.00 GiB (3,221,225,472"));
  EXPECT_THAT(stowage({"plan", trace, "--budget", "0.5GiB", "--quiet"}).err,
              ::testing::ContainsRegex("the floor is 1\\.[0-9]+ GiB .*the budget is 512 MiB .* "
                                       "bytes \\(1\\.[0-9]+ GiB\\) or more"));
}

// At the floor itself nothing is found on a GPU, where pages are reserved: it names what is kept.
TEST(PlanWords, ABudgetThatIsNamedIsKept) {
  for (const char* name : {"vit-attribution-fp32-h200", "gpt2-bf16-h200", "gpt2-l6-fp32-cpu"}) {
    SCOPED_TRACE(name);
    const std::string trace = sample(name);
    const Outcome outcome = stowage({"plan", trace, "--budget", "1MB", "--json"});
    EXPECT_EQ(outcome.code, 1);
    const Json answer = Json::parse(outcome.out);
    const auto kept = answer.at("kept_from_bytes").get<std::int64_t>();
    const auto floor = answer.at("floor").at("bytes").get<std::int64_t>();
    EXPECT_THAT(outcome.err, HasSubstr("a budget of " + std::to_string(kept) + " bytes ("));
    EXPECT_EQ(stowage({"plan", trace, "--budget", std::to_string(kept), "--json"}).code, 0);
    const std::string words = words_of({trace, "--budget", "1MB"}, 1);
    const bool is_reached = words.find(", and one reaches it") != std::string::npos;
    const int at_floor = stowage({"plan", trace, "--budget", std::to_string(floor), "--json"}).code;
    EXPECT_EQ(at_floor, is_reached ? 0 : 1) << words;
  }
}

// 24 GiB of active bytes reserve more than a card of 24 GiB has.
TEST(PlanWords, ABudgetThatIsNoCardSaysSoFirst) {
  const std::string trace = sample("llama3-8b-l9-bf16-h200");
  const std::string active = words_of({trace, "--budget", "24GiB", "--placement", "caching"});
  EXPECT_THAT(active, ::testing::ContainsRegex(
                          "\nWithin the budget of active bytes, but 2[5-9]\\.[0-9] GiB .* are "
                          "reserved: a card of that size does not hold it \\(--fit is for a "
                          "card\\)\\.\n"));
  const TemporaryFolder folder;
  const std::string plan = folder.file("p.json");
  ASSERT_EQ(
      stowage({"plan", trace, "--budget", "24GiB", "--placement", "caching", "-o", plan}).code, 0);
  EXPECT_THAT(stowage({"simulate", trace, "--plan", plan}).out,
              ::testing::ContainsRegex("Budget: 24\\.0 GiB .* active: kept, but 2[5-9]\\.[0-9] GiB "
                                       ".* are reserved: a card of that size does not hold it"));
  EXPECT_THAT(words_of({sample("gpt2-bf16-h200"), "--budget", "7.65GB", "--budget-on", "active"}),
              HasSubstr("\nIt fits already: the step stays within the budget of active bytes as it "
                        "is, so the plan moves nothing, but 7.66 GB ("));
  for (const std::vector<std::string>& args :
       std::vector<std::vector<std::string>>{{trace, "--budget", "24GiB"},
                                             {trace, "--fit", "24GiB"},
                                             {sample("mlp-l6-fp32-cpu"), "--budget", "60%"}}) {
    EXPECT_THAT(words_of(args), HasSubstr("\nWithin the budget.\n"));
  }
}

TEST(PlanWords, NotesAndHintsAreInTheWordsOfTheOptionThatWasGiven) {
  const TemporaryFolder folder;
  const auto said = [&](std::vector<std::string> args) {
    args.insert(args.begin(), {"plan", sample("mlp-l6-fp32-h200"), "-o", folder.file("p.json")});
    const Outcome outcome = stowage(args);
    return outcome.out + outcome.err;
  };
  EXPECT_THAT(said({"--fit", "80GiB"}), HasSubstr("the step fits already: its peak is 4.82 GiB"));
  EXPECT_THAT(said({"--fit", "80GB"}), HasSubstr("the step fits already: its peak is 5.17 GB"));
  EXPECT_THAT(said({"--fit", "1GiB", "--explain"}), HasSubstr("has a peak below 1.00 GiB"));
  EXPECT_THAT(said({"--fit", "512MiB"}),
              HasSubstr("512 MiB does not even hold the CUDA context of 689 MiB"));
  EXPECT_THAT(said({"--fit", "2GiB", "--policy", "torchtune"}),
              HasSubstr("without --fit the policy's is written as it is"));
  EXPECT_THAT(said({"--budget", "2GiB", "--policy", "torchtune"}),
              HasSubstr("without --budget the policy's is written as it is"));
}

TEST(PlanWords, TwoFiguresOfReservedBytesAreExplained) {
  const std::string trace = sample("mlp-l6-fp32-h200");
  EXPECT_THAT(words_of({trace, "--budget", "60%"}), HasSubstr("The plan runs in planned memory"));
  EXPECT_THAT(words_of({trace, "--budget", "60%"}),
              ContainsRegex("\n  reserved, planned memory .*\n  no placement takes less than "
                            ".*\n  reserved, caching allocator "));
  EXPECT_THAT(words_of({trace, "--budget", "60%", "--placement", "caching"}),
              HasSubstr("The plan runs in the caching allocator's memory"));
  EXPECT_THAT(words_of({sample("mlp-l6-fp32-cpu"), "--budget", "60%"}),
              Not(HasSubstr("The plan runs in")));
}

// What the caching allocator does is of no concern in planned memory, and most plans run there.
TEST(PlanWords, TheCachingAllocatorIsRemarkedOnWhereAPlanRunsInIt) {
  const std::string remark = "note: the allocator finds other blocks in each step";
  const std::vector<std::string> args = {sample("gpt2-bf16-h200"), "--budget", "80%"};
  EXPECT_THAT(words_of(args), Not(HasSubstr(remark)));
  std::vector<std::string> caching = args;
  caching.insert(caching.end(), {"--placement", "caching"});
  EXPECT_THAT(words_of(caching), HasSubstr(remark));
}

TEST(PlanWords, AHostBudgetThatIsTheCauseIsNamedInTheAnswer) {
  const std::vector<std::string> args = {sample("mlp-l6-fp32-cpu"), "--budget", "50%",
                                         "--host-budget", "1MB"};
  EXPECT_THAT(words_of(args, 1), HasSubstr("the host; the host budget is 1.00 MB"));
  std::vector<std::string> json_args = args;
  json_args.insert(json_args.begin(), "plan");
  json_args.emplace_back("--json");
  const Json json = Json::parse(stowage(json_args).out);
  EXPECT_EQ(json.at("over_host_budget"), true);
  EXPECT_THAT(json.at("error").at("message").get<std::string>(), HasSubstr("host budget"));
}

TEST(PlanWords, ALikelyMeaningOfASizeIsProposed) {
  const auto err_of = [](const std::string& budget) {
    return stowage({"plan", sample("mlp-l6-fp32-cpu"), "--budget", budget, "--quiet"}).err;
  };
  EXPECT_THAT(err_of("24G"), HasSubstr("did you mean 24GiB, as cards are sold, or 24GB?"));
  EXPECT_THAT(err_of("24Gi"), HasSubstr("did you mean 24GiB?"));
  EXPECT_THAT(err_of("0.6"), HasSubstr("did you mean 60%?"));
  EXPECT_THAT(err_of("60"), HasSubstr("a bare number is bytes: did you mean 60% or 60GiB?"));
  EXPECT_THAT(err_of("512"), HasSubstr("a bare number is bytes: did you mean 512MiB?"));
}

// On a slower link the same budget takes longer, and the answer says for which link it is.
TEST(PlanWords, AnotherLinkThanTheRecordedOne) {
  const std::vector<std::string> args = {
      "plan", sample("mlp-l6-fp32-h200"), "--budget", "60%", "--allow", "offload", "--json"};
  std::vector<std::string> slower = args;
  slower.insert(slower.end(), {"--set", "link.h2d_gbps=4", "--set", "link.d2h_gbps=4"});
  const Json recorded = Json::parse(stowage(args).out);
  const Json slow = Json::parse(stowage(slower).out);
  EXPECT_GT(slow.at("predicted").at("step_ns").get<long>(),
            recorded.at("predicted").at("step_ns").get<long>());
  EXPECT_EQ(slow.at("settings"), Json({"link.h2d_gbps=4", "link.d2h_gbps=4"}));
  EXPECT_EQ(recorded.at("settings"), Json::array());
  EXPECT_THAT(words_of({sample("mlp-l6-fp32-h200"), "--budget", "60%", "--set", "link.h2d_gbps=4"}),
              HasSubstr("Set in place of what was recorded: link.h2d_gbps=4."));
  EXPECT_EQ(
      stowage({"plan", sample("mlp-l6-fp32-cpu"), "--budget", "60%", "--set", "link.x=4"}).code, 2);
}

}  // namespace
}  // namespace stowage::cli_tests
