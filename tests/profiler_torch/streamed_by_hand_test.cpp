// Parameters streamed by a schedule that this file writes itself, without lower(): each one is on
// the device for its layer's forward, for its layer's backward and for its update, and nowhere
// else.
#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <tuple>
#include <vector>

#include "executor/planned_step.h"
#include "simulator/lowering/lowering.h"
#include "simulator/schedule/tenant_kind.h"
#include "simulator/step/anchor_kinds.h"
#include "tests/profiler_torch/hand_step.h"
#include "tests/profiler_torch/recorded_model.h"
#include "tests/profiler_torch/test_device.h"

namespace stowage {
namespace {

using simulator::Action;
using simulator::Side;

class ByHand {
 public:
  // `at_gradients`: in backward until its gradient was accumulated, not until its layer's end.
  ByHand(const simulator::StepIndex& index, bool at_gradients)
      : trace_(index.trace()), at_gradients_(at_gradients), schedule_(keep_everything(index)) {
    for (std::size_t s = 0; s < trace_.storages.size(); ++s) {
      if (trace_.storages.storage_class[s] == StorageClass::parameter) add(StorageId(s));
    }
    std::stable_sort(schedule_.instructions.begin(), schedule_.instructions.end(),
                     [](const auto& a, const auto& b) {
                       return std::tuple(a.anchor.event, a.anchor.side) <
                              std::tuple(b.anchor.event, b.anchor.side);
                     });
  }
  [[nodiscard]] const simulator::Schedule& schedule() const { return schedule_; }
  [[nodiscard]] Bytes bytes() const { return bytes_; }
  [[nodiscard]] Bytes loads() const { return loads_; }

 private:
  static simulator::Schedule keep_everything(const simulator::StepIndex& index) {
    simulator::Decisions decisions;
    decisions.saved.resize(index.trace().saved.size());
    auto lowering = simulator::lower(index, decisions);
    EXPECT_TRUE(lowering.ok());
    return lowering->schedule;
  }

  // The first event of this kind with this row.
  EventId find(EventKind kind, std::int32_t ref) const {
    for (std::size_t e = 0; e < trace_.events.size(); ++e) {
      if (trace_.events.kind[e] == kind && trace_.events.ref[e] == ref) return EventId(e);
    }
    return EventId();
  }

  void instruct(Action action, StayId stay, EventId event, Side side) {
    simulator::Instruction instruction;
    instruction.action = action;
    instruction.stay = stay;
    instruction.anchor.kind = *simulator::anchor_kind_of(trace_.events.kind[event.index()]);
    for (std::size_t e = 0; e < event.index(); ++e) {
      instruction.anchor.ordinal +=
          trace_.events.kind[e] == trace_.events.kind[event.index()] ? 1 : 0;
    }
    instruction.anchor.side = side;
    instruction.anchor.event = event;
    schedule_.instructions.push_back(instruction);
  }

  // Ahead of `begin` to behind `end`.
  void stay(TenantId parameter, bool written, EventId begin, EventId end) {
    ASSERT_TRUE(begin.valid() && end.valid());
    const StayId id(schedule_.stays.size());
    simulator::Stay stay;
    stay.tenant = parameter;
    stay.is_stored = written;
    schedule_.stays.push_back(stay);
    loads_ += schedule_.tenants[parameter.index()].bytes;
    instruct(Action::load, id, begin, Side::before);
    instruct(Action::await, id, begin, Side::before);
    if (written) instruct(Action::store, id, end, Side::after);
    instruct(Action::evict, id, end, Side::after);
  }

  void add(StorageId storage) {
    const TenantId parameter(schedule_.tenants.size());
    const Bytes bytes = trace_.storages.bytes[storage.index()];
    schedule_.tenants.push_back(
        {&simulator::kParameter, storage, 0, bytes, schedule_.host_bytes, true, {}});
    schedule_.host_bytes += (bytes + simulator::kHostSlotAlignment - 1) /
                            simulator::kHostSlotAlignment * simulator::kHostSlotAlignment;
    bytes_ += bytes;
    const std::int32_t layer = trace_.storages.layer[storage.index()].value;
    stay(parameter, false, find(EventKind::layer_forward_begin, layer),
         find(EventKind::layer_forward_end, layer));
    EventId update = find(EventKind::parameter_update_begin, storage.value);
    const EventId backward = find(EventKind::layer_backward_begin, layer);
    const EventId backward_end = at_gradients_
                                     ? find(EventKind::gradient_accumulated, storage.value)
                                     : find(EventKind::layer_backward_end, layer);
    if (backward_end.valid()) {
      stay(parameter, false, backward, backward_end);
    } else {
      update = backward;  // the first layer's input needs no gradient: nothing says when it is over
    }
    stay(parameter, true, update, find(EventKind::parameter_update_end, storage.value));
  }

