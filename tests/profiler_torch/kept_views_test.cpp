// Views of parameters that stream, kept by somebody whom no hook knows: what reads one while its
// parameter is away is refused ahead of any kernel; who only holds one does no harm.
#include <ATen/Functions.h>
#include <gtest/gtest.h>
#include <torch/csrc/autograd/custom_function.h>

#include <cstring>
#include <string>
#include <vector>

#include "executor/layer.h"
#include "tests/profiler_torch/hand_step.h"
#include "tests/profiler_torch/test_device.h"
#include "tests/support/schedule_parts.h"

namespace stowage {
namespace {

using testing::backward;
using testing::HandStep;
using testing::input;
using testing::parameter;

// x * w', which keeps its view of w where saved-tensor hooks do not see it. Backward reads it by an
// op, or as a kernel of the user's own would: through its address, which no recording sees.
struct KeepsItsWeight : torch::autograd::Function<KeepsItsWeight> {
  static at::Tensor forward(torch::autograd::AutogradContext* ctx, const at::Tensor& x,
                            const at::Tensor& w, bool by_address) {
    ctx->save_for_backward({x});
    ctx->saved_data["w"] = w.detach().t();
    ctx->saved_data["by_address"] = by_address;
    return at::mm(x, w.t());
  }
  static torch::autograd::variable_list backward(torch::autograd::AutogradContext* ctx,
                                                 torch::autograd::variable_list gradients) {
    const at::Tensor x = ctx->get_saved_variables()[0];
    const at::Tensor w = ctx->saved_data["w"].toTensor();
    at::Tensor of_w = at::mm(gradients[0].t(), x);
    if (!ctx->saved_data["by_address"].toBool()) return {at::mm(gradients[0], w.t()), of_w, {}};
    const std::vector<char> bytes = testing::fetch(testing::hand_device(), w.const_data_ptr(), 4);
    float first = 0;
    std::memcpy(&first, bytes.data(), sizeof first);
    return {gradients[0] * first, of_w, {}};
  }
};

// Every parameter streams and is on the device for its uses alone.
simulator::Lowering stream_all(const HandStep& step) {
  simulator::Decisions decisions;
  const Trace& trace = step.trace();
  decisions.saved.resize(trace.saved.size());
  decisions.parameters.shard_of.assign(trace.storages.size(), -1);
  decisions.parameters.stream = simulator::ParameterPlan::Stream::always;
  decisions.parameters.prefetch = 0;
  std::int32_t shards = 0;
  for (std::size_t s = 0; s < trace.storages.size(); ++s) {
    if (trace.storages.storage_class[s] == StorageClass::parameter) {
      decisions.parameters.shard_of[s] = shards++;
    }
  }
  return step.lower(decisions);
}

struct KeepingNet {
  at::Tensor p = parameter({12, 12});
  at::Tensor q = parameter({12, 12});
  at::Tensor x = input({8, 12});
  bool peeks = false;
  HandStep step;

  explicit KeepingNet(bool by_address)
      : step({p, q}, {x}, [this, by_address] {
          at::Tensor hidden =
              layer("first", [&](const auto& in) { return at::linear(in[0], p).tanh(); }, {x * 2});
          hidden = layer(
              "second",
              [&](const auto& in) { return KeepsItsWeight::apply(in[0], q, by_address).tanh(); },
              {hidden});
          const at::Tensor view = p.detach().t();
          const at::Tensor loss = hidden.pow(2).sum();
          if (peeks) static_cast<void>(view.sum());
          return backward(loss);
        }) {}
  KeepingNet(const KeepingNet&) = delete;
  KeepingNet& operator=(const KeepingNet&) = delete;
};

// The read is none that the recording saw, so nothing loads the parameter for it.
TEST(KeptViews, ReadThroughTheirAddressWhileTheParameterIsAwayAreRefused) {
  KeepingNet net(/*by_address=*/true);
  const auto lowering = stream_all(net.step);
  ASSERT_EQ(testing::parameters_of(lowering.schedule).size(), 2U);
  const testing::Outcome reference = net.step.plain(0);
  const auto plan = net.step.plan(lowering.schedule);
  for (int repeat = 0; repeat < 2; ++repeat) {
    const std::string text = testing::error_of([&] { net.step.planned(*plan, 0); });
    EXPECT_NE(text.find("a view of parameter p1 is read"), std::string::npos) << text;
  }
  plan->materialise();
  testing::expect_same(net.step.plain(0), reference);
}

// An op that only this step runs.
TEST(KeptViews, ReadByAnOpThatWasNotRecordedAreRefused) {
  KeepingNet net(/*by_address=*/false);
  const auto lowering = stream_all(net.step);
  const testing::Outcome reference = net.step.plain(0);
  const auto plan = net.step.plan(lowering.schedule);
  net.peeks = true;
  const std::string text = testing::error_of([&] { net.step.planned(*plan, 0); });
  EXPECT_NE(text.find("a view of parameter p0 is read"), std::string::npos) << text;
  net.peeks = false;
  testing::expect_same(net.step.planned(*plan, 0), reference);
}

// Its parameter is loaded for the recorded op that reads it.
TEST(KeptViews, ReadByARecordedOpAreRight) {
  KeepingNet net(/*by_address=*/false);
  const auto lowering = stream_all(net.step);
  ASSERT_EQ(testing::parameters_of(lowering.schedule).size(), 2U);
  std::vector<testing::Outcome> references;
  for (std::int64_t k = 0; k < 3; ++k) references.push_back(net.step.plain(k));
  const auto plan = net.step.plan(lowering.schedule);
  for (std::int64_t k = 0; k < 3; ++k) {
    const testing::Outcome outcome = net.step.planned(*plan, k);
    EXPECT_TRUE(outcome.report.on_plan) << outcome.report.first_difference;
    testing::expect_same(outcome, references[static_cast<std::size_t>(k)]);
  }
}

// A local variable that outlives its last use, and a view that is used in two places.
TEST(KeptViews, ThatNobodyReadsDoNoHarm) {
  const at::Tensor p = parameter({12, 12});
  const at::Tensor q = parameter({12, 12});
  const at::Tensor x = input({8, 12});
  HandStep step({p, q}, {x}, [&] {
    const at::Tensor wp = p.t();
    at::Tensor hidden = x * 2;
    for (int i = 0; i < 3; ++i) hidden = at::mm(hidden, wp).tanh();
    const at::Tensor wq = q.t();
    hidden = layer("second", [&](const auto& in) { return at::mm(in[0], wq).tanh(); }, {hidden});
    return backward(hidden.pow(2).sum());  // both views live until here
  });
  const auto lowering = stream_all(step);
  ASSERT_EQ(testing::parameters_of(lowering.schedule).size(), 2U);
  std::vector<testing::Outcome> references;
  for (std::int64_t k = 0; k < 3; ++k) references.push_back(step.plain(k));
  const auto plan = step.plan(lowering.schedule);
  for (std::int64_t k = 0; k < 3; ++k) {
    SCOPED_TRACE(k);
    const testing::Outcome outcome = step.planned(*plan, k);
    EXPECT_TRUE(outcome.report.on_plan) << outcome.report.first_difference;
    testing::expect_same(outcome, references[static_cast<std::size_t>(k)]);
  }
}

}  // namespace
}  // namespace stowage
