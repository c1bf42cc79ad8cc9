#include "tests/ops/op_step.h"

#include <ATen/Context.h>
#include <ATen/Functions.h>
#include <ATen/core/Generator.h>
#include <c10/util/Exception.h>
#include <gtest/gtest.h>
#include <torch/csrc/autograd/autograd.h>
#include <torch/csrc/autograd/custom_function.h>

#include <algorithm>
#include <exception>
#include <utility>

#include "executor/layer.h"
#include "tests/profiler_torch/hand_step.h"

namespace stowage::ops {

namespace {

// The sum of all elements, real and imaginary, and a gradient that is another one for each. Saves
// nothing, so that the result lives as long as the op's own backward needs it.
struct Weigh : torch::autograd::Function<Weigh> {
  static T forward(torch::autograd::AutogradContext* ctx, const T& tensor) {
    ctx->saved_data["sizes"] = tensor.sizes().vec();
    ctx->saved_data["dtype"] = static_cast<std::int64_t>(tensor.scalar_type());
    const T plain = tensor.resolve_conj().resolve_neg();
    return at::sum(plain.is_complex() ? at::view_as_real(plain) : plain, at::kDouble);
  }

  static torch::autograd::variable_list backward(torch::autograd::AutogradContext* ctx,
                                                 torch::autograd::variable_list gradients) {
    const auto sizes = ctx->saved_data["sizes"].toIntVector();
    const auto dtype = static_cast<at::ScalarType>(ctx->saved_data["dtype"].toInt());
    const std::int64_t numel = c10::multiply_integers(sizes);
    const T waves = at::arange(numel, gradients[0].options()).mul_(0.7).cos_().reshape(sizes);
    return {at::isComplexType(dtype) ? at::complex(waves, waves.neg()).to(dtype) : waves.to(dtype)};
  }
};

T new_parameter(const Shape& shape, at::ScalarType dtype) {
  T drawn = testing::input(shape, at::kDouble);
  if (at::isComplexType(dtype)) drawn = at::complex(drawn, testing::input(shape, at::kDouble));
  return drawn.to(dtype).detach().requires_grad_();
}

void seed_all() {
  at::Generator generator =
      at::globalContext().defaultGenerator(testing::hand_device().torch_device());
  generator.set_current_seed(1);
}

}  // namespace

T integers(const T& like, const std::vector<std::int64_t>& values) {
  return at::tensor(values, like.options().dtype(at::kLong));
}

T numbers(const T& like, Shape shape, std::int64_t below) {
  const std::int64_t count = c10::multiply_integers(shape);
  const auto options = like.options().dtype(at::kLong);
  return at::arange(count, options).mul_(7).add_(1).remainder_(below).reshape(shape);
}

T mask(const T& like, at::IntArrayRef shape) {
  return numbers(like, shape.vec(), 11) < 4;
}

OpStep::OpStep(const Op& op, const std::string& dtypes, Derivative derivative)
    : op_(op), derivative_(derivative) {
  static_cast<void>(testing::hand_device());
  // Some are deterministic on one thread, but do not know it.
  at::globalContext().setDeterministicAlgorithms(true, /*warn_only=*/true);
  for (const DtypeLetter& dtype : dtype_letters()) {
    if (dtypes.find(dtype.letter) == std::string::npos) continue;
    for (const OpLayout& layout : op_layouts()) {
      const bool fits =
          std::any_of(op.operands.begin(), op.operands.end(),
                      [&](const Operand& each) { return layout.fits(each.shape, dtype.dtype); });
      if (!fits || layout.name == op.crashing_layout) continue;
      Combination combination = combine(layout, dtype, false);
      bool runs = try_alone(combination);
      if (!runs && layout.tries_first_alone && op.operands.size() > 1) {
        combination = combine(layout, dtype, true);
        runs = try_alone(combination);
      }
      if (!runs) continue;
      refused_.erase(combination.name);
      combinations_.push_back(std::move(combination));
    }
  }
  runs_.clear();
}

OpStep::Combination OpStep::combine(const OpLayout& layout, const DtypeLetter& dtype,
                                    bool first_alone) const {
  Combination combination{layout.name + "." + dtype.name, {}};
  for (const Operand& each : op_.operands) {
    const bool takes_part =
        layout.fits(each.shape, dtype.dtype) && !(first_alone && !combination.leaves.empty());
    const OpLayout* const chosen = takes_part ? &layout : &op_layouts().front();
    combination.leaves.push_back(
        {new_parameter(chosen->leaf(each.shape), dtype.dtype), chosen, each});
  }
  return combination;
}

bool OpStep::try_alone(const Combination& combination) {
  Observations first;
  try {
    first = run_alone(combination);
  } catch (const std::exception& error) {
    refused_[combination.name] = error.what();
    const bool must_run =
        derivative_ == Derivative::first && combination.name.starts_with("contiguous.");
    EXPECT_FALSE(must_run) << error.what();
    return false;
  }
  EXPECT_TRUE(run_alone(combination) == first) << combination.name << " does not repeat itself";
  return true;
}

Observations OpStep::run_alone(const Combination& combination) {
  seed_all();
  for (const Leaf& leaf : combination.leaves) leaf.parameter.mutable_grad().reset();
  runs_.emplace_back();
  loss_of(combination).backward();
  observe_gradients(combination);
  for (const Leaf& leaf : combination.leaves) leaf.parameter.mutable_grad().reset();
  return runs_.back();
}

std::vector<std::string> OpStep::names() const {
  std::vector<std::string> all;
  for (const Combination& each : combinations_) all.push_back(each.name);
  return all;
}

std::vector<at::Tensor> OpStep::parameters() const {
  std::vector<at::Tensor> all;
  for (const Combination& combination : combinations_) {
    for (const Leaf& leaf : combination.leaves) all.push_back(leaf.parameter);
  }
  return all;
}

void OpStep::observe(const std::string& what, const at::Tensor& tensor) {
  runs_.back().push_back({what, testing::look_at(tensor)});
}

at::Tensor OpStep::forward(const Combination& combination) {
  Tensors operands;
  for (const Leaf& leaf : combination.leaves) {
    const T made = leaf.parameter.mul(leaf.operand.domain.scale).add(leaf.operand.domain.shift);
    operands.push_back(leaf.layout->operand(made, leaf.operand.shape));
  }
  const LayerFn run_op = [&](const Tensors& in) {
    for (std::size_t i = 0; i < in.size(); ++i) {
      in[i].register_hook([this, name = combination.name, i](const T& gradient) {
        observe(name + ", gradient of operand " + std::to_string(i), gradient);
      });
    }
    return op_.call(in);
  };
  Tensors results = layer(combination.name, run_op, std::move(operands));
  T loss;
  for (std::size_t i = 0; i < results.size(); ++i) {
    if (!results[i].defined()) continue;
    observe(combination.name + ", result " + std::to_string(i), results[i]);
    if (!results[i].requires_grad()) continue;
    const T part = Weigh::apply(std::exchange(results[i], T()));
    loss = loss.defined() ? loss + part : part;
  }
  TORCH_INTERNAL_ASSERT(loss.defined(), op_.name, " has no result that needs a gradient");
  return loss;
}

at::Tensor OpStep::gradients_of(const at::Tensor& loss, const Combination& combination) {
  Tensors parameters;
  for (const Leaf& leaf : combination.leaves) parameters.push_back(leaf.parameter);
  const Tensors gradients =
      torch::autograd::grad({loss}, parameters, {}, /*retain_graph=*/true, /*create_graph=*/true,
                            /*allow_unused=*/true);
  T sum;
  for (const T& gradient : gradients) {
    if (!gradient.defined() || !gradient.requires_grad()) continue;
    const T part = Weigh::apply(gradient);
    sum = sum.defined() ? sum + part : part;
  }
  TORCH_CHECK(sum.defined(), "it has no second derivative");
  return sum;
}

at::Tensor OpStep::loss_of(const Combination& combination) {
  const T loss = forward(combination);
  return derivative_ == Derivative::first ? loss : loss + gradients_of(loss, combination);
}

void OpStep::observe_gradients(const Combination& combination) {
  for (std::size_t i = 0; i < combination.leaves.size(); ++i) {
    const T& gradient = combination.leaves[i].parameter.grad();
    if (!gradient.defined()) continue;
    observe(combination.name + ", gradient of parameter " + std::to_string(i), gradient);
  }
}

double OpStep::run() {
  runs_.emplace_back();
  T loss;
  for (const Combination& combination : combinations_) {
    const T part = loss_of(combination);
    loss = loss.defined() ? loss + part : part;
  }
  const double value = testing::backward(loss);
  for (const Combination& combination : combinations_) observe_gradients(combination);
  return value;
}

std::vector<Observations> OpStep::take_runs() {
  return std::exchange(runs_, {});
}

}  // namespace stowage::ops
