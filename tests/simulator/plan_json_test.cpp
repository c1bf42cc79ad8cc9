// simulator/plan_json: reads what docs/plan-format.md allows, refuses the rest with file, pointer
// and hint, writes byte-stable text, and survives any bytes.
#include "simulator/plan/plan_json.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <random>
#include <string>
#include <vector>

namespace stowage::simulator {
namespace {

// Everything that the format can say, written as plan_to_json writes it.
constexpr const char* kFull = R"({
  "schema": "stowage-plan/1",
  "for": { "model": "gpt2:layers=2", "batch": 4, "seq": 256, "dtype": "fp32", "optimizer": "adamw", "threads": 2, "fingerprint": "sha256:ab", "trace_file": "t.json.gz", "trace": "sha256:cd" },
  "budget": { "device": "60%", "device_bytes": 96600000, "on": "active", "automatic_bytes": 96000000, "host": "64GiB" },
  "saved": [
    { "class": "parameter", "do": "offload", "release": "pack", "reload": "unpack", "copy_out": "blocking", "copy_in": "compute", "share": false },
    { "site": "layers.[0-6].attn#*", "do": "offload", "release": "fwd:layers.+1:end", "reload": "bwd:layers.+2:begin" },
    { "site": "layers.*", "op": "aten::*softmax", "min_bytes": 1024, "do": "offload", "release": "pack+5" },
    { "site": "embed#?", "do": "offload" },
    { "site": "*", "do": "keep" }
  ],
  "parameters": { "shards": [["embed"], ["layers.[0-2]", "head"]], "stream": "forward", "prefetch": 1 },
  "predicted": { "peak_requested_bytes": 96000001, "peak_active_bytes": 96000001, "peak_reserved_bytes": null, "step_ns": 123, "stall_ns": 4, "host_bytes": 512 },
  "lower_bound": { "step_ns": 120 },
  "gap": 0.025,
  "made_by": { "tool": "stowage 0.1.0", "policy": "auto", "seed": 1, "created": "2026-11-20T12:00:00Z" }
}
)";

Plan read(std::string_view text) {
  auto plan = plan_from_json(text, "p.json");
  EXPECT_TRUE(plan.ok()) << plan.error().text();
  return plan.ok() ? plan.value() : Plan{};
}

std::string with(const std::string& parts) {
  return R"({"schema": "stowage-plan/1", )" + parts + "}";
}

TEST(PlanJson, ReadsEveryPart) {
  const Plan plan = read(kFull);
  EXPECT_EQ(plan.target.model, "gpt2:layers=2");
  EXPECT_EQ(plan.target.seq, 256);
  EXPECT_EQ(plan.target.threads, 2);
  EXPECT_EQ(plan.budget.device, 96600000);
  EXPECT_EQ(plan.budget.device_text, "60%");
  EXPECT_EQ(plan.budget.automatic, 96000000);
  EXPECT_EQ(plan.budget.host, Bytes{64} << 30);
  ASSERT_EQ(plan.saved.size(), 5U);
  EXPECT_EQ(plan.saved[0].storage_class, StorageClass::parameter);
  EXPECT_EQ(plan.saved[0].copy_out, CopyMode::blocking);
  EXPECT_EQ(plan.saved[0].copy_in, CopyMode::compute);
  EXPECT_FALSE(plan.saved[0].share);
  EXPECT_EQ(plan.saved[1].release.kind, ReleasePoint::Kind::point);
  EXPECT_TRUE(plan.saved[1].release.point.relative);
  EXPECT_EQ(plan.saved[1].reload.point.distance, 2);
  EXPECT_EQ(plan.saved[2].release.lag, 5);
  EXPECT_EQ(plan.saved[2].min_bytes, 1024);
  ASSERT_TRUE(plan.parameters.has_value());
  EXPECT_EQ(plan.parameters->shards,
            (std::vector<std::vector<std::string>>{{"embed"}, {"layers.[0-2]", "head"}}));
  EXPECT_EQ(plan.parameters->stream, ParameterPlan::Stream::forward);
  EXPECT_EQ(plan.parameters->prefetch, 1);
  ASSERT_TRUE(plan.predicted.has_value());
  EXPECT_EQ(plan.predicted->peak_reserved, -1);
  EXPECT_EQ(plan.lower_bound_step, 120);
  EXPECT_EQ(plan.gap_ppm, 25000);
}

