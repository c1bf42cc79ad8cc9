#include "executor/gradient_hooks.h"

#include <torch/csrc/autograd/function_hook.h>
#include <torch/csrc/autograd/variable.h>

#include <memory>
#include <utility>

namespace stowage::executor {

namespace {

class GradientHook final : public torch::autograd::PostAccumulateGradHook {
 public:
  GradientHook(GradientHooks::Report report,
               std::unique_ptr<torch::autograd::PostAccumulateGradHook> inner)
      : report_(std::move(report)), inner_(std::move(inner)) {}
  void operator()(const torch::autograd::Variable& parameter) override {
    report_(parameter);
    if (inner_ != nullptr) (*inner_)(parameter);
  }
  [[nodiscard]] std::unique_ptr<torch::autograd::PostAccumulateGradHook> take_inner() {
    return std::move(inner_);
  }

 private:
  GradientHooks::Report report_;
  std::unique_ptr<torch::autograd::PostAccumulateGradHook> inner_;
};

}  // namespace

void GradientHooks::install(const std::vector<at::Tensor>& parameters, const Report& report) {
  for (const at::Tensor& parameter : parameters) {
    auto& there = torch::autograd::impl::post_acc_grad_hooks(parameter);
    if (there != nullptr && dynamic_cast<GradientHook*>(there.get()) == nullptr) continue;
    auto inner = std::move(there);
    torch::autograd::impl::set_post_acc_grad_hooks(
        parameter, std::make_unique<GradientHook>(report, std::move(inner)));
    hooked_.push_back(parameter);
  }
}

void GradientHooks::remove() {
  for (const at::Tensor& parameter : hooked_) {
    auto& hook = torch::autograd::impl::post_acc_grad_hooks(parameter);
    auto* const own = dynamic_cast<GradientHook*>(hook.get());
    if (own == nullptr) continue;  // somebody else's by now
    auto inner = own->take_inner();
    torch::autograd::impl::set_post_acc_grad_hooks(parameter, std::move(inner));
  }
  hooked_.clear();
}

}  // namespace stowage::executor
