// planner/pin_text: what a pin on a line says, and which of them contradict.
#include "planner/pin_text.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <random>
#include <string>
#include <vector>

#include "tests/support/head_in_parts.h"
#include "tests/support/micro_trace.h"
#include "tests/support/random_chain.h"

namespace stowage::planner {
namespace {

using simulator::Decision;
using simulator::Plan;
using simulator::StatePlace;
using simulator::StreamMode;
using ::testing::HasSubstr;

Plan read_pin(const std::string& text) {
  const auto plan = pin_from_text(text);
  EXPECT_TRUE(plan.ok()) << plan.error().text();
  return plan ? *plan : Plan{};
}

TEST(PinText, SaysOneRule) {
  for (const auto& [word, decision] :
       {std::pair{"keep", Decision::keep}, std::pair{"offload", Decision::offload},
        std::pair{"recompute", Decision::recompute}}) {
    for (const char* kind : {"", "saved:"}) {
      const Plan plan = read_pin(std::string(kind) + "layers.*#2=" + word);
      ASSERT_EQ(plan.saved.size(), 1U);
      EXPECT_EQ(plan.saved[0].site, "layers.*#2");
      EXPECT_EQ(plan.saved[0].decision, decision);
    }
  }
  EXPECT_EQ(read_pin("layer:layers.[0-3]=recompute").recompute.at(0).segment, "layers.[0-3]");
  for (const auto& [word, mode] :
       {std::pair{"keep", StreamMode::off}, std::pair{"stream", StreamMode::always},
        std::pair{"forward", StreamMode::forward}, std::pair{"backward", StreamMode::backward}}) {
    const Plan plan = read_pin(std::string("params:head=") + word);
    ASSERT_TRUE(plan.parameters.has_value());
    EXPECT_EQ(plan.parameters->shards, (std::vector<std::vector<std::string>>{{"head"}}));
    EXPECT_EQ(plan.parameters->stream.of(0), mode);
  }
  for (const auto& [word, place] :
       {std::pair{"keep", StatePlace::device}, std::pair{"stream", StatePlace::stream},
        std::pair{"host", StatePlace::host}}) {
    EXPECT_EQ(read_pin(std::string("optimizer:*=") + word).optimizer.at(0).state, place);
  }
  EXPECT_EQ(read_pin("gradients:a.b=host").gradients.at(0).place, simulator::GradientPlace::host);
  EXPECT_EQ(read_pin("gradients:a.b=keep").gradients.at(0).place, simulator::GradientPlace::device);
  // The last "=" is that of the decision; a colon behind what is no word is of the site.
  EXPECT_EQ(read_pin("a=b#0=keep").saved.at(0).site, "a=b#0");
  EXPECT_EQ(read_pin("A:b#0=keep").saved.at(0).site, "A:b#0");
}

TEST(PinText, WhatItIsNotIsAUsageError) {
  for (const char* text : {"", "=", "=keep", "a#0=", "a#0", "a#0=stay", "parms:a=keep",
                           "layer:a=keep", "gradients:a=stream"}) {
    const auto plan = pin_from_text(text);
    ASSERT_FALSE(plan.ok()) << text;
    EXPECT_EQ(plan.error().code, ErrorCode::usage) << text;
    EXPECT_FALSE(plan.error().hint.empty()) << text;
  }
}

std::string conflict_of(const Trace& trace, const std::vector<std::string>& pins) {
  std::vector<PinSource> sources;
  for (const std::string& text : pins) sources.push_back({read_pin(text), "", "--pin " + text});
  const auto joined = join_pins(simulator::StepIndex(trace), sources);
  return joined ? "" : joined.error().message;
}

TEST(PinText, TwoThatContradictAreNamed) {
  std::mt19937_64 random(1);
  const Trace trace = testing::random_chain(random, 3, testing::ChainOps::alone_too);
  EXPECT_EQ(conflict_of(trace, {"layers.0#0=keep", "layers.*#0=keep"}), "");
  EXPECT_THAT(conflict_of(trace, {"layers.0#0=keep", "layers.*#0=offload"}),
              HasSubstr("--pin layers.*#0=offload: 'layers.0#0' is pinned otherwise by --pin "
                        "layers.0#0=keep"));
  EXPECT_THAT(conflict_of(trace, {"layer:layers.1=recompute", "layers.1#0=keep"}),
              HasSubstr("'layers.1#0' is pinned otherwise by --pin layer:layers.1=recompute"));
  EXPECT_THAT(conflict_of(trace, {"layers.1#0=keep", "layer:layers.1=recompute"}),
              HasSubstr("'layers.1#0' is pinned otherwise by --pin layers.1#0=keep"));
}

// A plan's file says for which recording it is, and the parts are others.
TEST(PinText, APlanInMicroBatchesIsReadInThese) {
  Trace parts = testing::step_with_head(8, 4);
  parts.fingerprint = "sha256:parts";
  const Trace trace = testing::with_parts(testing::step_with_head(8, 1), {parts});
  Plan plan;
  plan.target.fingerprint = trace.fingerprint;
  plan.micro_batches = {{"head", 4}};
  plan.saved.emplace_back();
  plan.saved.back().site = "body#0";
  const simulator::StepIndex index(trace);
  const auto joined = join_pins(index, {{plan, "p.json", ""}});
  ASSERT_TRUE(joined.ok()) << joined.error().text();
  EXPECT_EQ(joined->micro_batches, plan.micro_batches);
  EXPECT_EQ(joined->saved, plan.saved);
  Plan other;
  other.micro_batches = {{"head", 1}};
  const auto both = join_pins(index, {{plan, "p.json", ""}, {other, "q.json", ""}});
  ASSERT_FALSE(both.ok());
  EXPECT_EQ(both.error().file, "q.json");
  EXPECT_THAT(both.error().message, HasSubstr("'head' is pinned otherwise by p.json"));
}

TEST(PinText, LayersOfModelStateToo) {
  testing::RandomTraceOptions options;
  options.parameters = true;
  const Trace trace = testing::random_trace(2, options);
  EXPECT_EQ(conflict_of(trace, {"params:layers.0=forward", "params:layers.0=forward"}), "");
  EXPECT_THAT(conflict_of(trace, {"params:layers.0=forward", "params:*=keep"}),
              HasSubstr("'layers.0' is pinned otherwise"));
  EXPECT_THAT(conflict_of(trace, {"optimizer:layers.0=stream", "optimizer:layers.0=host"}),
              HasSubstr("layers.0"));
}

}  // namespace
}  // namespace stowage::planner
