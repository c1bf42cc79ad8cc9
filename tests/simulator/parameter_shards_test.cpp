#include "simulator/plan/parameter_shards.h"

#include <gtest/gtest.h>

#include <random>
#include <set>
#include <string>

#include "simulator/plan/plan_json.h"
#include "tests/support/micro_trace.h"
#include "traces/validate.h"

namespace stowage::simulator {
namespace {

using testing::MicroTrace;

// embed, layers.0 .. layers.11 with an attention and an mlp each, head; a parameter each, one more
// of layers.3 itself and one of a buffer's class. Storage rows: 0 embed, then attn and mlp of each
// layer, 25 head, 26 layers.3, 27 the buffer.
Trace model() {
  MicroTrace t;
  const auto layer = [&](const std::string& name) {
    t.begin_layer(name);
    t.existing(64);
    t.end_layer(name);
  };
  layer("embed");
  for (int i = 0; i < 12; ++i) {
    const std::string name = "layers." + std::to_string(i);
    t.begin_layer(name);
    layer(name + ".attn");
    layer(name + ".mlp");
    t.end_layer(name);
  }
  layer("head");
  t.set_layer(t.existing(64), "layers.3");
  t.existing(64, StorageClass::buffer);
  return t.finish();
}

ParameterPlan plan_of(std::vector<std::vector<std::string>> shards) {
  return {std::move(shards), ParameterPlan::Stream::always, 1};
}

TEST(ParameterShards, FirstShardWinsAndLayersHoldWhatIsInside) {
  const Trace trace = model();
  const auto decisions = resolve_parameters(
      trace, plan_of({{"embed", "layers.0.attn"}, {"layers.[0-1]"}, {"layers.1", "layers.3"}}));
  ASSERT_TRUE(decisions.ok()) << decisions.error().text();
  EXPECT_EQ(decisions->stream, ParameterPlan::Stream::always);
  EXPECT_EQ(decisions->prefetch, 1);
  const auto& shard = decisions->shard_of;
  ASSERT_EQ(shard.size(), trace.storages.size());
  EXPECT_EQ(shard[0], 0);    // embed
  EXPECT_EQ(shard[1], 0);    // layers.0.attn, also named by the second
  EXPECT_EQ(shard[2], 1);    // layers.0.mlp
  EXPECT_EQ(shard[3], 1);    // layers.1.attn, named again by the third
  EXPECT_EQ(shard[5], -1);   // layers.2.attn
  EXPECT_EQ(shard[7], 2);    // layers.3.attn
  EXPECT_EQ(shard[26], 2);   // layers.3 itself
  EXPECT_EQ(shard[21], -1);  // layers.10.attn is not layers.1
  EXPECT_EQ(shard[27], -1);  // a buffer
}

TEST(ParameterShards, NothingToStream) {
  const Trace trace = model();
  const auto none = resolve_parameters(trace, plan_of({}));
  ASSERT_TRUE(none.ok());
  EXPECT_TRUE(none->shard_of.empty());
  EXPECT_EQ(to_shards(trace, *none), plan_of({}));
}

TEST(ParameterShards, RefusesWithPointerAndNearestLayer) {
  const Trace trace = model();
  const auto unknown = resolve_parameters(trace, plan_of({{"embed"}, {"layers.0", "heat"}}));
  ASSERT_FALSE(unknown.ok());
  EXPECT_EQ(unknown.error().code, ErrorCode::bad_input);
  EXPECT_EQ(unknown.error().pointer, "/parameters/shards/1/1");
  EXPECT_NE(unknown.error().text().find("the nearest layer is head"), std::string::npos)
      << unknown.error().text();
  const auto beyond = resolve_parameters(trace, plan_of({{"layers.[12-20]"}}));
  ASSERT_FALSE(beyond.ok());
  EXPECT_EQ(beyond.error().pointer, "/parameters/shards/0/0");
  const auto malformed = resolve_parameters(trace, plan_of({{"layers.[3-"}}));
  ASSERT_FALSE(malformed.ok());
  EXPECT_EQ(malformed.error().pointer, "/parameters/shards/0/0");
  MicroTrace empty;
  const auto nothing = resolve_parameters(empty.finish(), plan_of({{"*"}}));
  ASSERT_FALSE(nothing.ok());
  EXPECT_EQ(nothing.error().hint, "the trace has no parameters");
  // A plan says it where the plan is resolved.
  Plan plan;
  plan.parameters = plan_of({{"nowhere"}});
  EXPECT_FALSE(resolve(trace, plan).ok());
}

TEST(ParameterShards, BackToShortPatterns) {
  const Trace trace = model();
  const std::vector<ParameterPlan> plans = {
      plan_of({{"embed"}, {"layers.[0-2]"}, {"layers.[3-5]"}, {"layers.[6-11]", "head"}}),
      plan_of({{"embed", "head"}, {"layers.[0,2,4]"}}),
      plan_of({{"layers.[0-11].attn"}, {"layers.[0-2].mlp"}}),
      plan_of({{"layers.3.mlp"}, {"layers.3"}}),
      plan_of({{"head"}}),
  };
  for (const ParameterPlan& plan : plans) {
    const auto decisions = resolve_parameters(trace, plan);
    ASSERT_TRUE(decisions.ok()) << decisions.error().text();
    const ParameterPlan back = to_shards(trace, *decisions);
    EXPECT_EQ(resolve_parameters(trace, back)->shard_of, decisions->shard_of);
    EXPECT_EQ(back.shards.size(), plan.shards.size());
    for (std::size_t s = 0; s < plan.shards.size(); ++s) {
      EXPECT_LE(back.shards[s].size(), plan.shards[s].size()) << s;
    }
    EXPECT_EQ(back.stream, plan.stream);
    EXPECT_EQ(back.prefetch, plan.prefetch);
  }
  EXPECT_EQ(to_shards(trace, *resolve_parameters(trace, plans[0])), plans[0]);
}

// Shards by whole layers, numbered at random and with gaps: the same grouping comes back.
TEST(ParameterShards, RandomGroupings) {
  const Trace trace = model();
  for (std::uint32_t seed = 1; seed < 200; ++seed) {
    std::uint32_t state = seed * 2654435761U;
    const auto draw = [&](std::uint32_t n) {
      state = state * 1664525U + 1013904223U;
      return static_cast<std::int32_t>((state >> 16) % n);
    };
    ParameterDecisions decisions;
    decisions.shard_of.assign(trace.storages.size(), -1);
    std::vector<StreamMode> modes(6);
    for (StreamMode& mode : modes) mode = static_cast<StreamMode>(draw(4));
    decisions.stream = StreamModes(modes);
    decisions.shard_of[0] = draw(7) - 1;
    for (std::size_t i = 0; i < 12; ++i) {
      decisions.shard_of[1 + 2 * i] = decisions.shard_of[2 + 2 * i] = draw(7) - 1;
    }
    decisions.shard_of[25] = draw(7) - 1;
    decisions.shard_of[26] = decisions.shard_of[7];
    const ParameterPlan plan = to_shards(trace, decisions);
    const auto back = resolve_parameters(trace, plan);
    ASSERT_TRUE(back.ok());
    for (std::size_t s = 0; s < trace.storages.size(); ++s) {
      const std::int32_t got = back->shard_of.empty() ? -1 : back->shard_of[s];
      ASSERT_EQ(got < 0, decisions.shard_of[s] < 0) << seed << " " << s;
      ASSERT_EQ(back->mode_of(StorageId(s)), decisions.mode_of(StorageId(s))) << seed << " " << s;
      for (std::size_t t = 0; t < s && got >= 0; ++t) {
        ASSERT_EQ(got == back->shard_of[t], decisions.shard_of[s] == decisions.shard_of[t])
            << seed << " " << s << " " << t;
      }
    }
  }
}

// Names of pattern characters and digits: what is written about them means them alone.
TEST(ParameterShards, NamesOfPatternCharacters) {
  std::mt19937 random(18);
  const auto draw = [&](std::size_t n) { return static_cast<std::size_t>(random()) % n; };
  for (int round = 0; round < 300; ++round) {
    std::set<std::string> names;
    while (names.size() < 12) {
      std::string name;
      for (std::size_t length = 1 + draw(4); length > 0; --length)
        name += "[]*-?0123a.,#"[draw(13)];
      names.insert(name);
    }
    MicroTrace t;
    ParameterDecisions decisions;
    decisions.stream = ParameterPlan::Stream::always;
    for (const std::string& name : names) {
      t.begin_layer(name);
      t.existing(64);
      t.end_layer(name);
      decisions.shard_of.push_back(static_cast<std::int32_t>(draw(4)) - 1);
    }
    const Trace trace = t.finish();
    ASSERT_EQ(decisions.shard_of.size(), trace.storages.size());
    ASSERT_TRUE(validate(trace, "t.json")) << validate(trace, "t.json").error().text();
    Plan plan;
    plan.parameters = to_shards(trace, decisions);
    const std::string text = plan_to_json(plan);
    const auto read = plan_from_json(text, "p.json");
    ASSERT_TRUE(read.ok()) << read.error().text() << text;
    EXPECT_EQ(plan_to_json(*read), text);
    const auto back = resolve_parameters(trace, *read->parameters);
    ASSERT_TRUE(back.ok()) << back.error().text() << text;
    for (std::size_t s = 0; s < trace.storages.size(); ++s) {
      const std::int32_t got = back->shard_of.empty() ? -1 : back->shard_of[s];
      ASSERT_EQ(got < 0, decisions.shard_of[s] < 0) << text;
      for (std::size_t other = 0; other < s && got >= 0; ++other) {
        ASSERT_EQ(got == back->shard_of[other], decisions.shard_of[s] == decisions.shard_of[other])
            << text;
      }
    }
  }
}

}  // namespace
}  // namespace stowage::simulator