TEST(PlanJson, WritesTheSameBytesBack) {
  EXPECT_EQ(plan_to_json(read(kFull)), kFull);
  const std::string empty = plan_to_json(Plan{});
  EXPECT_EQ(plan_to_json(read(empty)), empty);
  EXPECT_EQ(empty, "{\n  \"schema\": \"stowage-plan/1\",\n  \"saved\": []\n}\n");
}

TEST(PlanJson, GivesThePlanBack) {
  std::mt19937_64 random(1);
  const auto below = [&](std::uint64_t n) { return random() % n; };
  for (int round = 0; round < 2000; ++round) {
    Plan plan;
    plan.target.model =
        "m" + std::string(below(4), '"') + std::string(1, static_cast<char>(below(127) + 1));
    plan.target.batch = static_cast<std::int64_t>(below(100));
    if (below(2) != 0) plan.budget.device = static_cast<Bytes>(1 + below(1U << 30));
    if (below(3) == 0) {
      plan.budget.device_text = "1.5KiB";
      plan.budget.device = 1536;
    }
    plan.budget.on = static_cast<PeakKind>(below(3));
    if (below(2) != 0) plan.budget.automatic = static_cast<Bytes>(below(1000));
    for (std::uint64_t i = below(4); i > 0; --i) {
      SavedRule rule;
      if (below(2) != 0) rule.site = "layers.[0-" + std::to_string(below(9)) + "].x#*";
      if (below(3) == 0) rule.storage_class = static_cast<StorageClass>(below(10));
      if (below(3) == 0) rule.op = "aten::?m*";
      if (below(3) == 0) rule.min_bytes = static_cast<Bytes>(below(5000));
      rule.decision = static_cast<Decision>(below(2));
      if (rule.decision == Decision::offload) {
        rule.copy_out = static_cast<CopyMode>(below(3));
        rule.copy_in = static_cast<CopyMode>(below(3));
        rule.share = below(2) != 0;
        rule.release.kind = static_cast<ReleasePoint::Kind>(below(3));
        if (rule.release.kind == ReleasePoint::Kind::pack) {
          rule.release.lag = static_cast<std::int32_t>(below(9));
        }
        if (rule.release.kind == ReleasePoint::Kind::point) {
          rule.release.point.layer = below(2) != 0 ? "layers.3.mlp" : "step";
          rule.release.point.where = ProgramPoint::Where::end;
        }
        rule.reload.kind = static_cast<ReloadPoint::Kind>(below(3));
        if (rule.reload.kind == ReloadPoint::Kind::point) {
          rule.reload.point.phase = ProgramPoint::Phase::backward;
          rule.reload.point.relative = true;
          rule.reload.point.layer = "layers.";
          rule.reload.point.distance = static_cast<std::int32_t>(below(9)) - 4;
          rule.reload.point.where = ProgramPoint::Where::op;
          rule.reload.point.op = static_cast<std::int32_t>(below(9));
        }
      }
      plan.saved.push_back(rule);
    }
    if (below(2) != 0) {
      plan.parameters.emplace();
      for (std::uint64_t i = below(12); i > 0; --i) {
        auto& shard = plan.parameters->shards.emplace_back();
        for (std::uint64_t j = 1 + below(3); j > 0; --j) {
          shard.push_back(below(2) != 0 ? "layers.[0-" + std::to_string(below(99)) + "].mlp" : "?");
        }
      }
      std::vector<StreamMode> modes(plan.parameters->shards.size());
      for (StreamMode& mode : modes) mode = static_cast<StreamMode>(below(4));
      if (modes.empty() || below(2) == 0) {
        plan.parameters->stream = static_cast<StreamMode>(below(4));
      } else {
        plan.parameters->stream = StreamModes(modes);
      }
      if (below(2) != 0) plan.parameters->prefetch = static_cast<std::int32_t>(below(5));
    }
    if (below(2) != 0) {
      plan.predicted.emplace();
      plan.predicted->peak_active = static_cast<Bytes>(below(1U << 20));
      plan.predicted->peak_reserved = below(2) != 0 ? -1 : static_cast<Bytes>(below(1U << 20));
    }
    if (below(2) != 0) plan.gap_ppm = static_cast<std::int64_t>(below(5'000'000));
    if (below(2) != 0) plan.made_by.policy = "auto";
    const std::string text = plan_to_json(plan);
    const auto back = plan_from_json(text, "p.json");
    ASSERT_TRUE(back.ok()) << back.error().text() << "\n" << text;
    ASSERT_EQ(back.value(), plan) << text;
    ASSERT_EQ(plan_to_json(back.value()), text);
  }
}

