// GradientHooks: tells somebody whenever autograd has added to a parameter's gradient.
#pragma once

#include <ATen/core/Tensor.h>

#include <functional>
#include <vector>

namespace stowage::executor {

class GradientHooks {
 public:
  // Called on autograd's thread behind each accumulation. What it throws comes out of backward().
  using Report = std::function<void(const at::Tensor& parameter)>;

  GradientHooks() = default;
  ~GradientHooks() { remove(); }
  GradientHooks(const GradientHooks&) = delete;
  GradientHooks& operator=(const GradientHooks&) = delete;

  // Where somebody else has such a hook it stays, and that parameter is not reported; one of
  // another GradientHooks is called behind this one, until this one is removed, which is to be
  // first.
  void install(const std::vector<at::Tensor>& parameters, const Report& report);
  void remove();

 private:
  std::vector<at::Tensor> hooked_;
};

}  // namespace stowage::executor
