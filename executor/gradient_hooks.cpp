#include "executor/gradient_hooks.h"

#include <torch/csrc/autograd/function_hook.h>
#include <torch/csrc/autograd/variable.h>

#include <memory>
#include <utility>

namespace stowage::executor {

namespace {

class GradientHook final : public torch::autograd::PostAccumulateGradHook {
 public:
  explicit GradientHook(GradientHooks::Report report) : report_(std::move(report)) {}
  void operator()(const torch::autograd::Variable& parameter) override { report_(parameter); }

 private:
  GradientHooks::Report report_;
};

}  // namespace

void GradientHooks::install(const std::vector<at::Tensor>& parameters, const Report& report) {
  for (const at::Tensor& parameter : parameters) {
    if (torch::autograd::impl::post_acc_grad_hooks(parameter) != nullptr) continue;
    torch::autograd::impl::set_post_acc_grad_hooks(parameter,
                                                   std::make_unique<GradientHook>(report));
    hooked_.push_back(parameter);
  }
}

void GradientHooks::remove() {
  for (const at::Tensor& parameter : hooked_) {
    auto& hook = torch::autograd::impl::post_acc_grad_hooks(parameter);
    if (dynamic_cast<GradientHook*>(hook.get()) == nullptr) continue;  // somebody else's by now
    torch::autograd::impl::set_post_acc_grad_hooks(parameter, nullptr);
  }
  hooked_.clear();
}

}  // namespace stowage::executor