// Many shards stand a line each.
TEST(PlanJson, WritesManyShardsALineEach) {
  Plan plan;
  plan.parameters.emplace();
  for (int i = 0; i < 3; ++i) {
    plan.parameters->shards.push_back(
        {"encoder.layers." + std::to_string(i), "a.rather.long.name"});
  }
  plan.parameters->stream = ParameterPlan::Stream::always;
  EXPECT_EQ(plan_to_json(plan), R"({
  "schema": "stowage-plan/1",
  "saved": [],
  "parameters": {
    "shards": [
      ["encoder.layers.0", "a.rather.long.name"],
      ["encoder.layers.1", "a.rather.long.name"],
      ["encoder.layers.2", "a.rather.long.name"]
    ],
    "stream": true
  }
}
)");
  EXPECT_EQ(read(plan_to_json(plan)), plan);
}

TEST(PlanJson, ParametersAsPeopleWriteThem) {
  const ParameterPlan nothing = read(with(R"("parameters": {})")).parameters.value();
  EXPECT_EQ(nothing, ParameterPlan{});
  const ParameterPlan off =
      read(with(R"("parameters": {"stream": false, "shards": [["a"]]})")).parameters.value();
  EXPECT_EQ(off.stream, ParameterPlan::Stream::off);
  EXPECT_EQ(off.shards.size(), 1U);
  // A layer in two shards is no error: the first one has it.
  const ParameterPlan twice =
      read(with(R"("parameters": {"prefetch": "auto", "stream": true, "shards": [["a"], ["a"]]})"))
          .parameters.value();
  EXPECT_EQ(twice.prefetch, std::nullopt);
  EXPECT_EQ(twice.stream, ParameterPlan::Stream::always);
  EXPECT_EQ(twice.shards.size(), 2U);
  const char* const kEach =
      R"("parameters": {"shards": [["a"], ["b"], ["c"]], "stream": ["backward", false, true]})";
  const ParameterPlan each = read(with(kEach)).parameters.value();
  EXPECT_EQ(each.stream, StreamModes({StreamMode::backward, StreamMode::off, StreamMode::always}));
  const ParameterPlan same =
      read(with(R"("parameters": {"shards": [["a"], ["b"]], "stream": ["backward", "backward"]})"))
          .parameters.value();
  EXPECT_EQ(same.stream, StreamMode::backward);
  EXPECT_EQ(read(with(R"("parameters": {"prefetch": 0})")).parameters->prefetch, 0);
}

