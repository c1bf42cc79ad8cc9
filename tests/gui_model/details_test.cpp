// What the details say of ops that are made of others, of layers that hold others.
#include "gui/model/details.h"

#include <gtest/gtest.h>

#include "tests/support/micro_trace.h"
#include "traces/trace_file.h"

namespace stowage::gui {
namespace {

using Kind = Selection::Kind;

std::shared_ptr<const Explained> explained(const TracePtr& trace, const PlanState& plan = {}) {
  const auto simulated = simulate(trace, std::make_shared<const PlanState>(plan));
  EXPECT_TRUE(simulated) << simulated.error().text();
  return std::make_shared<const Explained>(*simulated);
}

std::vector<std::string> values(const Details& details, const std::string& name) {
  std::vector<std::string> found;
  for (const DetailSection& section : details.sections) {
    for (const DetailRow& row : section.rows) {
      if (row.name == name) found.push_back(row.value);
    }
  }
  return found;
}

using Values = std::vector<std::string>;

// linear, at 100: addmm inside it makes 400 bytes that stay and 64 that are gone when linear ends,
// in kernels of 30 and 20. The link moves 1 byte a nanosecond.
TracePtr composed() {
  testing::MicroTrace t;
  t.run(100).begin_composite_op("aten::linear");
  t.begin_op("aten::addmm");
  const auto out = t.alloc(400);
  const auto scratch = t.alloc(64);
  t.run(30);
  t.free(scratch);
  t.run(20).end_op();
  t.end_op();
  t.free(out);
  return std::make_shared<const TraceData>(t.finish(), "", "");
}

// 12 layers return 64 x 197 x 768 floats each, and their gradients are as large.
TEST(Details, OutsideOfAllLayersIsWhatAnAttributionHolds) {
  auto loaded =
      load_trace(STOWAGE_SOURCE_DIR "/traces/samples/vit-attribution-fp32-h200.trace.json.gz");
  ASSERT_TRUE(loaded) << loaded.error().text();
  const auto trace = std::make_shared<const TraceData>(std::move(loaded->trace), "", "");
  const auto step = explained(trace, fresh_state(trace->trace));
  const Details root = details_of(*step, {Kind::layer, 0});
  EXPECT_EQ(root.title, "outside of all layers");
  const Values held = values(root, "Held for attribution");
  ASSERT_EQ(held.size(), 1U) << details_text(root);
  EXPECT_EQ(held[0].substr(0, 11), "24 tensors,") << held[0];
  EXPECT_NE(held[0].find("929,562,624 bytes"), std::string::npos) << held[0];
  // Of a layer there is no such row, and none of a step that trains.
  EXPECT_TRUE(values(details_of(*step, {Kind::layer, 2}), "Held for attribution").empty());
  EXPECT_TRUE(
      values(details_of(*explained(composed()), {Kind::layer, 0}), "Held for attribution").empty());
}

TEST(Details, OfAnOpHaveWhatTheOpsInsideItMake) {
  const Details op = details_of(*explained(composed()), {Kind::op, 0});
  EXPECT_EQ(op.title.substr(0, 12), "aten::linear");
  ASSERT_EQ(values(op, "Makes").size(), 1U) << details_text(op);
  EXPECT_NE(values(op, "Makes")[0].find("(400 B)"), std::string::npos) << details_text(op);
  EXPECT_EQ(values(op, "Needs meanwhile"), (Values{"64 B in 1 storage"})) << details_text(op);
  EXPECT_EQ(values(op, "Planned start"), (Values{"100 ns"}));
  EXPECT_EQ(values(op, "Planned time"), (Values{"50 ns"}));
}

// mm_backward begins at 1,110 and works for 50; the copy back of 400 bytes starts where it is
// needed.
TEST(Details, OfAnOpSayHowMuchOfItIsAStall) {
  testing::MicroTrace t;
  t.run(100).begin_op("aten::mm");
  const auto a = t.alloc(400);
  const auto s = t.pack(a);
  t.end_op();
  t.let_go(a);
  t.run(1000).begin_op("aten::other");
  t.end_op();
  t.backward();
  t.run(10).begin_op("aten::mm_backward");
  const auto u = t.unpack(s);
  t.run(50).drop(u);
  t.end_op();
  t.free(a);
  PlanState plan;
  simulator::SavedRule& rule = plan.plan.saved.emplace_back();
  rule.site = "*";
  rule.decision = simulator::Decision::offload;
  rule.reload.kind = simulator::ReloadPoint::Kind::unpack;
  const auto x = explained(std::make_shared<const TraceData>(t.finish(), "", ""), plan);
  const Details op = details_of(*x, {Kind::op, 2});
  ASSERT_EQ(x->stalls.size(), 1U);
  EXPECT_EQ(values(op, "Planned time"), (Values{"450 ns, 400 ns of it a stall"}))
      << details_text(op);
}

// The head of Llama: 2 x 8 x 1024 x 128,256 x 4 bytes of logits come of `linear`.
TEST(Details, OfLlamasHeadHaveItsLogitsAndItsTimeOnTheDevice) {
  auto loaded =
      load_trace(STOWAGE_SOURCE_DIR "/traces/samples/llama3-8b-l9-fp32-math-h200.trace.json.gz");
  ASSERT_TRUE(loaded) << loaded.error().text();
  const auto data = std::make_shared<const TraceData>(std::move(loaded->trace), "", "");
  const Trace& trace = data->trace;
  const auto x = explained(data);
  std::int32_t linear = -1;
  std::int32_t block = -1;
  for (std::size_t i = 0; i < trace.ops.size(); ++i) {
    const LayerId layer = trace.ops.layer[i];
    if (trace.string(trace.ops.name[i]) == "aten::linear" && layer.valid() &&
        trace.string(trace.layers.name[layer.index()]) == "head") {
      linear = static_cast<std::int32_t>(i);
    }
  }
  for (std::size_t i = 0; i < trace.layers.size(); ++i) {
    if (trace.string(trace.layers.name[i]) == "layers.3") block = static_cast<std::int32_t>(i);
  }
  ASSERT_GE(linear, 0);
  const Details op = details_of(*x, {Kind::op, linear});
  ASSERT_FALSE(values(op, "Makes").empty()) << details_text(op);
  EXPECT_NE(values(op, "Makes")[0].find("(4.20 GB)"), std::string::npos) << details_text(op);
  ASSERT_EQ(values(op, "Recorded time on the device").size(), 1U) << details_text(op);

  // What the layers inside a block hold: 4 x 4096^2 (with 1/4 of it twice) and 3 x 4096 x 14336 and
  // norms, fp32.
  ASSERT_GE(block, 0);
  const Details layer = details_of(*x, {Kind::layer, block});
  ASSERT_EQ(values(layer, "Parameters").size(), 1U);
  const Bytes attention = (2 * 4096 * 4096 + 2 * 4096 * 1024) * 4LL;
  const Bytes mlp = 3LL * 4096 * 14336 * 4;
  Bytes known = 0;
  for (std::size_t i = 0; i < trace.layers.size(); ++i) {
    if (trace.string(trace.layers.name[i]).starts_with("layers.3")) {
      known += trace.layers.parameter_bytes[i];
    }
  }
  EXPECT_GE(known, attention + mlp);
  EXPECT_EQ(trace.layers.parameter_bytes[static_cast<std::size_t>(block)], 0);
  EXPECT_TRUE(values(layer, "Parameters")[0].starts_with("872 MB")) << details_text(layer);
}

}  // namespace
}  // namespace stowage::gui
