// How saved tensors are used in backward: as views that live on, twice, never, out of a cycle; in
// recorded steps, and as a surprise to the plan.
#include <ATen/Functions.h>
#include <gtest/gtest.h>
#include <torch/csrc/autograd/autograd.h>
#include <torch/csrc/autograd/custom_function.h>

#include <string>
#include <vector>

#include "tests/profiler_torch/hand_step.h"
#include "tests/support/schedule_parts.h"

namespace stowage {
namespace {

using executor::OffPlan;
using testing::backward;
using testing::error_of;
using testing::expect_same;
using testing::hand_device;
using testing::HandStep;
using testing::offload_made;
using testing::Outcome;
using testing::parameter;
using testing::styles;
using torch::autograd::AutogradContext;
using torch::autograd::variable_list;

// Its gradient is a view of the tensor that it saved.
struct GradientIsSaved : torch::autograd::Function<GradientIsSaved> {
  static at::Tensor forward(AutogradContext* ctx, const at::Tensor& x) {
    const at::Tensor saved = x.mul(5);
    ctx->save_for_backward({saved});
    return x.sum();
  }
  static variable_list backward(AutogradContext* ctx, const variable_list&) {
    return {ctx->get_saved_variables()[0].t()};
  }
};

// Writes into the tensor that it gets back.
struct WritesSaved : torch::autograd::Function<WritesSaved> {
  static bool write;
  static at::Tensor forward(AutogradContext* ctx, const at::Tensor& x, const at::Tensor& y) {
    ctx->save_for_backward({y});
    return x.mul(y);
  }
  static variable_list backward(AutogradContext* ctx, const variable_list& gradients) {
    const at::Tensor y = ctx->get_saved_variables()[0];
    const at::Tensor result = gradients[0].mul(y);
    if (write) y.mul_(2);
    return {result, at::Tensor()};
  }
};
bool WritesSaved::write = false;

TEST(BackwardReturnsAView, OfTheUnpackedTensorThatDiesInBackward) {
  const at::Tensor p = parameter({16, 16});
  HandStep step({p}, {}, [&] { return backward(GradientIsSaved::apply(p * 2)); });
  testing::expect_exact_in_every_style(step);
}

// The parameter's gradient itself is a view of the reload buffer, and outlives the step.
TEST(BackwardReturnsAView, OfTheUnpackedTensorThatOutlivesTheStep) {
  const at::Tensor p = parameter({16, 16});
  HandStep step({p}, {}, [&] { return backward(GradientIsSaved::apply(p)); });
  testing::expect_exact_in_every_style(step);
}

double twice(const at::Tensor& p, const at::Tensor& q) {
  const at::Tensor made = p * 2;
  const at::Tensor loss = (made.exp() * q).pow(2).sum();
  loss.backward({}, /*retain_graph=*/true);
  return backward(loss);
}

double once(const at::Tensor& p, const at::Tensor& q) {
  const at::Tensor made = p * 2;
  return backward((made.exp() * q).pow(2).sum());
}

double gradient_of_gradient(const at::Tensor& p, const at::Tensor& q) {
  const at::Tensor made = p * 2;
  const at::Tensor loss = (made.exp() * q).pow(2).sum();
  const variable_list gradients =
      torch::autograd::grad({loss}, {p, q}, {}, /*retain_graph=*/true, /*create_graph=*/true);
  return backward(loss + gradients[0].pow(2).sum() + gradients[1].sum());
}

TEST(UnpackTwice, RetainedGraphIsBitwiseWhenRecorded) {
  const at::Tensor p = parameter({16, 16});
  const at::Tensor q = parameter({16, 16});
  HandStep step({p, q}, {}, [&] { return twice(p, q); });
  EXPECT_EQ(step.trace().unpacks.size(), 2 * step.trace().saved.size());
  testing::expect_exact_in_every_style(step);
}

TEST(UnpackTwice, DoubleBackwardIsBitwiseWhenRecorded) {
  const at::Tensor p = parameter({16, 16});
  const at::Tensor q = parameter({16, 16});
  HandStep step({p, q}, {}, [&] { return gradient_of_gradient(p, q); });
  testing::expect_exact_in_every_style(step);
}

// Views that are saved again in backward, at another place of the storage than its first byte.
TEST(UnpackTwice, DoubleBackwardThroughViewsIsBitwiseWhenRecorded) {
  const at::Tensor p = parameter({32, 16});
  const at::Tensor q = parameter({8, 16});
  HandStep step({p, q}, {}, [&] {
    const at::Tensor made = (p * 2).slice(0, 20, 28);
    const at::Tensor loss = (made * q).exp().sum();
    const variable_list gradients = torch::autograd::grad({loss}, {p, q}, {}, true, true);
    return backward(loss + gradients[0].pow(2).sum() + gradients[1].sum());
  });
  testing::expect_exact_in_every_style(step);
}

TEST(UnpackTwice, DoubleBackwardThroughAViewWithoutElementsIsBitwiseWhenRecorded) {
  const at::Tensor p = parameter({32, 16});
  const at::Tensor q = parameter({8, 16});
  HandStep step({p, q}, {}, [&] {
    const at::Tensor made = (p * 2).slice(0, 20, 20);
    const at::Tensor loss = (made * q.slice(0, 3, 3)).exp().sum() + p.exp().sum();
    const variable_list gradients = torch::autograd::grad({loss}, {p, q}, {}, true, true);
    return backward(loss + gradients[0].pow(2).sum() + gradients[1].sum());
  });
  testing::expect_exact_in_every_style(step);
}

// A step that was recorded as `once` and then does something else.
class Surprise : public ::testing::TestWithParam<double (*)(const at::Tensor&, const at::Tensor&)> {
};

TEST_P(Surprise, IsRefusedOrRunsWithRightGradients) {
  const at::Tensor p = parameter({16, 16});
  const at::Tensor q = parameter({16, 16});
  bool surprise = false;
  HandStep step({p, q}, {}, [&] { return surprise ? GetParam()(p, q) : once(p, q); });
  for (const testing::Style& style : styles()) {
    SCOPED_TRACE(style.name);
    const auto lowering = step.lower(offload_made(step.trace(), style.decision));
    const auto strict = step.plan(lowering.schedule);
    const auto lenient = step.plan(lowering.schedule, OffPlan::offload_all, /*poison_host=*/false);
    for (std::int64_t k = 0; k < 3; ++k) {
      surprise = k == 1;
      const Outcome reference = step.plain(k);
      if (surprise) {
        EXPECT_THROW(step.planned(*strict, k), c10::Error);
        EXPECT_LE(hand_device().memory().requested, reference.end);
      } else {
        expect_same(step.planned(*strict, k), reference);
      }
      const Outcome outcome = step.planned(*lenient, k);
      expect_same(outcome, reference);
      EXPECT_EQ(outcome.report.on_plan, !surprise);
      EXPECT_EQ(outcome.report.first_difference.empty(), !surprise);
      EXPECT_EQ(outcome.end_error, "");
      EXPECT_EQ(outcome.end, reference.end);
    }
  }
}

INSTANTIATE_TEST_SUITE_P(All, Surprise, ::testing::Values(&twice, &gradient_of_gradient),
                         [](const auto& each) {
                           return each.index == 0 ? "RetainedGraph" : "DoubleBackward";
                         });

// With poisoned slots a surprising second use is an error, never poison.
TEST(UnpackTwice, OfAPoisonedSlotIsAnError) {
  const at::Tensor p = parameter({16, 16});
  const at::Tensor q = parameter({16, 16});
  bool surprise = false;
  HandStep step({p, q}, {}, [&] { return surprise ? twice(p, q) : once(p, q); });
  const auto lowering = step.lower(offload_made(step.trace(), styles()[1].decision));
  const auto plan = step.plan(lowering.schedule, OffPlan::offload_all);
  surprise = true;
  const std::string text = error_of([&] { step.planned(*plan, 0); });
  EXPECT_NE(text.find("host slot"), std::string::npos) << text;
}

// Without poison, too: the slot holds another tensor's bytes by then.
TEST(UnpackTwice, OfASlotThatWasGivenToAnotherIsAnError) {
  const at::Tensor p = parameter({16, 16});
  bool surprise = false;
  HandStep step({p}, {}, [&] {
    const at::Tensor first = (p * 2).exp().sum();
    first.backward({}, /*retain_graph=*/true);
    const at::Tensor second = (p * 3).exp().sum();
    if (surprise) first.backward();
    return backward(second);
  });
  const auto lowering = step.lower(offload_made(step.trace(), styles()[1].decision));
  const auto plan = step.plan(lowering.schedule, OffPlan::offload_all, /*poison_host=*/false);
  surprise = true;
  const std::string text = error_of([&] { step.planned(*plan, 0); });
  EXPECT_NE(text.find("already given to another"), std::string::npos) << text;
}

// Backward that writes into what it unpacked: the next use of the same bytes must not see it.
TEST(UnpackTwice, AfterAWriteIntoTheUnpackedTensorIsAnError) {
  const at::Tensor p = parameter({16, 16});
  const at::Tensor q = parameter({16, 16});
  HandStep step({p}, {}, [&] {
    const at::Tensor loss = WritesSaved::apply(p, q.detach() * 2).sum();
    loss.backward({}, /*retain_graph=*/true);
    return backward(loss);
  });
  for (const testing::Style& style : styles()) {
    SCOPED_TRACE(style.name);
    const auto lowering = step.lower(offload_made(step.trace(), style.decision));
    const auto plan = step.plan(lowering.schedule);
    WritesSaved::write = false;
    const Outcome reference = step.plain(0);
    expect_same(step.planned(*plan, 0), reference);
    WritesSaved::write = true;
    if (style.decision.share) {
      EXPECT_THROW(step.planned(*plan, 0), c10::Error);
    } else {
      expect_same(step.planned(*plan, 0), reference);  // each unpack has its own bytes
    }
    WritesSaved::write = false;
    expect_same(step.planned(*plan, 0), reference);
  }
  // Nothing moves: PyTorch's own rule, kept by the hooks.
  const auto resident = step.plan(step.lower(offload_made(step.trace(), {})).schedule);
  WritesSaved::write = true;
  EXPECT_THROW(step.planned(*resident, 0), c10::Error);
  WritesSaved::write = false;
}

TEST(NeverUnpacked, SavedTensorLeavesAndIsDropped) {
  const at::Tensor p = parameter({64, 64});
  const at::Tensor q = parameter({64, 64});
  HandStep step({p, q}, {}, [&] {
    const at::Tensor unused = ((p * 2) * q).exp();  // no way from the loss to it
    return backward((p * q).pow(2).sum());
  });
  EXPECT_LT(step.trace().unpacks.size(), step.trace().saved.size());
  testing::expect_exact_in_every_style(step);
  const auto lowering = step.lower(offload_made(step.trace(), styles().front().decision));
  EXPECT_LT(testing::reloads_of(lowering.schedule).size(),
            testing::offloads_of(lowering.schedule).size());
}

// Ops that save their own result would hold themselves if the hook stored it as it comes.
TEST(ReferenceCycle, OfSavedResultsIsFreedAfterTheStep) {
  const at::Tensor p = parameter({32, 32});
  const std::vector<std::function<at::Tensor(const at::Tensor&)>> ops = {
      [](const at::Tensor& x) { return x.exp(); },
      [](const at::Tensor& x) { return x.sigmoid(); },
      [](const at::Tensor& x) { return at::softmax(x, 1); },
      [](const at::Tensor& x) { return at::log_softmax(x, 0); },
      [](const at::Tensor& x) { return x.exp().sqrt().tanh(); },
  };
  for (std::size_t i = 0; i < ops.size(); ++i) {
    SCOPED_TRACE(i);
    HandStep step({p}, {}, [&] { return backward((ops[i](p * 2) * 3).sum()); });
    const Bytes begin = step.plain(0).end;
    testing::expect_exact_in_every_style(step);
    EXPECT_EQ(hand_device().memory().requested, begin);
    // Also when the graph dies without a backward.
    bool drop = false;
    HandStep dropped({p}, {}, [&] {
      const at::Tensor loss = (ops[i](p * 2) * 3).sum();
      return drop ? 0.0 : backward(loss);
    });
    const auto plan = dropped.plan(
        dropped.lower(offload_made(dropped.trace(), styles().front().decision)).schedule);
    drop = true;
    const Outcome outcome = dropped.planned(*plan, 0);
    EXPECT_NE(outcome.end_error, "");
    EXPECT_EQ(outcome.end, begin - static_cast<Bytes>(p.nbytes()));  // no gradient
    p.mutable_grad().reset();
  }
}

}  // namespace
}  // namespace stowage