TEST(PlanJson, AcceptsWhatPeopleWrite) {
  EXPECT_EQ(read(with(R"("budget": {"device": "36GB"})")).budget.device, 36'000'000'000);
  EXPECT_EQ(read(with(R"("budget": {"device": 4096})")).budget.device, 4096);
  const Plan percent = read(with(R"("budget": {"device": "60%"})"));
  EXPECT_FALSE(percent.budget.device.has_value());
  EXPECT_EQ(percent.budget.device_text, "60%");
  EXPECT_EQ(read(with(R"("saved": [{"class": "param", "do": "keep"}])")).saved[0].storage_class,
            StorageClass::parameter);
  EXPECT_EQ(read(with(R"("saved": [{"site": "*", "min_bytes": "1KiB", "do": "offload"}])"))
                .saved[0]
                .min_bytes,
            1024);
  // Parts that ask for nothing may stand.
  read(with(R"("gradients": [{"layer": "*", "place": "device"}, {"layer": "a"}],
              "optimizer": [{"layer": "*", "state": "device", "step": "device"}],
              "recompute": [], "micro_batches": [{"segment": "*", "count": 1}], "parameters": {})"));
}

TEST(PlanJson, SegmentsThatRunAgainAreWrittenAsTheyWereRead) {
  const std::string text = R"({
  "schema": "stowage-plan/1",
  "saved": [],
  "recompute": [
    { "segment": "layers.[0-3]", "boundary": "offload" },
    { "segment": "layers.*", "each": 2 },
    { "segment": "h*", "each": "run", "boundary": "keep" },
    { "segment": "stem..layer1" },
    { "segment": "h*", "each": 4, "within": [{ "segment": "h*", "within": [{ "segment": "*.mlp" }] }] }
  ]
}
)";
  const Plan plan = read(text);
  ASSERT_EQ(plan.recompute.size(), 5U);
  ASSERT_EQ(plan.recompute[4].within.size(), 1U);
  EXPECT_EQ(plan.recompute[4].within[0].within, (std::vector<RecomputeRule>{{"*.mlp"}}));
  EXPECT_EQ(plan.recompute[3], (RecomputeRule{"stem..layer1"}));
  EXPECT_EQ(plan.recompute[0], (RecomputeRule{"layers.[0-3]", 1, Decision::offload}));
  EXPECT_EQ(plan.recompute[1], (RecomputeRule{"layers.*", 2}));
  EXPECT_EQ(plan.recompute[2], (RecomputeRule{"h*", RecomputeRule::kAll, Decision::keep}));
  EXPECT_EQ(plan_to_json(plan), text);
}

struct Refused {
  const char* text;
  const char* pointer;
  const char* part_of_the_error;
};

