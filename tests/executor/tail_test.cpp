// A tail that runs in parts gives what it gives at once.
#include "executor/tail.h"

#include <ATen/ATen.h>
#include <ATen/autocast_mode.h>
#include <gtest/gtest.h>

#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "executor/division.h"
#include "executor/layer.h"
#include "tests/executor/model_support.h"

namespace stowage::executor {
namespace {

using Tensors = std::vector<at::Tensor>;

// Sums in another order: fp32 has 2^-24 of relative error an addition, of which a gradient here
// has some hundreds, most of them of either sign.
constexpr double kRelative = 1e-4;
constexpr double kAbsolute = 1e-6;

bool close(const at::Tensor& a, const at::Tensor& b) {
  return at::allclose(a, b, kRelative, kAbsolute);
}

struct DividedCase {
  const char* model;
  const char* segment;
  int parts;
};

class DividedModel : public ::testing::TestWithParam<DividedCase> {};

TEST_P(DividedModel, HasTheGradientsOfTheWholeBatch) {
  const auto [model, segment, parts] = GetParam();
  TrainingStep whole = make_test_step(model);
  TrainingStep divided = make_test_step(model);
  for (std::int64_t k = 0; k < 2; ++k) {
    const double loss = whole.run(k);
    Division division({{segment, parts}});
    const InstalledDriver installed(division);
    EXPECT_NEAR(divided.run(k), loss, 1e-5 * std::abs(loss));
    EXPECT_TRUE(division.unasked().empty());
    const auto expected = whole.gradients();
    const auto gradients = divided.gradients();
    ASSERT_EQ(gradients.size(), expected.size());
    for (std::size_t i = 0; i < gradients.size(); ++i) {
      EXPECT_TRUE(close(gradients[i].tensor, expected[i].tensor)) << gradients[i].name;
    }
  }
}

constexpr const char* kDividedGpt2 = "gpt2:layers=2,width=16,heads=2,seq=8,vocab=23,batch=3";
constexpr const char* kDividedLlama =
    "llama3-8b:layers=1,width=32,heads=4,kv_heads=2,hidden=24,seq=8,vocab=23,batch=2";
constexpr const char* kDividedLlamaLoss =
    "llama3-8b:layers=1,width=32,heads=4,kv_heads=2,hidden=24,seq=8,vocab=23,loss=cross-entropy,"
    "batch=2";

// 24 samples in 7 parts and 5 in 3 are uneven.
INSTANTIATE_TEST_SUITE_P(
    Each, DividedModel,
    ::testing::Values(DividedCase{kDividedGpt2, "head", 2}, DividedCase{kDividedGpt2, "head", 7},
                      DividedCase{kDividedGpt2, "head", 24}, DividedCase{kDividedGpt2, "*", 3},
                      DividedCase{"gpt2:layers=1,width=16,heads=2,seq=8,vocab=23,"
                                  "tied=false,batch=2",
                                  "head", 4},
                      DividedCase{kDividedLlama, "head", 3}, DividedCase{kDividedLlama, "*", 2},
                      DividedCase{kDividedLlamaLoss, "head", 5},
                      DividedCase{"mlp:layers=2,width=16,batch=5", "*", 3},
                      DividedCase{"mlp:layers=2,width=16,loss=cross-entropy,batch=4", "*", 4},
                      DividedCase{"vit:layers=1,width=16,heads=2,image=8,patch=4,classes=5,batch=3",
                                  "*", 3}));

// A linear head over classes, of a trunk with one parameter.
struct Net {
  at::Tensor trunk = at::linspace(-1, 1, 16).view({4, 4}).set_requires_grad(true);
  at::Tensor head = at::linspace(1, -1, 20).view({5, 4}).set_requires_grad(true);
  at::Tensor x = at::linspace(-2, 2, 24).view({6, 4});
  at::Tensor targets = at::arange(6).remainder(5);

