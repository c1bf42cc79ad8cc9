// Two losses that share a trunk, each with a backward of its own: the first one keeps the graph for
// the second. And a tail that the user divides by hand: on a detached intermediate, in parts, each
// with its backward, then one backward through the trunk.
#include <ATen/Functions.h>
#include <gtest/gtest.h>

#include <string>
#include <utility>
#include <vector>

#include "executor/layer.h"
#include "simulator/lowering/lowering.h"
#include "simulator/plan/gradient_rules.h"
#include "simulator/replay/replay.h"
#include "simulator/schedule/tenant_kind.h"
#include "simulator/step/unroll.h"
#include "tests/profiler_torch/hand_step.h"
#include "tests/support/or_throw.h"
#include "tests/support/schedule_parts.h"

namespace stowage {
namespace {

using testing::backward;
using testing::HandStep;
using testing::Outcome;

constexpr std::int64_t kWidth = 16;
constexpr std::int64_t kRows = 8;

// layers.0 to layers.3; "aux" looks at what layers.1 returns, "head" at what layers.3 does.
struct Net {
  std::vector<at::Tensor> weights;
  at::Tensor aux = testing::parameter({kWidth, kWidth});
  at::Tensor head = testing::parameter({kWidth, 4 * kWidth});
  at::Tensor x = testing::input({kRows, kWidth});

  Net() {
    for (int i = 0; i < 4; ++i) weights.push_back(testing::parameter({kWidth, kWidth}));
  }
  [[nodiscard]] std::vector<at::Tensor> parameters() const {
    std::vector<at::Tensor> all = weights;
    all.push_back(aux);
    all.push_back(head);
    return all;
  }
  [[nodiscard]] at::Tensor trunk(at::Tensor h, std::size_t begin, std::size_t end) const {
    for (std::size_t i = begin; i < end; ++i) {
      h = layer("layers." + std::to_string(i),
                [this, i](const auto& in) { return at::mm(in[0], weights[i]).tanh().sin(); }, {h});
    }
    return h;
  }
  [[nodiscard]] at::Tensor aux_loss(const at::Tensor& h) const {
    return layer("aux", [this](const auto& in) { return at::mm(in[0], aux).exp().mean(); }, {h});
  }
  [[nodiscard]] at::Tensor head_loss(const at::Tensor& h) const {
    return layer("head", [this](const auto& in) { return at::mm(in[0], head).pow(2).sum(); }, {h});
  }

  // The trunk up to layers.1 gets its gradients in two backwards.
  [[nodiscard]] double two_losses() const {
    const at::Tensor middle = trunk(x * 2, 0, 2);
    const at::Tensor first = aux_loss(middle);
    const at::Tensor second = head_loss(trunk(middle, 2, 4));
    first.backward({}, /*retain_graph=*/true);
    return first.item<double>() + backward(second);
  }
  // The same gradient of the trunk's end, collected from two parts of its rows.
  [[nodiscard]] double tail_in_parts() const {
    const at::Tensor end = trunk(x * 2, 0, 4);
    at::Tensor detached = end.detach().requires_grad_();
    double loss = 0;
    for (std::int64_t part = 0; part < 2; ++part) {
      loss += backward(head_loss(detached.narrow(0, part * kRows / 2, kRows / 2)));
    }
    end.backward(detached.grad());
    return loss;
  }
};

struct Case {
  const char* name;
  double (Net::*step)() const;
};

class TwoLosses : public ::testing::TestWithParam<Case> {
 protected:
  [[nodiscard]] HandStep make_step() {
    return {net_.parameters(), {net_.x}, [this] { return (net_.*GetParam().step)(); }};
  }
  Net net_;
};

TEST_P(TwoLosses, SavedTensorsThatLeaveAreBitwise) {
  HandStep step = make_step();
  testing::expect_exact_in_every_style(step);
}

// Parameters come for each of the backwards; what has accumulated leaves behind the last one.
TEST_P(TwoLosses, ParametersAndGradientsOnTheHostAreBitwise) {
  HandStep step = make_step();
  const Trace& trace = step.trace();
  simulator::Decisions decisions = testing::offload_made(trace, testing::styles().front().decision);
  decisions.parameters.shard_of.assign(trace.storages.size(), -1);
  decisions.parameters.stream = simulator::StreamMode::always;
  std::int32_t shards = 0;
  for (std::size_t s = 0; s < trace.storages.size(); ++s) {
    if (trace.storages.storage_class[s] == StorageClass::parameter) {
      decisions.parameters.shard_of[s] = shards++;
    }
  }
  for (const LayerId layer : simulator::layers_of_gradients(trace)) {
    decisions.gradients.at_home.push_back(layer.valid());
  }
  const auto lowering = step.lower(decisions);
  EXPECT_FALSE(testing::parameters_of(lowering.schedule).empty());
  EXPECT_FALSE(testing::tenants_of(lowering.schedule, simulator::kGradient).empty());
  std::vector<Outcome> references;
  for (std::int64_t k = 0; k < 3; ++k) references.push_back(step.plain(k));
  const auto plan = step.plan(lowering.schedule);
  for (std::int64_t k = 0; k < 3; ++k) {
    testing::change_delays();
    const Outcome outcome = step.planned(*plan, k);
    EXPECT_EQ(outcome.end_error, "");
    EXPECT_TRUE(outcome.report.on_plan) << outcome.report.first_difference;
    testing::expect_same(outcome, references[static_cast<std::size_t>(k)]);
  }
}

// A layer whose saved tensors both backwards ask for runs again once, for the first of them.
TEST_P(TwoLosses, LayersRunAgainBitwise) {
  HandStep step = make_step();
  for (const char* const name : {"layers.0", "layers.1", "layers.2", "layers.3",
                                 "layers.0..layers.1", "layers.2..layers.3"}) {
    SCOPED_TRACE(name);
    const simulator::Structure structure{.recompute = {name}, .parts = {}};
    const auto unrolled = testing::or_throw(simulator::unroll(step.trace(), structure));
    const simulator::StepIndex index(unrolled);
    const auto predicted = simulator::replay(index, simulator::resident_schedule(index));
    const Outcome reference = step.plain(3);
    const auto plan = step.plan_in(structure);
    const Outcome outcome = step.planned(*plan, 3);
    EXPECT_EQ(outcome.end_error, "");
    EXPECT_TRUE(outcome.report.on_plan) << outcome.report.first_difference;
    EXPECT_EQ(outcome.peak, predicted.peak_requested);
    testing::expect_same(outcome, reference);
  }
}

INSTANTIATE_TEST_SUITE_P(Steps, TwoLosses,
                         ::testing::Values(Case{"TwoBackwards", &Net::two_losses},
                                           Case{"TailInParts", &Net::tail_in_parts}),
                         [](const auto& each) { return std::string(each.param.name); });

}  // namespace
}  // namespace stowage