TEST(PlanJson, RefusesWithPointerAndHint) {
  const std::vector<Refused> cases = {
      {"", "", "not JSON"},
      {"{", "", "not JSON"},
      {"[]", "", "expected an object"},
      {"{}", "/schema", "missing"},
      {R"({"schema": 1})", "/schema", "expected a string"},
      {R"({"schema": "stowage-trace"})", "/schema", "is no plan"},
      {R"({"schema": "stowage-plan/2"})", "/schema", "not known here"},
      {R"({"schema": "stowage-plan/1", "saved": {}})", "/saved", "list of rules"},
      {R"({"schema": "stowage-plan/1", "savd": []})", "/savd", "did you mean \"saved\""},
      {R"({"schema": "stowage-plan/1", "gap": 0, "gap": 1})", "/gap", "stands twice"},
      {R"({"schema": "stowage-plan/1", "saved": [{"do": "keep"}, [1, {"a": {}}], {"b": [0, {"do": 1, "do": 2}]}]})",
       "/saved/2/b/1/do", "stands twice"},
      {R"({"schema": "stowage-plan/1", "saved": [{"sit": "*", "do": "keep"}]})", "/saved/0/sit",
       "did you mean \"site\""},
      {R"({"schema": "stowage-plan/1", "saved": [{"site": "*"}]})", "/saved/0/do", "missing"},
      {R"({"schema": "stowage-plan/1", "saved": [{"site": "*", "do": "ofload"}]})", "/saved/0/do",
       "did you mean \"offload\""},
      {R"({"schema": "stowage-plan/1", "saved": [{"site": "*", "do": "recompute"}]})",
       "/saved/0/by", "is missing"},
      {R"({"schema": "stowage-plan/1", "saved": [{"do": "recompute", "by": "segment"}]})",
       "/saved/0/by", "ops"},
      {R"({"schema": "stowage-plan/1", "saved": [{"do": "keep", "by": "ops"}]})", "/saved/0/by",
       "belongs to"},
      {R"({"schema": "stowage-plan/1",
           "saved": [{"do": "recompute", "by": "ops", "release": "pack"}]})",
       "/saved/0/release", "says nothing beside \"do\": \"recompute\""},
      {R"({"schema": "stowage-plan/1", "saved": [{"site": "a[", "do": "keep"}]})", "/saved/0/site",
       "without ]"},
      {R"({"schema": "stowage-plan/1", "saved": [{"site": "", "do": "keep"}]})", "/saved/0/site",
       "empty"},
      {R"({"schema": "stowage-plan/1", "saved": [{"do": "keep", "release": "pack"}]})",
       "/saved/0/release", "says nothing"},
      {R"({"schema": "stowage-plan/1", "saved": [{"do": "offload", "release": "unpack"}]})",
       "/saved/0/release", "no release point"},
      {R"({"schema": "stowage-plan/1", "saved": [{"do": "offload", "release": "pack+x"}]})",
       "/saved/0/release", "no number"},
      {R"({"schema": "stowage-plan/1", "saved": [{"do": "offload", "release": "fwd:a@mb=1:end"}]})",
       "/saved/0/release", "not supported yet"},
      {R"({"schema": "stowage-plan/1", "saved": [{"do": "offload", "reload": "bwd:a"}]})",
       "/saved/0/reload", "no program point"},
      {R"({"schema": "stowage-plan/1", "saved": [{"do": "offload", "share": 1}]})",
       "/saved/0/share", "true or false"},
      {R"({"schema": "stowage-plan/1", "saved": [{"do": "offload", "copy_in": "lan"}]})",
       "/saved/0/copy_in", "did you mean \"lane\""},
      {R"({"schema": "stowage-plan/1", "saved": [{"do": "keep", "min_bytes": -1}]})",
       "/saved/0/min_bytes", "too small"},
      {R"({"schema": "stowage-plan/1", "saved": [{"do": "keep", "min_bytes": 1e30}]})",
       "/saved/0/min_bytes", "whole number"},
      {R"({"schema": "stowage-plan/1", "saved": [{"do": "keep", "min_bytes": 18446744073709551615}]})",
       "/saved/0/min_bytes", "too large"},
      {R"({"schema": "stowage-plan/1", "budget": {"device": "0"}})", "/budget/device", ""},
      {R"({"schema": "stowage-plan/1", "budget": {"device": "12XB"}})", "/budget/device", ""},
      {R"({"schema": "stowage-plan/1", "budget": {"device": -1}})", "/budget/device", "too small"},
      {R"({"schema": "stowage-plan/1", "budget": {"device": "1KiB", "device_bytes": 5}})",
       "/budget/device_bytes", "is not what"},
      {R"({"schema": "stowage-plan/1", "budget": {"device_bytes": 5}})", "/budget/device_bytes",
       "no percentage"},
      {R"({"schema": "stowage-plan/1", "budget": {"on": "reserve"}})", "/budget/on",
       "did you mean \"reserved\""},
      {R"({"schema": "stowage-plan/1", "recompute": {}})", "/recompute", "expected a list"},
      {R"({"schema": "stowage-plan/1", "recompute": [{"segment": "a..b", "each": "run"}]})",
       "/recompute/0/each", "a row of layers is one segment"},
      {R"({"schema": "stowage-plan/1", "recompute": [{"each": "layer"}]})", "/recompute/0",
       "names no segment"},
      {R"({"schema": "stowage-plan/1", "recompute": [{"segment": "[3"}]})", "/recompute/0/segment",
       ""},
      {R"({"schema": "stowage-plan/1", "recompute": [{"segment": "a", "each": "all"}]})",
       "/recompute/0/each", "a number of layers"},
      {R"({"schema": "stowage-plan/1", "recompute": [{"segment": "a", "each": 0}]})",
       "/recompute/0/each", "too small"},
      {R"({"schema": "stowage-plan/1", "recompute": [{"segment": "a", "boundary": "host"}]})",
       "/recompute/0/boundary", "unknown value \"host\" (one of keep, offload)"},
      {R"({"schema": "stowage-plan/1", "recompute": [{"segment": "a", "each": true}]})",
       "/recompute/0/each", "\"run\" or a number of layers"},
      {R"({"schema": "stowage-plan/1", "saved": [{"do": "recompute", "by": "segment"}]})",
       "/saved/0/by", "segments are named under \"recompute\""},
      {R"({"schema": "stowage-plan/1", "recompute": [{"segment": "a.[1234567890123456789]"}]})",
       "/recompute/0/segment", "a number of more than 18 digits"},
      {R"({"schema": "stowage-plan/1", "recompute": [{"segment": "a.[1-b]"}]})",
       "/recompute/0/segment", "has no numbers"},
      {R"({"schema": "stowage-plan/1",
           "recompute": [{"segment": "a", "within": [{"segment": "b", "boundary": "offload"}]}]})",
       "/recompute/0/within/0/boundary", "the other one's run makes it"},
      {R"({"schema": "stowage-plan/1", "recompute": [{"segment": "a", "within": {}}]})",
       "/recompute/0/within", "expected a list"},
      {R"({"schema": "stowage-plan/1", "recompute": [{"segment": "a", "boundry": "keep"}]})",
       "/recompute/0/boundry", "did you mean \"boundary\""},
      {R"({"schema": "stowage-plan/1", "parameters": []})", "/parameters", "expected an object"},
      {R"({"schema": "stowage-plan/1", "parameters": {"shard": []}})", "/parameters/shard",
       "did you mean \"shards\""},
      {R"({"schema": "stowage-plan/1", "parameters": {"shards": "embed"}})", "/parameters/shards",
       "expected a list of shards"},
      {R"({"schema": "stowage-plan/1", "parameters": {"shards": [["a"], "embed"]}})",
       "/parameters/shards/1", "expected a list of layers"},
      {R"({"schema": "stowage-plan/1", "parameters": {"shards": [["a"], []]}})",
       "/parameters/shards/1", "has no layers"},
      {R"({"schema": "stowage-plan/1", "parameters": {"shards": [["a", 3]]}})",
       "/parameters/shards/0/1", "expected a string"},
      {R"({"schema": "stowage-plan/1", "parameters": {"shards": [["a", ""]]}})",
       "/parameters/shards/0/1", ""},
      {R"({"schema": "stowage-plan/1", "parameters": {"shards": [["layers.[0-"]]}})",
       "/parameters/shards/0/0", ""},
      {R"({"schema": "stowage-plan/1", "parameters": {"stream": "fwd"}})", "/parameters/stream",
       "\"forward\""},
      {R"({"schema": "stowage-plan/1", "parameters": {"shards": [["a"]], "stream": [true, true]}})",
       "/parameters/stream", "2 values for 1 shards"},
      {R"({"schema": "stowage-plan/1", "parameters": {"stream": []}})", "/parameters/stream",
       "0 values for 0 shards"},
      {R"({"schema": "stowage-plan/1", "parameters": {"shards": [["a"]], "stream": ["back"]}})",
       "/parameters/stream/0", "expected true, false, \"forward\" or \"backward\", found \"back\""},
      {R"({"schema": "stowage-plan/1", "parameters": {"stream": 1}})", "/parameters/stream",
       "true, false"},
      {R"({"schema": "stowage-plan/1", "parameters": {"prefetch": -1}})", "/parameters/prefetch",
       "too small"},
      {R"({"schema": "stowage-plan/1", "parameters": {"prefetch": 1.5}})", "/parameters/prefetch",
       "whole number"},
      {R"({"schema": "stowage-plan/1", "parameters": {"prefetch": 3000000000}})",
       "/parameters/prefetch", "too large"},
      {R"({"schema": "stowage-plan/1", "parameters": {"prefetch": "2"}})", "/parameters/prefetch",
       "a number of shards"},
      {R"({"schema": "stowage-plan/1", "parameters": {"prefetch": null}})", "/parameters/prefetch",
       "whole number"},
      {R"({"schema": "stowage-plan/1", "gradients": [{"layer": "*", "place": "disk"}]})",
       "/gradients/0/place", "unknown value"},
      {R"({"schema": "stowage-plan/1", "gradients": {"place": "device"}})", "/gradients", "a list"},
      {R"({"schema": "stowage-plan/1", "optimizer": [{"layer": "*", "step": "host"}]})",
       "/optimizer/0/step", "updated there"},
      {R"({"schema": "stowage-plan/1", "optimizer": [{"layer": "*", "state": "host"}]})",
       "/optimizer/0/state", "updated there"},
      {R"({"schema": "stowage-plan/1", "optimizer": [{"layer": "*", "state": "stream", "step": "host"}]})",
       "/optimizer/0/step", "updated there"},
      {R"({"schema": "stowage-plan/1", "optimizer": [{"state": "stream"}]})", "/optimizer/0",
       "names no layer"},
      {R"({"schema": "stowage-plan/1", "optimizer": [{"layer": "*", "state": "disk"}]})",
       "/optimizer/0/state", "\"device\", \"stream\""},
      {R"({"schema": "stowage-plan/1", "optimizer": [{"layer": "a[", "state": "stream"}]})",
       "/optimizer/0/layer", ""},
      {R"({"schema": "stowage-plan/1", "optimizer": [{"layer": "*", "where": "x"}]})",
       "/optimizer/0/where", ""},
      {R"({"schema": "stowage-plan/1", "micro_batches": {}})", "/micro_batches", "a list"},
      {R"({"schema": "stowage-plan/1", "micro_batches": [{"segment": "*"}]})", "/micro_batches/0",
       "a segment and a count"},
      {R"({"schema": "stowage-plan/1", "micro_batches": [{"segment": "*", "count": 0}]})",
       "/micro_batches/0/count", "0"},
      {R"({"schema": "stowage-plan/1", "micro_batches": [{"segment": "*", "count": 3000000000}]})",
       "/micro_batches/0/count", "too large"},
      {R"({"schema": "stowage-plan/1", "micro_batches": [{"segment": "*", "parts": 2}]})",
       "/micro_batches/0/parts", "unknown key"},
      {R"({"schema": "stowage-plan/1", "micro_batches": [{"segment": "a", "count": 2},
                                                         {"segment": "a", "count": 4}]})",
       "/micro_batches/1/segment", "has a rule already"},
      {R"({"schema": "stowage-plan/1", "gap": -1})", "/gap", "no gap"},
      {R"({"schema": "stowage-plan/1", "gap": 1e400})", "", ""},
      {R"({"schema": "stowage-plan/1", "for": {"batch": 1.5}})", "/for/batch", "whole number"},
  };
  for (const Refused& refused : cases) {
    const auto plan = plan_from_json(refused.text, "p.json");
    ASSERT_FALSE(plan.ok()) << refused.text;
    const Error& error = plan.error();
    EXPECT_EQ(error.code, ErrorCode::bad_input) << refused.text;
    EXPECT_EQ(error.file, "p.json");
    EXPECT_EQ(error.pointer, refused.pointer) << refused.text << ": " << error.text();
    EXPECT_NE(error.text().find(refused.part_of_the_error), std::string::npos)
        << refused.text << ": " << error.text();
    EXPECT_EQ(error.text().find('\n'), std::string::npos) << error.text();
  }
}

