// What a recording says of parameters: the order of their rows and the optimizer's updates.
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "tests/profiler_torch/hand_step.h"
#include "tests/profiler_torch/recorded_model.h"

namespace stowage {
namespace {

std::vector<std::int32_t> parameter_rows(const Trace& trace) {
  std::vector<std::int32_t> rows;
  for (std::size_t s = 0; s < trace.storages.size(); ++s) {
    if (trace.storages.storage_class[s] == StorageClass::parameter) {
      rows.push_back(static_cast<std::int32_t>(s));
    }
  }
  return rows;
}

TEST(ParameterRows, AreInTheOrderOfRegistration) {
  const at::Tensor first = testing::parameter({3});
  const at::Tensor second = testing::parameter({5});
  const at::Tensor third = testing::parameter({7});
  const testing::HandStep step({third, first, second}, {}, [&] {
    return testing::backward(first.sum() * second.sum() * third.sum());
  });
  std::vector<Bytes> bytes;
  for (const std::int32_t row : parameter_rows(step.trace())) {
    bytes.push_back(step.trace().storages.bytes[static_cast<std::size_t>(row)]);
  }
  EXPECT_EQ(bytes, (std::vector<Bytes>{28, 12, 20}));
}

TEST(ParameterRows, HaveATiedOneOnce) {
  const auto recorded = testing::record_model("gpt2:layers=1,width=32,seq=8,vocab=64", 1, "sgd");
  EXPECT_EQ(parameter_rows(*recorded.trace).size(), recorded.session->step().parameters().size());
}

TEST(ParameterUpdates, AreEventsAroundEachUpdateInTheOptimizersPhase) {
  for (const char* const optimizer : {"sgd", "adamw"}) {
    SCOPED_TRACE(optimizer);
    const auto recorded = testing::record_model("mlp:layers=2,width=16", 4, optimizer);
    const Trace& trace = *recorded.trace;
    const std::vector<std::int32_t> rows = parameter_rows(trace);
    std::vector<std::int32_t> begun;
    std::vector<std::int32_t> ended;
    for (std::size_t e = 0; e < trace.events.size(); ++e) {
      const EventKind kind = trace.events.kind[e];
      if (kind != EventKind::parameter_update_begin && kind != EventKind::parameter_update_end) {
        continue;
      }
      auto& list = kind == EventKind::parameter_update_begin ? begun : ended;
      list.push_back(trace.events.ref[e]);
      ASSERT_EQ(begun.size() - ended.size(), kind == EventKind::parameter_update_begin ? 1U : 0U);
      bool in_optimizer = false;
      for (std::size_t p = 0; p < trace.phases.size(); ++p) {
        in_optimizer |= trace.phases.kind[p] == PhaseKind::optimizer &&
                        trace.phases.first_event[p] <= EventId(e) &&
                        EventId(e) <= trace.phases.last_event[p];
      }
      EXPECT_TRUE(in_optimizer) << "event " << e;
    }
    EXPECT_EQ(begun, rows);
    EXPECT_EQ(ended, rows);
  }
}

TEST(ParameterUpdates, AreNoneWithoutAnOptimizer) {
  const auto recorded = testing::record_model("mlp:layers=2,width=16", 4, "none");
  for (const EventKind kind : recorded.trace->events.kind) {
    EXPECT_NE(kind, EventKind::parameter_update_begin);
  }
}

}  // namespace
}  // namespace stowage
