// `check` as a CI job runs it: baselines, budgets, plans that still apply and that do not.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "tests/cli/golden.h"
#include "tests/cli/main_job.h"
#include "traces/trace_file.h"

namespace stowage {
namespace {

using cli_tests::Outcome;
using cli_tests::read_text;
using cli_tests::TemporaryFolder;
using nlohmann::json;
using ::testing::HasSubstr;
using ::testing::Not;

const std::string kGpt2 = "gpt2:layers=2,width=64,seq=32,vocab=128";

class Check : public ::testing::Test {
 protected:
  Outcome run(std::vector<std::string> args) const { return cli_tests::stowage(std::move(args)); }
  // The plain step of the small model, with further arguments.
  Outcome plain(const std::vector<std::string>& more, const std::string& model = kGpt2) const {
    std::vector<std::string> args = {"check", "--model", model, "--batch", "2", "--device", "cpu"};
    args.insert(args.end(), more.begin(), more.end());
    return run(args);
  }
  Outcome planned(const std::vector<std::string>& more) const {
    std::vector<std::string> args = {"check", "--plan", plan_};
    args.insert(args.end(), more.begin(), more.end());
    return run(args);
  }
  void write_baseline() const {
    const Outcome outcome = plain({"--baseline", baseline_, "--update-baseline"});
    ASSERT_EQ(outcome.code, 0) << outcome.err;
  }
  void make_plan(const std::string& policy) const {
    ASSERT_EQ(
        run({"profile", kGpt2, "--batch", "2", "--device", "cpu", "--threads", "1", "-o", trace_})
            .code,
        0);
    const Outcome outcome = run({"plan", trace_, "--policy", policy, "-o", plan_});
    ASSERT_EQ(outcome.code, 0) << outcome.err;
  }
  // Changes a file of JSON.
  template <class Change>
  void edit(const std::string& file, const Change& change) const {
    auto content = nlohmann::ordered_json::parse(read_text(file));
    change(content);
    std::ofstream(file) << content.dump(2);
  }
  static json case_of(const std::string& out, const std::string& name) {
    const json answer = json::parse(out);
    for (const json& each : answer.at("cases")) {
      if (each.at("name") == name) return each;
    }
    ADD_FAILURE() << "no case " << name << " in " << out;
    return {};
  }
  void expect_error(const Outcome& outcome, int code, const std::string& words) const {
    cli_tests::expect_error(outcome, code, {words});
  }