  // In `parts`; the loss and both gradients.
  Tensors run(int parts, const std::function<at::Tensor(const Tensors&)>& loss,
              const TailBatch& batch = {}) {
    trunk.mutable_grad().reset();
    head.mutable_grad().reset();
    Division division({{"head", parts}});
    const InstalledDriver installed(division);
    const at::Tensor h = x.matmul(trunk).tanh();
    const BackwardRoot root = tail(
        "head",
        [&](const Tensors& in) {
          return BackwardRoot{loss(in), {}};
        },
        {h, targets}, batch);
    root.tensor.backward(root.gradient);
    return {root.tensor.detach().clone(), trunk.grad().clone(), head.grad().clone()};
  }
};

void expect_close(const Tensors& got, const Tensors& expected) {
  ASSERT_EQ(got.size(), expected.size());
  for (std::size_t i = 0; i < got.size(); ++i) EXPECT_TRUE(close(got[i], expected[i])) << i;
}

TEST(Tail, OfASum) {
  test_device();
  Net net;
  const auto loss = [&](const Tensors& in) {
    return at::cross_entropy_loss(in[0].matmul(net.head.t()), in[1], {}, at::Reduction::Sum);
  };
  const TailBatch batch{.reduction = Reduction::sum};
  expect_close(net.run(4, loss, batch), net.run(1, loss, batch));
}

// Of three parts the first has no target that counts at all.
TEST(Tail, OfTargetsOfWhichSomeAreIgnored) {
  test_device();
  Net net;
  net.targets = at::tensor({-100, -100, 3, 0, 1, 2}, at::kLong);
  const auto mean_of_some = [&](const Tensors& in) {
    const at::Tensor sum = at::cross_entropy_loss(in[0].matmul(net.head.t()), in[1], {},
                                                  at::Reduction::Sum, /*ignore_index=*/-100);
    return sum / in[1].ne(-100).sum().clamp_min(1);
  };
  const TailBatch batch{.weight = [](const Tensors& in) { return in[1].ne(-100).sum(); }};
  const Tensors whole = net.run(1, mean_of_some, batch);
  for (const int parts : {2, 3, 6}) expect_close(net.run(parts, mean_of_some, batch), whole);
  // By how many samples they have it would be another loss.
  EXPECT_FALSE(close(net.run(3, mean_of_some)[0], whole[0]));
}

TEST(Tail, OfClassesWithWeights) {
  test_device();
  Net net;
  const at::Tensor weights = at::tensor({1.0, 0.25, 2.0, 0.5, 3.0}, at::kFloat);
  const auto loss = [&](const Tensors& in) {
    return at::cross_entropy_loss(in[0].matmul(net.head.t()), in[1], weights);
  };
  const TailBatch batch{
      .weight = [&](const Tensors& in) { return weights.index_select(0, in[1]).sum(); }};
  expect_close(net.run(4, loss, batch), net.run(1, loss, batch));
}

TEST(Tail, WithoutADriverOrGradModeRunsAtOnce) {
  test_device();
  int calls = 0;
  const TailFn fn = [&](const Tensors& in) {
    ++calls;
    return BackwardRoot{in[0].sum(), {}};
  };
  const at::Tensor x = at::ones({4, 2}).set_requires_grad(true);
  EXPECT_EQ(tail("head", fn, {x}).tensor.item<double>(), 8);
  Division division({{"head", 2}});
  const InstalledDriver installed(division);
  {
    const at::NoGradGuard no_grad;
    EXPECT_EQ(tail("head", fn, {x}).tensor.item<double>(), 8);
  }
  EXPECT_EQ(calls, 2);
  EXPECT_EQ(tail("other", fn, {x}).tensor.item<double>(), 8);
  EXPECT_EQ(calls, 3);
  (void)tail("head", fn, {x}, {.reduction = Reduction::sum});
  EXPECT_EQ(calls, 5);
}

std::string refusal(const std::function<void()>& body) {
  try {
    body();
  } catch (const c10::Error& error) {
    return error.what_without_backtrace();
  }
  return "";
}

TEST(Tail, BackwardBeginsWithOneAndOnce) {
  test_device();
  Division division({{"head", 2}});
  const InstalledDriver installed(division);
  at::Tensor p = at::ones({4, 2}).set_requires_grad(true);
  const TailFn fn = [](const Tensors& in) { return BackwardRoot{in[0].pow(2).mean(), {}}; };
  BackwardRoot root = tail("head", fn, {p * 3});
  // Whoever scales the loss scales what has accumulated.
  EXPECT_NE(refusal([&] { (root.tensor * 2).backward(); }).find("a gradient of 1"),
            std::string::npos);
  root = tail("head", fn, {p * 3});
  root.tensor.backward({}, /*retain_graph=*/true);  // without root.gradient
  EXPECT_TRUE(close(p.grad(), at::full({4, 2}, 18.0 / 8)));
  EXPECT_NE(refusal([&] { root.tensor.backward(); }).find("for one backward"), std::string::npos);
}

TEST(Tail, BackwardIsNotDifferentiatedAgain) {
  test_device();
  Division division({{"head", 2}});
  const InstalledDriver installed(division);
  const at::Tensor p = at::ones({4, 2}).set_requires_grad(true);
  const BackwardRoot root = tail("head",
                                 [](const Tensors& in) {
                                   return BackwardRoot{in[0].pow(2).mean(), {}};
                                 },
                                 {p * 3});
  EXPECT_NE(refusal([&] {
              root.tensor.backward(root.gradient, /*retain_graph=*/true, /*create_graph=*/true);
            }).find("create_graph"),
            std::string::npos);
}

// 1/3 and 1/7 are no numbers of bf16: shares that were rounded one by one would not add up to 1.
TEST(Tail, SharesAddUpInNarrowTypes) {
  test_device();
  for (const int parts : {3, 7, 21}) {
    Division division({{"head", parts}});
    const InstalledDriver installed(division);
    const at::Tensor p = at::ones({1}, at::kBFloat16).set_requires_grad(true);
    const TailFn fn = [](const Tensors& in) { return BackwardRoot{in[0].mean(), {}}; };
    const BackwardRoot root = tail("head", fn, {p.expand({21}) * 1});
    EXPECT_EQ(root.tensor.scalar_type(), at::kBFloat16);
    EXPECT_EQ(root.tensor.item<float>(), 1) << parts;
    root.tensor.backward(root.gradient);
    EXPECT_NEAR(p.grad().item<float>(), 1, 1.0 / 128) << parts;
  }
}

// Under the caller's autocast a product of backward would be one of bf16, and a cast of a weight
// that it makes would be cached without its history.
TEST(Tail, BackwardRunsOutsideOfAutocast) {
  test_device();
  const at::Tensor head = at::linspace(1, -1, 20).view({5, 4}).set_requires_grad(true);
  const at::Tensor x = at::linspace(-2, 2, 24).view({6, 4});
  // Its products are of fp32, as with autocast(enabled=False) around a loss.
  const TailFn fn = [&](const Tensors& in) {
    at::autocast::set_autocast_enabled(at::kCPU, false);
    const at::Tensor loss = at::matmul(in[0], head.t()).matmul(head).pow(2).mean();
    at::autocast::set_autocast_enabled(at::kCPU, true);
    return BackwardRoot{loss, {}};
  };
  const auto gradient = [&](int parts) {
    head.mutable_grad().reset();
    Division division({{"head", parts}});
    const InstalledDriver installed(division);
    at::autocast::set_autocast_enabled(at::kCPU, true);
    const BackwardRoot root = tail("head", fn, {x});
    EXPECT_TRUE(at::autocast::is_autocast_enabled(at::kCPU)) << "the caller's again";
    at::autocast::set_autocast_enabled(at::kCPU, false);
    at::autocast::clear_cache();
    root.tensor.backward(root.gradient);
    return head.grad().clone();
  };
  EXPECT_TRUE(close(gradient(3), gradient(1)));
}

TEST(Tail, InputsMayLieInOneMemoryAndInNoOrder) {
  test_device();
  const at::Tensor a = at::linspace(-1, 1, 24).view({2, 3, 4}).set_requires_grad(true);
  const TailFn fn = [](const Tensors& in) {
    return BackwardRoot{(in[0] * in[1].exp() + in[2]).pow(2).mean(), {}};
  };
  const auto run = [&](int parts) {
    a.mutable_grad().reset();
    Division division({{"head", parts}});
    const InstalledDriver installed(division);
    const at::Tensor turned = (a * 2).transpose(0, 1);  // [3, 2, 4], not contiguous
    const BackwardRoot root =
        tail("head", fn, {turned, turned, turned.detach()}, {.dimensions = 2});
    root.tensor.backward(root.gradient);
    return Tensors{root.tensor.detach().clone(), a.grad().clone()};
  };
  expect_close(run(4), run(1));
}

TEST(Tail, ThatThrowsInAPartLeavesNothingBehind) {
  test_device();
  Net net;
  int calls = 0;
  const auto loss = [&](const Tensors& in) {
    TORCH_CHECK(++calls != 2, "the second part");
    return at::cross_entropy_loss(in[0].matmul(net.head.t()), in[1]);
  };
  EXPECT_NE(refusal([&] { net.run(3, loss); }).find("the second part"), std::string::npos);
  calls = 10;
  expect_close(net.run(3, loss), net.run(1, loss));
}

TEST(Tail, SeveralOfAStepRunInPartsOneBehindTheOther) {
  test_device();
  at::Tensor p = at::linspace(-1, 1, 8).view({4, 2}).set_requires_grad(true);
  const TailFn fn = [](const Tensors& in) { return BackwardRoot{in[0].sin().mean(), {}}; };
  const auto run = [&](int first, int second) {
    p.mutable_grad().reset();
    Division division({{"a", first}, {"b", second}});
    const InstalledDriver installed(division);
    for (const char* name : {"a", "b"}) {
      const BackwardRoot root = tail(name, fn, {p * (name[0] == 'a' ? 2 : 3)});
      root.tensor.backward(root.gradient);
    }
    return Tensors{p.grad().clone()};
  };
  expect_close(run(2, 4), run(1, 1));
}

TEST(Tail, SaysWhatItCannotDivide) {
  test_device();
  Division division({{"head", 3}, {"tail", 2}});
  const InstalledDriver installed(division);
  const at::Tensor x = at::ones({2, 4}).set_requires_grad(true);
  const TailFn sum = [](const Tensors& in) { return BackwardRoot{in[0].sum(), {}}; };
  EXPECT_NE(
      refusal([&] { (void)tail("head", sum, {x}); }).find("head cannot run in 3 parts: it has 2"),
      std::string::npos);
  EXPECT_NE(refusal([&] {
              (void)tail("tail", sum, {x, at::ones({3})});
            }).find("2 and 3 samples"),
            std::string::npos);
  EXPECT_NE(refusal([&] { (void)tail("tail", sum, {x.sum()}); }).find("1 dimensions of samples"),
            std::string::npos);
  EXPECT_NE(
      refusal([&] {
        (void)tail("tail", [](const Tensors& in) { return BackwardRoot{in[0].exp(), {}}; }, {x});
      }).find("has to be a scalar"),
      std::string::npos);
  const TailFn nested = [&](const Tensors& in) { return tail("head", sum, {in[0]}); };
  EXPECT_NE(refusal([&] { (void)tail("tail", nested, {x}); }).find("lies in another tail"),
            std::string::npos);
  // The failed ones leave nothing behind.
  const BackwardRoot root = tail("tail", sum, {x * 1}, {.reduction = Reduction::sum});
  root.tensor.backward(root.gradient);
  EXPECT_TRUE(close(x.grad(), at::ones({2, 4})));
}

// The largest tensor of the tail is there for one part alone.
TEST(Tail, NeedsMemoryForOnePart) {
  const std::string spec = "gpt2:layers=1,width=8,heads=1,seq=64,vocab=500,batch=2";
  const auto peak = [&](int parts) {
    TrainingStep step = make_test_step(spec);
    Division division({{"head", parts}});
    const InstalledDriver installed(division);
    for (std::int64_t k = 0; k < 2; ++k) {
      test_device().reset_peak();
      step.run(k);
    }
    return test_device().memory().peak_requested;
  };
  constexpr Bytes kLogits = Bytes{2} * 64 * 500 * 4;
  const Bytes whole = peak(1);
  const Bytes divided = peak(8);
  EXPECT_GE(whole - divided, 2 * kLogits) << whole << " and " << divided;
}

}  // namespace
}  // namespace stowage::executor
