#include "gui/model/name_search.h"

#include <gtest/gtest.h>

#include "tests/support/micro_trace.h"
#include "traces/trace_file.h"

namespace stowage::gui {
namespace {

using Kind = Selection::Kind;

// embed: gather; layers.0: mm (saves), layers.0 backward: mm_backward.
Trace small() {
  testing::MicroTrace t;
  t.begin_layer("embed");
  t.run(10).begin_op("aten::gather");
  t.end_op();
  t.end_layer("embed");
  t.begin_layer("layers.0");
  t.run(10).begin_op("aten::mm");
  const auto a = t.alloc(4000);
  const auto s = t.pack(a);
  t.end_op();
  t.let_go(a);
  t.end_layer("layers.0");
  t.backward();
  t.run(10).begin_op("aten::MM_backward");
  const auto u = t.unpack(s);
  t.drop(u);
  t.end_op();
  t.free(a);
  return t.finish();
}

std::vector<Selection> found(const Trace& trace, const std::string& text) {
  std::vector<Selection> what;
  for (const SearchHit& hit : search(trace, text)) what.push_back(hit.what);
  return what;
}

TEST(Search, FindsOpsLayersAndSavedTensorsInOrderOfTheStep) {
  const Trace trace = small();
  EXPECT_EQ(found(trace, "mm"), (std::vector<Selection>{{Kind::op, 1}, {Kind::op, 2}}));
  const std::vector<Selection> layers = found(trace, "layers.0");
  ASSERT_EQ(layers.size(), 2U);
  EXPECT_EQ(layers[0].kind, Kind::layer);
  EXPECT_EQ(layers[1], (Selection{Kind::saved, 0}));
  EXPECT_EQ(found(trace, "EMBED").size(), 1U);
}

// Whatever the details lead to can be found: ops inside others, and storages as they are named.
TEST(Search, FindsWhatIsInsideOtherOps) {
  testing::MicroTrace t;
  t.run(10).begin_composite_op("aten::linear");
  t.run(10).begin_op("aten::addmm");
  const auto a = t.alloc(400);
  t.end_op();
  t.end_op();
  t.free(a);
  const Trace trace = t.finish();
  EXPECT_EQ(found(trace, "addmm"), (std::vector<Selection>{{Kind::op, 1}}));
  const Selection storage{Kind::storage, a.value};
  const std::string name = name_of(trace, storage);
  EXPECT_EQ(found(trace, name.substr(0, name.find(" ", name.find('#')))),
            (std::vector<Selection>{storage}))
      << name;
  EXPECT_TRUE(found(trace, "nonsense #0").empty());
}

// Names of kernels hold those of ops: they come where nothing else has the name.
TEST(Search, FindsKernelsWhereNothingElseIs) {
  const auto loaded =
      load_trace(STOWAGE_SOURCE_DIR "/traces/samples/mlp-l6-fp32-h200.trace.json.gz");
  ASSERT_TRUE(loaded) << loaded.error().text();
  const Trace& trace = loaded->trace;
  const std::vector<SearchHit> hits = search(trace, "elementwise_kernel");
  std::size_t expected = 0;
  for (const StringId name : trace.gpu.name) {
    expected += trace.string(name).find("elementwise_kernel") != std::string::npos ? 1U : 0U;
  }
  ASSERT_GT(expected, 5U);
  ASSERT_EQ(hits.size(), expected);
  for (std::size_t i = 0; i < hits.size(); ++i) {
    EXPECT_EQ(hits[i].what.kind, Kind::gpu);
    EXPECT_EQ(hits[i].event, event_of(trace, hits[i].what));
    EXPECT_LE(hits[i > 0 ? i - 1 : 0].event, hits[i].event);
  }
  for (const SearchHit& hit : search(trace, "gelu")) EXPECT_NE(hit.what.kind, Kind::gpu);
}

TEST(Search, FindsNothingForNothing) {
  const Trace trace = small();
  EXPECT_TRUE(search(trace, "").empty());
  EXPECT_TRUE(search(trace, "no such name").empty());
  std::stop_source stopped;
  stopped.request_stop();
  EXPECT_TRUE(search(trace, "mm", stopped.get_token()).empty());
}

TEST(Search, ANumberBehindAHashIsAStorage) {
  const Trace trace = small();
  EXPECT_EQ(found(trace, "#0"), (std::vector<Selection>{{Kind::storage, 0}}));
  EXPECT_TRUE(search(trace, "#99999").empty());
  EXPECT_EQ(found(trace, "#0x").size(), 0U);
}

TEST(Search, ASelectionHasANameAndAPlace) {
  const Trace trace = small();
  EXPECT_EQ(name_of(trace, {Kind::op, 1}), "aten::mm in layers.0");
  EXPECT_EQ(name_of(trace, {Kind::saved, 0}), "layers.0#0 (4.00 kB)");
  EXPECT_EQ(name_of(trace, {}), "");
  EXPECT_EQ(event_of(trace, {Kind::saved, 0}), trace.saved.event[0]);
  EXPECT_EQ(trace.events.kind[event_of(trace, {Kind::op, 2}).index()], EventKind::op_begin);
  EXPECT_FALSE(event_of(trace, {}).valid());
}

}  // namespace
}  // namespace stowage::gui