  TemporaryFolder folder_;
  std::string baseline_ = folder_.file("b.json");
  std::string junit_ = folder_.file("j.xml");
  std::string trace_ = folder_.file("t.json.gz");
  std::string plan_ = folder_.file("p.json");
};

TEST_F(Check, HelpIsAsItWas) {
  const Outcome outcome = run({"check", "--help"});
  EXPECT_EQ(outcome.code, 0);
  EXPECT_THAT(outcome.out, HasSubstr("\nexample"));
  cli_tests::expect_golden("help_check.txt", outcome.out);
}

TEST_F(Check, AStepPassesItsOwnBaselineAndIsWrittenAgainTheSame) {
  write_baseline();
  const std::string text = read_text(baseline_);
  const Outcome outcome = plain({"--baseline", baseline_, "--junit", junit_, "--json"});
  ASSERT_EQ(outcome.code, 0) << outcome.err << outcome.out;
  EXPECT_EQ(outcome.err, "");
  const json answer = json::parse(outcome.out);
  EXPECT_EQ(answer.at("schema"), "stowage-check/1");
  EXPECT_EQ(answer.at("passed"), true);
  EXPECT_EQ(case_of(outcome.out, "peak_requested").at("measured"),
            json::parse(text).at("measured").at("peak_requested_bytes"));
  EXPECT_EQ(case_of(outcome.out, "peak_reserved").at("outcome"), "skipped");
  EXPECT_EQ(case_of(outcome.out, "stall").at("outcome"), "skipped");
  EXPECT_THAT(read_text(junit_), HasSubstr("failures=\"0\""));
  write_baseline();
  EXPECT_EQ(read_text(baseline_), text);
}

// What is written is what `profile` records, storage by storage.
TEST_F(Check, TheStoragesOfTheBaselineAddUpToThePeak) {
  write_baseline();
  const json baseline = json::parse(read_text(baseline_));
  long sum = 0;
  for (const json& row : baseline.at("at_peak").at("storages")) sum += row.at("bytes").get<long>();
  EXPECT_EQ(sum, baseline.at("measured").at("peak_requested_bytes").get<long>());
  EXPECT_EQ(baseline.at("made_with").at("threads"), 1);
  EXPECT_EQ(baseline.at("made_with").at("device"), "cpu");
  EXPECT_TRUE(baseline.at("made_with").at("plan").is_null());
}

TEST_F(Check, MoreThanTheBaselineFailsAndNamesWhatGrew) {
  write_baseline();
  edit(baseline_, [](auto& baseline) {
    auto& peak = baseline["measured"]["peak_requested_bytes"];
    peak = peak.template get<long>() - 1;
    for (auto& row : baseline["at_peak"]["storages"]) {
      if (row["layer"] == "layers.1.mlp" && row["op"] == "aten::gelu") row["bytes"] = 0;
    }
  });
  const Outcome outcome = plain({"--baseline", baseline_, "--junit", junit_});
  EXPECT_EQ(outcome.code, 1) << outcome.err;
  EXPECT_EQ(outcome.err, "");
  EXPECT_THAT(outcome.out, HasSubstr("1 bytes more than the baseline's"));
  // 2 samples, 32 tokens, 256 features of 4 bytes.
  const std::string grew = "layers.1.mlp: 65.5 kB more, activation made by aten::gelu, saved as";
  EXPECT_THAT(outcome.out, HasSubstr(grew));
  EXPECT_THAT(outcome.out, Not(HasSubstr("layers.0.mlp")));
  EXPECT_THAT(read_text(junit_), HasSubstr(grew));
  EXPECT_EQ(plain({"--baseline", baseline_, "--tolerance", "0.1%"}).code, 0);
  // The old one is told about and replaced.
  const Outcome updated = plain({"--baseline", baseline_, "--update-baseline"});
  EXPECT_EQ(updated.code, 0) << updated.err;
  EXPECT_THAT(updated.out, HasSubstr("1 bytes more than the baseline's"));
  EXPECT_EQ(plain({"--baseline", baseline_}).code, 0);
}

TEST_F(Check, LessThanTheBaselinePassesAndSaysSo) {
  write_baseline();
  edit(baseline_, [](auto& baseline) {
    auto& peak = baseline["measured"]["peak_requested_bytes"];
    peak = peak.template get<long>() + 1;
  });
  const Outcome outcome = plain({"--baseline", baseline_});
  EXPECT_EQ(outcome.code, 0) << outcome.err;
  EXPECT_THAT(outcome.out, HasSubstr("the baseline can be lowered with --update-baseline"));
}

TEST_F(Check, TheBudgetIsHeldWithAndWithoutABaseline) {
  EXPECT_EQ(plain({"--budget", "1GiB"}).code, 0);
  const Outcome over = plain({"--budget", "100kB", "--junit", junit_});
  EXPECT_EQ(over.code, 1) << over.err;
  EXPECT_THAT(over.out, HasSubstr("above the budget of 100 kB"));
  EXPECT_THAT(over.out, HasSubstr("the largest at the peak:"));
  EXPECT_THAT(read_text(junit_), HasSubstr("name=\"budget\""));
  // Without the baseline's step: it is written all the same, and the budget still fails.
  EXPECT_EQ(plain({"--budget", "100kB", "--baseline", baseline_, "--update-baseline"}).code, 1);
  EXPECT_EQ(plain({"--baseline", baseline_}).code, 0);
}

TEST_F(Check, AnIncomparableBaselineFailsAndAnotherStepsIsBadInput) {
  write_baseline();
  const Outcome threads = plain({"--baseline", baseline_, "--threads", "2"});
  EXPECT_EQ(threads.code, 1) << threads.err;
  EXPECT_THAT(threads.out, HasSubstr("not comparable: made with threads 1, this is 2"));
  edit(baseline_, [](auto& baseline) { baseline["made_with"]["libtorch"] = "2.10.0"; });
  const Outcome torch = plain({"--baseline", baseline_});
  EXPECT_EQ(torch.code, 1) << torch.err;
  EXPECT_THAT(torch.out, HasSubstr("not comparable: made with LibTorch 2.10.0, this is 2.11.0"));

  expect_error(plain({"--baseline", baseline_}, "mlp:layers=1,width=8"), 3, "/step/model");
  expect_error(plain({"--baseline", baseline_, "--dtype", "bf16"}), 3, "/step/dtype");
  expect_error(plain({"--baseline", baseline_, "--seq", "16"}, "gpt2:layers=2,width=64,vocab=128"),
               3, "/step/model");
}

// A typing error must not cost another test its baseline.
TEST_F(Check, AnotherStepsBaselineIsNotOverwritten) {
  write_baseline();
  const std::string text = read_text(baseline_);
  const std::vector<std::string> update = {"--baseline", baseline_, "--update-baseline"};
  for (const auto& [option, value] :
       {std::pair{"--dtype", "bf16"}, {"--optimizer", "sgd"}, {"--seed", "2"}, {"--batch", "3"}}) {
    std::vector<std::string> args = {"check", "--model", kGpt2, "--device", "cpu", option, value};
    if (std::string(option) != "--batch") args.insert(args.end(), {"--batch", "2"});
    for (const bool writes : {true, false}) {
      std::vector<std::string> each = args;
      each.insert(each.end(), update.begin(), update.end() - (writes ? 0 : 1));
      cli_tests::expect_error(run(each), 3,
                              {"/step/" + std::string(option).substr(2), value,
                               writes ? "give another file, or remove it first" : "a new file"});
    }
  }
  cli_tests::expect_error(plain(update, "mlp:layers=1,width=8"), 3,
                          {"/step/model", "gpt2", "mlp", "give another file, or remove it first"});
  EXPECT_EQ(read_text(baseline_), text);
}

TEST_F(Check, ABaselinesFolderIsMadeWithIt) {
  const std::string file = folder_.file("memory/cpu/b.json");
  EXPECT_EQ(plain({"--baseline", file, "--update-baseline"}, "mlp:layers=1,width=8").code, 0);
  EXPECT_EQ(plain({"--baseline", file}, "mlp:layers=1,width=8").code, 0);
  const std::string under_a_file = file + "/b.json";
  expect_error(plain({"--baseline", under_a_file, "--update-baseline"}), 4, "b.json: cannot be");
}

TEST_F(Check, UnusableBaselinesAreBadInput) {
  expect_error(plain({"--baseline", folder_.file("none.json")}), 3, "no such baseline");
  const std::string broken = folder_.write("broken.json", "{\"schema\":");
  expect_error(plain({"--baseline", broken}), 3, "the file is no JSON");
  const std::string newer = folder_.write("newer.json", R"({"schema": "stowage-baseline/2"})");
  expect_error(plain({"--baseline", newer}), 3, "stowage-baseline/2 is not this version's");
  const std::string other = folder_.write("other.json", R"({"schema": "stowage-plan/1"})");
  expect_error(plain({"--baseline", other}), 3, "is no baseline");
  // Not overwritten either: it is somebody's file.
  expect_error(plain({"--baseline", other, "--update-baseline"}), 3, "is no baseline");
  EXPECT_EQ(read_text(other), R"({"schema": "stowage-plan/1"})");
  expect_error(plain({"--baseline", folder_.path()}), 3, "not a file (give a file in it)");
  expect_error(plain({"--budget", "1GB", "--junit", folder_.path()}), 4, "(give a file in it)");
}

// A CI job shows the error, not an answer from before.
TEST_F(Check, AnErrorIsInTheJunitFileToo) {
  const Outcome outcome =
      plain({"--baseline", folder_.file("none.json"), "--junit", junit_, "--name", "the test"});
  expect_error(outcome, 3, "no such baseline");
  EXPECT_THAT(read_text(junit_), HasSubstr("failures=\"1\""));
  EXPECT_THAT(read_text(junit_), HasSubstr("no such baseline"));
  EXPECT_THAT(read_text(junit_), HasSubstr("classname=\"the test\""));
}

TEST_F(Check, TheCommandLineIsChecked) {
  expect_error(run({"check"}), 2, "--plan FILE or --model SPEC");
  expect_error(plain({}), 2, "nothing to compare with");
  expect_error(plain({"--update-baseline", "--budget", "1GB"}), 2, "--baseline FILE");
  expect_error(plain({"--budget", "60%"}), 2, "--budget 60%");
  expect_error(plain({"--budget", "1XB"}), 2, "1XB");
  expect_error(plain({"--budget", "24G"}), 2, "did you mean 24GiB");
  expect_error(plain({"--budget", "1GB", "--budget-on", "all"}), 2, "requested, active");
  expect_error(plain({"--budget", "1GB", "--budget-on", "reserved"}), 2, "no reserved bytes");
  expect_error(plain({"--budget", "1GB", "--steps", "2"}), 2, "third step");
  expect_error(plain({"--budget", "1GB", "--tolerance", "1"}), 2, "a share such as 1%");
  expect_error(plain({"--budget", "1GB", "--stall-tolerance", "x%"}), 2, "--stall-tolerance");
  expect_error(plain({"--budget", "1GB", "--trace", trace_}), 2, "--trace");
  expect_error(plain({"--budget", "1GB", "--junit", "-"}), 2, "need a name");
  expect_error(plain({"--baseline", junit_, "--junit", junit_}), 2, "the same file");
  expect_error(plain({"--budget", "1GB", "--junit", folder_.file("no/j.xml")}), 4, "no/j.xml");
  expect_error(plain({"--budget", "1GB"}, "gtp2"), 2, "gpt2");
  expect_error(run({"check", "--plan", folder_.file("none.json")}), 3, "none.json");
}

TEST_F(Check, UnderAPlanHostBytesCountAndThePlansBudgetApplies) {
  make_plan("save_on_cpu");
  ASSERT_EQ(planned({"--baseline", baseline_, "--update-baseline"}).code, 0);
  const json baseline = json::parse(read_text(baseline_));
  EXPECT_GT(baseline.at("measured").at("host_bytes").get<long>(), 0);
  EXPECT_FALSE(baseline.at("at_peak").at("host").empty());
  EXPECT_EQ(baseline.at("made_with").at("plan").get<std::string>().rfind("sha256:", 0), 0U);
  const Outcome outcome = planned({"--baseline", baseline_, "--json"});
  ASSERT_EQ(outcome.code, 0) << outcome.err << outcome.out;
  EXPECT_EQ(case_of(outcome.out, "plan").at("outcome"), "passed");

  edit(baseline_, [](auto& file) {
    auto& host = file["measured"]["host_bytes"];
    host = host.template get<long>() - 512;
    file["at_peak"]["host"].erase(file["at_peak"]["host"].begin());
  });
  const Outcome grown = planned({"--baseline", baseline_});
  EXPECT_EQ(grown.code, 1) << grown.err;
  EXPECT_THAT(grown.out, HasSubstr("on the host"));

  edit(plan_, [](auto& plan) { plan["budget"] = {{"device", 1000}, {"on", "requested"}}; });
  const Outcome over = planned({});
  EXPECT_EQ(over.code, 1) << over.err;
  EXPECT_THAT(over.out, HasSubstr("the peak requested of"));
  EXPECT_THAT(over.out, HasSubstr("above the budget"));
  // Another plan than the baseline's, and another memory.
  const Outcome other = planned({"--baseline", baseline_, "--budget", "1GB"});
  EXPECT_EQ(other.code, 1) << other.err;
  EXPECT_THAT(other.out, HasSubstr("not comparable: made with plan sha256:"));
  ASSERT_EQ(std::remove(baseline_.c_str()), 0);
  ASSERT_EQ(planned({"--budget", "1GB", "--baseline", baseline_, "--update-baseline"}).code, 0);
  const Outcome memory =
      planned({"--budget", "1GB", "--baseline", baseline_, "--placement", "planned"});
  EXPECT_EQ(memory.code, 1) << memory.err;
  EXPECT_THAT(memory.out, HasSubstr("not comparable: made in the caching allocator's memory, "
                                    "this is in planned memory"));
  EXPECT_THAT(memory.out, Not(HasSubstr("sha256:")));
}

// The step has changed since: the rules are applied to it as it is now.
TEST_F(Check, APlanIsAppliedToAChangedStep) {
  make_plan("save_on_cpu");
  edit(plan_, [](auto& plan) { plan["for"]["fingerprint"] = "sha256:" + std::string(64, '0'); });
  const Outcome changed = planned({"--budget", "1GB", "--json"});
  ASSERT_EQ(changed.code, 0) << changed.err << changed.out;
  EXPECT_THAT(case_of(changed.out, "plan").at("message").get<std::string>(),
              HasSubstr("not the recorded one any more"));

  edit(plan_, [](auto& plan) {
    const nlohmann::ordered_json rule = {{"site", "layers.7#*"}, {"do", "offload"}};
    plan["saved"].insert(plan["saved"].begin(), rule);
  });
  const Outcome refused = planned({"--budget", "1GB", "--junit", junit_, "--json"});
  EXPECT_EQ(refused.code, 1) << refused.err;
  EXPECT_EQ(json::parse(refused.out).at("passed"), false);
  const json failed = case_of(refused.out, "plan");
  EXPECT_EQ(failed.at("outcome"), "failed");
  EXPECT_THAT(failed.at("message").get<std::string>(), HasSubstr("does not apply"));
  EXPECT_THAT(failed.at("message").get<std::string>(), HasSubstr("layers.7#*"));
  EXPECT_THAT(read_text(junit_), HasSubstr("layers.7#*"));
}

TEST_F(Check, APlanWhoseTraceIsGoneIsStillChecked) {
  make_plan("save_on_cpu");
  ASSERT_EQ(planned({"--baseline", baseline_, "--update-baseline"}).code, 0);
  const std::string moved = folder_.file("moved.json.gz");
  ASSERT_EQ(std::rename(trace_.c_str(), moved.c_str()), 0);
  const Outcome outcome = planned({"--baseline", baseline_});
  EXPECT_EQ(outcome.code, 0) << outcome.err << outcome.out;
  EXPECT_THAT(outcome.err, HasSubstr("keep the trace beside the plan"));
  const Outcome named = planned({"--baseline", baseline_, "--trace", moved});
  EXPECT_EQ(named.code, 0) << named.out;
  EXPECT_EQ(named.err, "");
  expect_error(planned({"--budget", "1GB", "--trace", trace_}), 3, "t.json.gz");
}

TEST_F(Check, APlanForAnotherModelOrStepIsRefused) {
  make_plan("save_on_cpu");
  expect_error(planned({"--budget", "1GB", "--model", "mlp"}), 2, "is not the plan's model");
  expect_error(planned({"--budget", "1GB", "--batch", "3"}), 2, "contradicts the plan's step");
  expect_error(planned({}), 2, "the plan has no budget");
  EXPECT_EQ(planned({"--budget", "1GB", "--model", kGpt2}).code, 0);
  edit(plan_, [](auto& plan) { plan["for"] = {{"trace_file", "none.json"}}; });
  cli_tests::expect_error(planned({"--budget", "1GB"}), 3,
                          {"p.json: /for: ", "neither its trace nor its model", "--trace FILE"});
}

// Written by hand: what it does not say of its step is the trace's, as `verify` has it.
TEST_F(Check, AStepThatThePlanDoesNotSayIsItsTraces) {
  ASSERT_EQ(
      run({"profile", kGpt2, "--batch", "3", "--device", "cpu", "--threads", "2", "-o", trace_})
          .code,
      0);
  const json by_hand = {{"schema", "stowage-plan/1"},
                        {"for", {{"trace_file", "t.json.gz"}}},
                        {"budget", {{"device", "100%"}}}};
  folder_.write("p.json", by_hand.dump());
  const Outcome outcome = planned({"--json"});
  ASSERT_EQ(outcome.code, 0) << outcome.err << outcome.out;
  EXPECT_EQ(outcome.err, "");
  EXPECT_EQ(json::parse(outcome.out).at("batch"), 3);
  EXPECT_EQ(case_of(outcome.out, "budget").at("limit"),
            case_of(outcome.out, "budget").at("measured"));
  expect_error(planned({"--batch", "2"}), 2, "contradicts the plan's step (3)");
}

TEST_F(Check, ATraceOfAnotherStepIsRefusedAsInVerify) {
  make_plan("save_on_cpu");
  edit(plan_, [](auto& plan) {
    plan["for"].erase("fingerprint");
    plan["for"]["threads"] = 2;
  });
  for (const Outcome& outcome : {planned({"--budget", "1GB"}), run({"verify", "--plan", plan_})}) {
    expect_error(outcome, 3, "p.json: /for/threads: the plan is for threads 2");
  }
}

// The step has changed behind a plan that does not say which saved tensors it is for.
TEST_F(Check, ATraceThatIsThereIsNotSaidToBeGone) {
  make_plan("save_on_cpu");
  edit(plan_, [](auto& plan) { plan["for"].erase("fingerprint"); });
  ASSERT_EQ(run({"profile", "gpt2:layers=2,width=64,seq=32,vocab=128,attention=efficient",
                 "--batch", "2", "--device", "cpu", "--threads", "1", "-o", trace_})
                .code,
            0);
  Result<LoadedTrace> other = load_trace(trace_);
  ASSERT_TRUE(other.ok());
  other->trace.run.model = json::parse(read_text(plan_)).at("for").at("model").get<std::string>();
  ASSERT_TRUE(save_trace(trace_, other->trace).ok());
  const Outcome outcome = planned({"--budget", "1GB"});
  EXPECT_EQ(outcome.code, 0) << outcome.err << outcome.out;
  EXPECT_THAT(outcome.err, HasSubstr("t.json.gz is of another step than this one"));
  EXPECT_THAT(outcome.err, Not(HasSubstr("not there")));
}

TEST_F(Check, AnEditedPercentageIsRefused) {
  make_plan("save_on_cpu");
  edit(plan_, [](auto& plan) {
    plan["budget"] = {{"device", "60%"}, {"device_bytes", 1}, {"on", "active"}};
  });
  for (const char* verb : {"check", "verify", "execute"}) {
    expect_error(run({verb, "--plan", plan_}), 3, "p.json: /budget/device_bytes: 60% of the peak");
  }
  // Another recording's peak may be another one.
  edit(plan_, [](auto& plan) { plan["for"]["trace"] = "sha256:" + std::string(64, '0'); });
  EXPECT_EQ(planned({}).code, 1);
}

// It may be somebody else's, in a pull request.
TEST_F(Check, ABaselineMovesNoCursor) {
  write_baseline();
  edit(baseline_, [](auto& baseline) {
    baseline["measured"]["peak_requested_bytes"] = 1000;
    for (auto& row : baseline["at_peak"]["storages"]) row["layer"] = "x\x1b]0;owned\x07";
  });
  const Outcome grown = plain({"--baseline", baseline_});
  EXPECT_EQ(grown.code, 1) << grown.err;
  edit(baseline_, [](auto& baseline) {
    baseline["made_with"]["libtorch"] =
        "2\x1b[2J\xC2\x9B"
        "1m";
  });
  const Outcome other = plain({"--baseline", baseline_});
  EXPECT_THAT(other.out, HasSubstr("2?[2J" + std::string(2, '?') + "1m"));
  edit(baseline_, [](auto& baseline) { baseline["step"]["model"] = "m\x1b[2J"; });
  const Outcome refused = plain({"--baseline", baseline_});
  EXPECT_EQ(refused.code, 3);
  for (const Outcome& outcome : {grown, other, refused}) {
    for (const std::string& text : {outcome.out, outcome.err}) {
      EXPECT_EQ(text.find_first_of("\x1b\x07"), std::string::npos) << text;
      EXPECT_EQ(text.find("\xC2\x9B"), std::string::npos) << text;
    }
  }
}

}  // namespace
}  // namespace stowage