  const Trace& trace_;
  bool at_gradients_;
  simulator::Schedule schedule_;
  Bytes bytes_ = 0;
  Bytes loads_ = 0;
};

using Bits = testing::Bits;

Bits streamed_bits_of(executor::Device& device, const std::vector<executor::NamedTensor>& tensors) {
  Bits bits;
  for (const auto& each : tensors) bits.push_back(testing::fetch(device, each.tensor));
  return bits;
}

class StreamedByHand : public ::testing::TestWithParam<bool> {};

TEST_P(StreamedByHand, IsBitwiseAndGivesUpTheBytes) {
  for (const char* const optimizer : {"sgd", "adamw"}) {
    SCOPED_TRACE(optimizer);
    const std::string spec = "mlp:layers=3,width=24";
    const auto twin = testing::make_session(spec, 8, optimizer);
    testing::RecordedModel recorded = testing::record_model(spec, 8, optimizer);
    executor::Device& device = recorded.session->device();
    const auto copy_all = [&](const auto& to, const auto& from) {
      ASSERT_EQ(to.size(), from.size());
      const Bits bits = streamed_bits_of(device, from);
      for (std::size_t i = 0; i < to.size(); ++i) testing::store(device, to[i].tensor, bits[i]);
    };
    copy_all(twin->step().parameters(), recorded.session->step().parameters());
    copy_all(twin->step().optimizer_state(), recorded.session->step().optimizer_state());

    const simulator::StepIndex index(*recorded.trace);
    const ByHand by_hand(index, GetParam());
    const Bytes before = device.memory().requested;
    auto plan = executor::PlannedStep::create(
        device, recorded.trace, testing::in_test_memory(by_hand.schedule()),
        recorded.session->step().parameters(), {.poison_host = true, .poison_device = true});
    ASSERT_TRUE(plan.ok()) << plan.error().text();
    EXPECT_EQ(device.memory().requested, before - by_hand.bytes());
    for (std::int64_t k = 0; k < 4; ++k) {
      SCOPED_TRACE(k);
      twin->step().prepare(k);
      const double expected = twin->step().step();
      recorded.session->step().prepare(k);
      (*plan)->begin_step();
      const double loss = recorded.session->step().step();
      const auto report = (*plan)->end_step();
      ASSERT_TRUE(report.ok()) << report.error().text();
      EXPECT_TRUE(report->on_plan) << report->first_difference;
      EXPECT_EQ(report->loaded_bytes, by_hand.loads());
      EXPECT_EQ(report->stored_bytes, by_hand.bytes());
      EXPECT_EQ(report->unplanned_stored_bytes, 0);
      EXPECT_EQ(device.memory().requested, before - by_hand.bytes());
      EXPECT_EQ(loss, expected);
      EXPECT_TRUE(streamed_bits_of(device, recorded.session->step().gradients()) ==
                  streamed_bits_of(device, twin->step().gradients()));
      EXPECT_TRUE(streamed_bits_of(device, (*plan)->values()) ==
                  streamed_bits_of(device, twin->step().parameters()));
    }
    plan->reset();
    EXPECT_EQ(device.memory().requested, before);
    EXPECT_TRUE(streamed_bits_of(device, recorded.session->step().parameters()) ==
                streamed_bits_of(device, twin->step().parameters()));
  }
}

INSTANTIATE_TEST_SUITE_P(Each, StreamedByHand, ::testing::Bool(), [](const auto& each) {
  return each.param ? "UntilTheGradient" : "UntilTheLayersEnd";
});

TEST(StreamingByHand, NeedsTheParametersWhereItActsAtGradients) {
  testing::RecordedModel recorded = testing::record_model("mlp:layers=3,width=24", 8, "sgd");
  const simulator::StepIndex index(*recorded.trace);
  simulator::Schedule schedule = ByHand(index, /*at_gradients=*/true).schedule();
  const auto plan = executor::PlannedStep::create(recorded.session->device(), recorded.trace,
                                                  testing::in_test_memory(schedule), {});
  ASSERT_FALSE(plan.ok());
  EXPECT_NE(plan.error().message.find("where gradients are accumulated"), std::string::npos)
      << plan.error().text();
}

}  // namespace
}  // namespace stowage