TEST(PlanJson, DeepNestingIsAnError) {
  const std::string deep(200'000, '[');
  EXPECT_FALSE(plan_from_json(deep, "p.json").ok());
  const std::string nested = with("\"saved\": " + deep + std::string(200'000, ']'));
  const auto plan = plan_from_json(nested, "p.json");
  ASSERT_FALSE(plan.ok());
  EXPECT_NE(plan.error().message.find("nested more than 32 levels"), std::string::npos);
  // Brackets inside strings are text.
  EXPECT_TRUE(
      plan_from_json(with("\"made_by\": {\"tool\": \"" + std::string(100, '[') + "\"}"), "").ok());
}

// 80,000 keys took 12 s, each compared with all before it. The time itself is no matter of a test:
// what is refused is refused by its number of keys, before anything compares them.
TEST(PlanJson, ManyKeysAreNoPlan) {
  std::string text = R"({"schema": "stowage-plan/1")";
  for (int i = 0; i < 80'000; ++i) text += ",\"key" + std::to_string(i) + "\":0";
  const auto plan = plan_from_json(text + "}", "p.json");
  ASSERT_FALSE(plan.ok());
  EXPECT_EQ(plan.error().code, ErrorCode::bad_input);
  EXPECT_EQ(plan.error().message.substr(0, 41), "has an object with more than 256 keys, at");
}

TEST(PlanJson, BadUtf8IsReplacedInOutput) {
  Plan plan;
  plan.target.model = "a\xff";
  const std::string text = plan_to_json(plan);
  EXPECT_NE(text.find("a\xEF\xBF\xBD"), std::string::npos);
  EXPECT_TRUE(plan_from_json(text, "p.json").ok());
}

// Damaged plans: a value or an error, never a crash, and what reads also writes stably.
TEST(PlanJson, SurvivesDamage) {
  const std::string full = kFull;
  const std::string alphabet = "{}[]\",:0123456789.-+eE%#*?abnftru\\ \n\x01\xff";
  std::mt19937_64 random(7);
  int accepted = 0;
  for (int round = 0; round < 20'000; ++round) {
    std::string text = full;
    for (std::uint64_t edits = 1 + random() % 4; edits > 0; --edits) {
      const std::size_t at = random() % text.size();
      switch (random() % 4) {
        case 0:
          text[at] = alphabet[random() % alphabet.size()];
          break;
        case 1:
          text.erase(at, 1 + random() % 20);
          break;
        case 2:
          text.insert(at, 1, alphabet[random() % alphabet.size()]);
          break;
        default:
          text.insert(at, text.substr(random() % text.size(), random() % 30));
          break;
      }
      if (text.empty()) text = "{";
    }
    const auto plan = plan_from_json(text, "p.json");
    if (!plan.ok()) {
      ASSERT_FALSE(plan.error().message.empty());
      ASSERT_EQ(plan.error().text().find('\n'), std::string::npos);
      continue;
    }
    ++accepted;
    const std::string once = plan_to_json(plan.value());
    const auto again = plan_from_json(once, "p.json");
    ASSERT_TRUE(again.ok()) << again.error().text() << "\n" << text << "\n" << once;
    ASSERT_EQ(plan_to_json(again.value()), once);
  }
  EXPECT_GT(accepted, 100);
}

// The published schema names the same keys as the reader.
TEST(PlanJson, SchemaFileIsJson) {
  FILE* file = std::fopen(STOWAGE_SOURCE_DIR "/simulator/plan/plan.schema.json", "rb");
  ASSERT_NE(file, nullptr);
  std::string text(1 << 16, '\0');
  text.resize(std::fread(text.data(), 1, text.size(), file));
  std::fclose(file);
  const auto schema = nlohmann::json::parse(text, nullptr, false);
  ASSERT_TRUE(schema.is_object());
  EXPECT_EQ(schema["$schema"], "https://json-schema.org/draft/2020-12/schema");
  EXPECT_EQ(schema["additionalProperties"], false);
  const auto document = nlohmann::json::parse(std::string(kFull));
  for (const auto& item : document.items()) EXPECT_TRUE(schema["properties"].contains(item.key()));
  for (const auto& rule : document["saved"]) {
    for (const auto& item : rule.items()) {
      EXPECT_TRUE(schema["$defs"]["rule"]["properties"].contains(item.key())) << item.key();
    }
  }
  for (const char* part : {"for", "budget", "predicted", "made_by"}) {
    for (const auto& item : document[part].items()) {
      EXPECT_TRUE(schema["properties"][part]["properties"].contains(item.key())) << item.key();
    }
  }
}

}  // namespace
}  // namespace stowage::simulator
