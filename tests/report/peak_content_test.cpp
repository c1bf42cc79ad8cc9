// What is alive at the peak: by hand on the small trace, and against the replay on random steps.
#include "report/peak_content.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <numeric>
#include <set>
#include <tuple>

#include "simulator/lowering/lowering.h"
#include "simulator/replay/memory_replay.h"
#include "simulator/replay/replay.h"
#include "tests/support/micro_trace.h"
#include "tests/support/schedule_parts.h"
#include "tests/support/small_trace.h"

namespace stowage::report_tests {
namespace {

using report::Holding;
using report::PeakContent;
using report::PeakRow;
using ::testing::ElementsAre;
using testing::small_trace;
using testing::small_trace_peak;

Bytes sum_of(const std::vector<PeakRow>& rows) {
  return std::accumulate(rows.begin(), rows.end(), Bytes{0},
                         [](Bytes sum, const PeakRow& row) { return sum + row.bytes; });
}

const PeakRow* find(const std::vector<PeakRow>& rows, StorageClass storage_class,
                    const std::string& layer, const std::string& op) {
  for (const PeakRow& row : rows) {
    if (row.storage_class == storage_class && row.layer == layer && row.op == op) return &row;
  }
  return nullptr;
}

// In the backward op of layers.2 (small_trace.h): all three activations are alive.
TEST(PeakContent, NamesWhatIsAliveByClassLayerOpAndSite) {
  const Trace trace = small_trace(3);
  const simulator::StepIndex index(trace);
  const PeakContent content = report::peak_content(index, simulator::resident_schedule(index));
  EXPECT_EQ(content.peak_requested, small_trace_peak(3));
  EXPECT_EQ(sum_of(content.on_device), small_trace_peak(3));
  EXPECT_EQ(content.op_name, "aten::relu_backward");
  EXPECT_EQ(content.layer, "layers.2");
  EXPECT_EQ(content.phase, "backward");
  EXPECT_TRUE(content.on_host.empty());
  for (const std::string layer : {"layers.0", "layers.1", "layers.2"}) {
    SCOPED_TRACE(layer);
    bool found = false;
    for (const PeakRow& row : content.on_device) {
      if (row.storage_class != StorageClass::activation || row.layer != layer) continue;
      if (row.sites.empty()) continue;
      EXPECT_THAT(row.sites, ElementsAre(layer + "#0"));
      EXPECT_EQ(row.storages, 1);
      EXPECT_EQ(row.bytes, 2'000'000);
      EXPECT_FALSE(row.op.empty());
      found = true;
    }
    EXPECT_TRUE(found);
    const PeakRow* const parameter = find(content.on_device, StorageClass::parameter, layer, "");
    ASSERT_NE(parameter, nullptr);
    EXPECT_EQ(parameter->bytes, 400'000);
    EXPECT_TRUE(parameter->sites.empty());
  }
}

TEST(PeakContent, OffloadedStoragesAreOnTheHostAndComeBackAsCopies) {
  testing::MicroTrace t;
  t.begin_layer("a");
  const auto a = t.alloc(100);
  const auto s = t.pack(a);
  t.let_go(a);
  t.end_layer("a");
  t.run(1000);
  t.begin_layer("b");
  const auto big = t.alloc(1000);
  t.free(big);
  t.end_layer("b");
  t.backward();
  const auto u = t.unpack(s);
  t.drop(u);
  t.free(a);
  const Trace trace = t.finish();
  const simulator::StepIndex index(trace);
  simulator::Plan plan;
  plan.saved.emplace_back();
  plan.saved[0].site = "a#*";
  plan.saved[0].decision = simulator::Decision::offload;
  plan.saved[0].reload.kind = simulator::ReloadPoint::Kind::unpack;
  const auto lowering = simulator::lower(index, plan);
  ASSERT_TRUE(lowering.ok()) << lowering.error().text();
  const PeakContent content = report::peak_content(index, lowering->schedule);
  // `a` has left by the time that `big` is there.
  EXPECT_EQ(content.peak_requested, 1000);
  ASSERT_EQ(content.on_host.size(), 1U);
  EXPECT_EQ(content.on_host[0].holding, Holding::host);
  EXPECT_EQ(content.on_host[0].layer, "a");
  EXPECT_EQ(content.on_host[0].bytes, 100);
  EXPECT_THAT(content.on_host[0].sites, ElementsAre("a#0"));
}

// The sum over the rows is the peak of the replay, whatever moves; no row stands twice.
TEST(PeakContent, IsThePeakOfTheReplayOnRandomSteps) {
  int with_copies = 0;
  int with_parameters = 0;
  for (std::uint64_t seed = 0; seed < 400; ++seed) {
    SCOPED_TRACE(seed);
    testing::RandomTraceOptions options;
    options.parameters = seed % 2 == 1;
    const Trace trace = testing::random_trace(seed, options);
    const simulator::StepIndex index(trace);
    simulator::Decisions decisions = testing::random_decisions(trace, seed);
    if (options.parameters) decisions.parameters = testing::random_shards(trace, seed);
    if (options.parameters) {
      decisions.optimizer = testing::random_state(trace, seed);
      decisions.gradients = testing::random_gradients(trace, seed);
    }
    const auto lowering = simulator::lower(index, decisions);
    if (!lowering.ok()) continue;
    const PeakContent content = report::peak_content(index, lowering->schedule);
    EXPECT_EQ(content.peak_requested,
              simulator::replay_memory(index, lowering->schedule).requested);
    EXPECT_EQ(sum_of(content.on_device), content.peak_requested);
    std::set<std::tuple<Holding, StorageClass, std::string, std::string>> keys;
    for (const PeakRow& row : content.on_device) {
      EXPECT_TRUE(keys.emplace(row.holding, row.storage_class, row.layer, row.op).second);
      EXPECT_GT(row.storages, 0);
      with_copies += row.holding == Holding::reloaded ? 1 : 0;
    }
    with_parameters += testing::parameters_of(lowering->schedule).empty() ? 0 : 1;
  }
  EXPECT_GT(with_copies, 20);
  EXPECT_GT(with_parameters, 20);
}

}  // namespace
}  // namespace stowage::report_tests
