// Random small steps under random plans: views, in-place ops, shared and dropped storages, layers,
// several backwards, retained graphs and double backward, all of them bitwise and to the byte.
#include <ATen/Functions.h>
#include <gtest/gtest.h>
#include <torch/csrc/autograd/autograd.h>

#include <random>
#include <string>
#include <vector>

#include "executor/layer.h"
#include "tests/profiler_torch/hand_step.h"
#include "tests/support/schedule_parts.h"

namespace stowage {
namespace {

using simulator::Decisions;
using testing::HandStep;
using testing::input;
using testing::parameter;
using testing::styles;

constexpr std::int64_t kSide = 12;

// The same step at each call: everything is drawn anew from the seed.
class RandomStep {
 public:
  explicit RandomStep(unsigned seed) : seed_(seed) {
    for (int i = 0; i < 3; ++i) parameters_.push_back(parameter({kSide, kSide}));
    input_ = input({kSide, kSide});
  }

  double operator()() {
    random_.seed(seed_);
    double loss = 0;
    for (int parts = 1 + below(2); parts-- > 0;) loss += part();
    return loss;
  }

  [[nodiscard]] const std::vector<at::Tensor>& parameters() const { return parameters_; }
  [[nodiscard]] const at::Tensor& data() const { return input_; }

 private:
  int below(int n) { return static_cast<int>(random_() % static_cast<unsigned>(n)); }
  const at::Tensor& any(const std::vector<at::Tensor>& from) {
    return from[static_cast<std::size_t>(below(static_cast<int>(from.size())))];
  }
  const at::Tensor& weight() { return any(parameters_); }

  at::Tensor op(const at::Tensor& x) {
    switch (below(15)) {
      case 0:
        return x * weight();
      case 1:
        return at::mm(x, weight()).mul(0.3);
      case 2:
        return at::linear(x, weight()).tanh();
      case 3:
        return x.sigmoid();
      case 4:
        return at::softmax(x, 1);
      case 5:
        return x.tanh().t();
      case 6:
        return x.clamp(-3, 3).exp_().mul(0.1);
      case 7:
        return (x + 1).relu_();
      case 8:
        return at::cat({x.slice(0, 0, 5).tanh(), x.slice(0, 5, kSide) * 2}, 0);
      case 9:
        return x.select(1, below(kSide)).unsqueeze(1).expand({kSide, kSide}) * x;
      case 10:
        return at::gelu(x).add(x);
      case 11:
        return at::where(x > 0, x, x * 0.1);
      case 12:
        return x.slice(1, 2, 8).repeat({1, 2});
      case 13:
        return x.abs().sqrt().add(0.1).log();
      default:
        return at::layer_norm(x, {kSide});
    }
  }

  at::Tensor block(const std::string& path, const at::Tensor& x) {
    const int ops = 1 + below(3);
    const bool nested = below(3) == 0;
    return layer(path,
                 [&](const auto& in) {
                   at::Tensor y = in[0];
                   for (int i = 0; i < ops; ++i) y = op(y);
                   return nested ? block(path + ".in", y) : y;
                 },
                 {x});
  }

  double part() {
    std::vector<at::Tensor> pool = {input_ * 2};
    for (int i = 2 + below(5); i-- > 0;) {
      const at::Tensor x = any(pool);
      pool.push_back(below(2) == 0 ? op(x) : block("l" + std::to_string(below(3)), x));
      if (below(3) == 0) pool.erase(pool.begin());  // the model lets go of one
      if (pool.empty()) pool.push_back(x);
    }
    at::Tensor loss = (pool.back() * weight()).pow(2).mean();
    if (below(2) == 0) loss = loss + pool.front().mean();
    if (below(2) == 0) pool.clear();
    const int end = below(6);
    if (end == 0) {
      loss.backward({}, /*retain_graph=*/true);
    } else if (end == 1) {
      const auto gradients = torch::autograd::grad({loss}, {weight()}, {}, true, true, true);
      if (gradients[0].defined()) loss = loss + gradients[0].pow(2).sum();
    }
    return testing::backward(loss);
  }

  unsigned seed_;
  std::mt19937 random_;
  std::vector<at::Tensor> parameters_;
  at::Tensor input_;
};

Decisions random_decisions(const HandStep& step, std::mt19937& random) {
  const Trace& trace = step.trace();
  Decisions decisions;
  decisions.saved.resize(trace.saved.size());
  const unsigned density = 30 + static_cast<unsigned>(random() % 71);
  const bool one_style = random() % 2 == 0;
  const auto& one = styles()[random() % styles().size()].decision;
  for (std::size_t s = 0; s < trace.storages.size(); ++s) {
    if (random() % 100 >= density) continue;
    if (!trace.storages.alloc_event[s].valid() && random() % 4 != 0) continue;
    auto decision = one_style ? one : styles()[random() % styles().size()].decision;
    decision.release.lag = static_cast<std::int32_t>(random() % 6);
    for (const SavedId saved : step.index().saved_of(StorageId(s))) {
      decisions.saved[saved.index()] = decision;
    }
  }
  return decisions;
}

TEST(RandomSteps, AreBitwiseAndExactUnderRandomPlans) {
  std::size_t moved = 0;
  for (unsigned seed = 0; seed < 80; ++seed) {
    SCOPED_TRACE("step " + std::to_string(seed));
    RandomStep body(seed);
    HandStep step(body.parameters(), {body.data()}, [&] { return body(); });
    std::mt19937 random(seed);
    for (int i = 0; i < 5; ++i) {
      SCOPED_TRACE("plan " + std::to_string(i));
      const auto lowering = testing::expect_exact(step, random_decisions(step, random));
      moved += testing::offloads_of(lowering.schedule).size();
      if (HasFailure()) return;
    }
  }
  EXPECT_GT(moved, 5U * 80U);
}

}  // namespace
}  // namespace stowage
