// OneTensor: one of PyTorch's optimizers, of one tensor (a parameter or its master), with state
// that may be made ahead of its first step. The same ops in the same order as one for all.
//
// What differs between these optimizers is a Kind: Torch, Options, the names of the state's pieces,
// and how they begin.
#pragma once

#include <ATen/core/Tensor.h>
#include <ATen/ops/full_like.h>
#include <ATen/ops/zeros_like.h>
#include <c10/util/Exception.h>
#include <torch/optim/adam.h>
#include <torch/optim/adamw.h>
#include <torch/optim/sgd.h>

#include <cstddef>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "executor/unmade_state.h"

namespace stowage::executor {

using TensorList = std::vector<at::Tensor>;
using TorchState = std::unique_ptr<torch::optim::OptimizerParamState>;

// Moments that begin with zeros, and a count of steps.
template <class TorchType, class OptionsType, class ParamState>
struct AdamLike {
  using Torch = TorchType;
  using Options = OptionsType;
  static constexpr double kBegin = 0;
  static constexpr bool kIsMadeAhead = false;  // PyTorch's own making is the same
  static at::Tensor begin_like(const at::Tensor& tensor) { return at::zeros_like(tensor); }
  static std::vector<const char*> names(const Options&) { return {"exp_avg", "exp_avg_sq"}; }
  static TensorList pieces(const torch::optim::OptimizerParamState& state) {
    const auto& own = static_cast<const ParamState&>(state);
    return {own.exp_avg(), own.exp_avg_sq()};
  }
  static TorchState state_of(TensorList pieces) {
    auto state = std::make_unique<ParamState>();
    state->step(0);
    state->exp_avg(std::move(pieces[0]));
    state->exp_avg_sq(std::move(pieces[1]));
    return state;
  }
  static void take_count(const torch::optim::OptimizerParamState& from,
                         torch::optim::OptimizerParamState& to) {
    static_cast<ParamState&>(to).step(static_cast<const ParamState&>(from).step());
  }
  static void count(torch::optim::OptimizerParamState& state) {
    auto& own = static_cast<ParamState&>(state);
    own.step(own.step() + 1);
  }
  static Options in_first_step(Options options) { return options; }
};
using AdamKind =
    AdamLike<torch::optim::Adam, torch::optim::AdamOptions, torch::optim::AdamParamState>;
using AdamWKind =
    AdamLike<torch::optim::AdamW, torch::optim::AdamWOptions, torch::optim::AdamWParamState>;

// With momentum a buffer, which PyTorch makes of the first gradient. One of negative zeros is that
// bit by bit behind a first step without dampening: -0 + 0 = 0 and -0 + -0 = -0. It is always made
// ahead of that step, so that it comes ahead of temporaries of its size, wherever it is from.
struct SgdKind {
  using Torch = torch::optim::SGD;
  using Options = torch::optim::SGDOptions;
  static constexpr double kBegin = -0.0;
  static constexpr bool kIsMadeAhead = true;
  static at::Tensor begin_like(const at::Tensor& tensor) { return at::full_like(tensor, kBegin); }
  static std::vector<const char*> names(const Options& options) {
    if (options.momentum() == 0) return {};
    return {"momentum_buffer"};
  }
  static TensorList pieces(const torch::optim::OptimizerParamState& state) {
    return {static_cast<const torch::optim::SGDParamState&>(state).momentum_buffer()};
  }
  static TorchState state_of(TensorList pieces) {
    auto state = std::make_unique<torch::optim::SGDParamState>();
    state->momentum_buffer(std::move(pieces[0]));
    return state;
  }
  static void take_count(const torch::optim::OptimizerParamState& /*from*/,
                         torch::optim::OptimizerParamState& /*to*/) {}
  static void count(torch::optim::OptimizerParamState& /*state*/) {}
  static Options in_first_step(Options options) { return options.dampening(0); }
};

template <class Kind>
class OneTensor {
 public:
  using Options = typename Kind::Options;

  OneTensor(at::Tensor tensor, const Options& options)
      : tensor_(std::move(tensor)),
        torch_(std::make_unique<typename Kind::Torch>(TensorList{tensor_}, options)),
        has_state_(!Kind::names(options).empty()) {}

  // Empty where there is none (yet).
  [[nodiscard]] TensorList state() const {
    const auto found = torch_->state().find(key());
    return found == torch_->state().end() ? TensorList{} : Kind::pieces(*found->second);
  }
  // Precondition: there is none. In the order of the kind's names.
  void take_state(TensorList pieces) {
    if (has_state_) torch_->state()[key()] = Kind::state_of(std::move(pieces));
  }
  // As the first step would, where no step and no plan has.
  void give_memory() {
    for (at::Tensor piece : state()) {
      if (!is_unmade(piece)) continue;
      executor::give_memory(piece);
      piece.fill_(Kind::kBegin);
    }
  }
  // As a first step makes it of this tensor.
  void make_state() {
    TensorList pieces;
    for (std::size_t i = 0; i < Kind::names(options()).size(); ++i) {
      pieces.push_back(Kind::begin_like(tensor_));
    }
    take_state(std::move(pieces));
  }
  // PyTorch's step, with the tensor's gradient.
  void step(const Options& options) {
    if (Kind::kIsMadeAhead && state().empty()) make_state();
    give_memory();
    this->options() = now(options);
    torch_->step();
    is_first_ = false;
  }
  // The same on a part of it, on the host, but that this step is not counted yet. Precondition:
  // there is state, where the kind has some.
  void step_on_host(const Options& options, at::Tensor weights, const at::Tensor& gradient,
                    TensorList pieces) const {
    typename Kind::Torch twin({weights}, now(options));
    if (has_state_) {
      TorchState state = Kind::state_of(std::move(pieces));
      Kind::take_count(own_state(), *state);
      twin.state()[weights.unsafeGetTensorImpl()] = std::move(state);
    }
    weights.mutable_grad() = gradient;
    twin.step();
    weights.mutable_grad().reset();
  }
  // Behind all parts.
  void count_step() {
    if (has_state_) Kind::count(own_state());
    is_first_ = false;
  }

 private:
  [[nodiscard]] torch::optim::OptimizerParamState& own_state() const {
    const auto found = torch_->state().find(key());
    TORCH_CHECK(found != torch_->state().end(), "stowage: the optimizer has no state yet");
    return *found->second;
  }
  [[nodiscard]] void* key() const { return tensor_.unsafeGetTensorImpl(); }
  [[nodiscard]] Options& options() {
    return static_cast<Options&>(torch_->param_groups().front().options());
  }
  [[nodiscard]] Options now(const Options& options) const {
    return is_first_ ? Kind::in_first_step(options) : options;
  }

  at::Tensor tensor_;
  std::unique_ptr<typename Kind::Torch> torch_;
  bool has_state_;
  bool is_first_ = true;
};

}  // namespace stowage::executor
