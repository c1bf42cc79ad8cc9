// plan --pin and --pins: what is pinned stays, what cannot be pinned is one line.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "tests/cli/process.h"
#include "tests/support/small_trace.h"
#include "traces/trace_file.h"

namespace stowage::cli_tests {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;
using testing::small_trace;
using ::testing::StartsWith;
using Json = nlohmann::json;

class PinOptions : public ::testing::Test {
 protected:
  void SetUp() override {
    trace_ = folder_.file("t.json.gz");
    ASSERT_TRUE(save_trace(trace_, small_trace(4)).ok());
  }
  Outcome plan(std::vector<std::string> more) const {
    more.insert(more.begin(), {"plan", trace_});
    return stowage(more);
  }
  Json planned(std::vector<std::string> more) const {
    more.push_back("--json");
    const Outcome outcome = plan(more);
    EXPECT_EQ(outcome.code, 0) << outcome.err;
    return Json::parse(outcome.out, nullptr, false);
  }
  std::string error_of(int code, std::vector<std::string> more) const {
    more.insert(more.begin(), {"--budget", "70%"});
    const Outcome outcome = plan(more);
    EXPECT_EQ(outcome.code, code) << outcome.err;
    EXPECT_EQ(outcome.out, "");
    EXPECT_EQ(count_lines(outcome.err), 1) << outcome.err;
    EXPECT_THAT(outcome.err, StartsWith("stowage: error: "));
    return outcome.err;
  }
  std::string plan_file(const std::string& name, const std::string& rules) const {
    return folder_.write(name, R"({"schema": "stowage-plan/1", )" + rules + "}");
  }

  TemporaryFolder folder_;
  std::string trace_;
};

// All layers save as much: unpinned the first two leave, for their copies can start first.
TEST_F(PinOptions, WhatIsPinnedStaysAndTheAnswerCountsIt) {
  const Json free = planned({"--budget", "80%"});
  EXPECT_EQ(free["pinned"], 0);
  ASSERT_THAT(free["plan"]["saved"].dump(), HasSubstr("layers.[0-1]"));
  const Json json = planned({"--budget", "80%", "--pin", "layers.0#*=keep"});
  EXPECT_EQ(json["pinned"], 1);
  EXPECT_THAT(json["plan"]["saved"].dump(), HasSubstr("layers.[1-2]"));
  EXPECT_GE(json["lower_bound"]["step_ns"], free["lower_bound"]["step_ns"]);

  const Outcome text = plan({"--budget", "80%", "--pin", "layers.0#*=keep", "-o", "/dev/null"});
  EXPECT_THAT(text.out, HasSubstr("Pinned: 1 decision, left as said."));
  EXPECT_THAT(plan({"--budget", "80%", "-o", "/dev/null"}).out, Not(HasSubstr("Pinned")));
}

TEST_F(PinOptions, APlanFileWhollyPinnedIsThatPlan) {
  const std::string first = folder_.file("p.json");
  ASSERT_EQ(plan({"--budget", "75%", "-o", first}).code, 0);
  const std::string again = folder_.file("q.json");
  ASSERT_EQ(plan({"--budget", "75%", "--pins", first, "-o", again}).code, 0);
  const Json one = Json::parse(read_text(first));
  const Json two = Json::parse(read_text(again));
  for (const char* part : {"saved", "predicted"}) EXPECT_EQ(one[part], two[part]);
  EXPECT_EQ(one.value("parameters", Json()), two.value("parameters", Json()));
}

TEST_F(PinOptions, ABudgetThatPinsMakeUnreachableIsNotFound) {
  const Outcome outcome = plan({"--budget", "70%", "--pin", "*=keep", "--deny",
                                "params,optimizer,gradients", "-o", "/dev/null", "--json"});
  EXPECT_EQ(outcome.code, 1);
  const Json json = Json::parse(outcome.out);
  EXPECT_EQ(json["outcome"], "not_found");
  EXPECT_EQ(json["pinned"], 4);
  EXPECT_THAT(outcome.err, HasSubstr("with what is pinned (4 decisions)"));
  EXPECT_THAT(json["notes"].dump(), HasSubstr("with the 4 pinned decisions"));
  const std::string least = std::to_string(json["kept_from_bytes"].get<std::int64_t>());
  EXPECT_EQ(plan({"--budget", least, "--pin", "*=keep", "-o", "/dev/null"}).code, 0);
}

TEST_F(PinOptions, WrongPinsAreOneLineThatSaysWhere) {
  EXPECT_THAT(error_of(2, {"--pin", "layers.0#0"}), HasSubstr("'layers.0#0' says no decision"));
  EXPECT_THAT(error_of(2, {"--pin", "layers.9#0=keep"}),
              HasSubstr("--pin layers.9#0=keep: the rule with site \"layers.9#0\" matches no saved "
                        "tensor (the nearest site is layers."));
  EXPECT_THAT(error_of(2, {"--pin", "layers.0#0=stream"}),
              HasSubstr("'stream' is no decision about a saved tensor (one of keep, offload, "
                        "recompute)"));
  EXPECT_THAT(error_of(2, {"--pin", "param:layers.0=stream"}),
              HasSubstr("'param' is nothing that can be pinned (did you mean 'params:'?)"));
  EXPECT_THAT(error_of(2, {"--pin", "layers.0#0=keep", "--pin", "layers.0#*=offload"}),
              HasSubstr("--pin layers.0#*=offload: 'layers.0#0' is pinned otherwise by --pin "
                        "layers.0#0=keep (leave one of the two out)"));
  EXPECT_THAT(error_of(2, {"--pin", "layers.0#0=keep", "--policy", "thunder"}),
              HasSubstr("without --policy"));
  EXPECT_THAT(error_of(3, {"--pins", folder_.file("none.json")}), HasSubstr("none.json"));
  const std::string wrong =
      plan_file("w.json", R"("saved": [{"site": "layers.9#0", "do": "keep"}])");
  EXPECT_THAT(error_of(3, {"--pins", wrong}),
              HasSubstr(wrong + ": /saved/0/site: the rule with site \"layers.9#0\""));
  const std::string keeps =
      plan_file("k.json", R"("saved": [{"site": "layers.0#0", "do": "keep"}])");
  EXPECT_THAT(error_of(2, {"--pins", keeps, "--pin", "layers.0#0=offload"}),
              HasSubstr("is pinned otherwise by " + keeps));
  const std::string prefetch = plan_file(
      "f.json", R"("parameters": {"shards": [["layers.0"]], "stream": true, "prefetch": 1})");
  EXPECT_THAT(error_of(3, {"--pins", prefetch}), HasSubstr(prefetch + ": /parameters/prefetch: "));
  const std::string other = folder_.write(
      "o.json", R"({"schema": "stowage-plan/1", "for": {"model": "other"}, "saved": []})");
  EXPECT_THAT(error_of(3, {"--pins", other}), HasSubstr("/for/model"));
}

}  // namespace
}  // namespace stowage::cli_tests
