// Chains of single ops in steps written by hand: what they run again, and what they refuse.
#include <ATen/Context.h>
#include <ATen/ops/matmul.h>
#include <ATen/ops/sigmoid.h>
#include <ATen/ops/softmax.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "simulator/step/op_spans.h"
#include "tests/profiler_torch/hand_step.h"

namespace stowage {
namespace {

using testing::backward;
using testing::HandStep;

// Where what an op of this name made is saved.
std::vector<std::string> sites_of(const Trace& trace, const std::string& op) {
  const simulator::OpSpans spans(trace);
  std::vector<std::string> sites;
  for (std::size_t s = 0; s < trace.saved.size(); ++s) {
    const StorageId of = trace.saved.storage[s];
    const OpId made_by = spans.primitive(of.valid() ? trace.storages.alloc_op[of.index()] : OpId());
    if (!made_by.valid() || trace.string(trace.ops.name[made_by.index()]) != op) continue;
    sites.push_back(trace.string(trace.saved.site[s]));
  }
  return sites;
}

// What `op` made is made again by ops; a step that differs is refused with these words, the next
// one that does not is right.
void expect_refused(HandStep& step, const std::string& op, bool& differs,
                    const std::string& words) {
  const std::vector<std::string> sites = sites_of(step.trace(), op);
  ASSERT_FALSE(sites.empty());
  const auto plan = step.plan_in({.recompute = {}, .parts = {}, .ops = sites});
  const testing::Outcome reference = step.plain(0);
  differs = true;
  const std::string text = testing::error_of([&] { step.planned(*plan, 0); });
  EXPECT_NE(text.find(words), std::string::npos) << text;
  differs = false;
  testing::expect_same(step.planned(*plan, 0), reference);
}

// The product comes of a composed op and is scaled in place; neither is saved.
TEST(ChainsByHand, RunOpsOfComposedOpsAndWritesInPlace) {
  const at::Tensor p = testing::parameter({2, 8, 4});
  const at::Tensor q = testing::parameter({2, 4, 8});
  HandStep step({p, q}, {}, [&] {
    const at::Tensor scores = at::matmul(p, q).mul_(0.5);
    return backward(at::softmax(scores, -1).pow(2).sum());
  });
  const std::vector<std::string> sites = sites_of(step.trace(), "aten::_softmax");
  ASSERT_FALSE(sites.empty());
  const auto plan = step.plan_in({.recompute = {}, .parts = {}, .ops = sites});
  for (std::int64_t k = 0; k < 3; ++k) {
    const testing::Outcome reference = step.plain(k);
    const testing::Outcome outcome = step.planned(*plan, k);
    EXPECT_EQ(outcome.end_error, "");
    EXPECT_TRUE(outcome.report.on_plan) << outcome.report.first_difference;
    testing::expect_same(outcome, reference);
  }
}

// What a step writes in place that the recorded one did not would be missing when the ops run
// again: a wrong gradient.
TEST(ChainsByHand, WritesThatWereNotRecordedAreRefused) {
  bool writes = false;
  const at::Tensor p = testing::parameter({4, 4});
  HandStep step({p}, {}, [&] {
    const at::Tensor scaled = p * 2;
    if (writes) scaled.detach().mul_(3);
    const at::Tensor made = at::sigmoid(scaled);
    return backward(made.pow(2).sum());
  });
  expect_refused(step, "aten::sigmoid", writes, "is not what the ops that were recorded made");
}

// It would be computed otherwise than in forward.
TEST(ChainsByHand, SettingsOfTheProcessThatChangeBehindForwardAreRefused) {
  const at::Tensor p = testing::parameter({4, 4});
  bool changes = false;
  HandStep step({p}, {}, [&] {
    at::globalContext().setFloat32MatmulPrecision("highest");
    const at::Tensor made = at::sigmoid(p * 2);
    const at::Tensor loss = made.pow(2).sum();
    if (changes) at::globalContext().setFloat32MatmulPrecision("high");
    return backward(loss);
  });
  expect_refused(step, "aten::sigmoid", changes, "were set otherwise behind forward");
}

// Another operand of the same shape where the recorded step read one twice.
TEST(ChainsByHand, AnotherOperandThanRecordedIsRefused) {
  bool other = false;
  const at::Tensor p = testing::parameter({4, 4});
  HandStep step({p}, {}, [&] {
    const at::Tensor x = p * 2;
    const at::Tensor y = p * 3;
    const at::Tensor once = at::sigmoid(x).detach() + x;
    const at::Tensor twice = once + (other ? y : x);
    return backward(at::tanh(twice).pow(2).sum() + x.pow(2).sum() + y.pow(2).sum());
  });
  expect_refused(step, "aten::tanh", other, "is not given what another of the ops");
}

// The tensor itself, between its op and where it is saved next.
TEST(ChainsByHand, WritesIntoWhatIsSavedAreRefused) {
  bool writes = false;
  const at::Tensor p = testing::parameter({4, 4});
  HandStep step({p}, {}, [&] {
    const at::Tensor scaled = p * 2;
    if (writes) scaled.detach().mul_(3);
    return backward(scaled.pow(2).sum());
  });
  expect_refused(step, "aten::mul", writes, "had been written in place, which was not recorded");
}

}  // namespace
}  // namespace stowage
