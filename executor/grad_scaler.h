// GradScaler: the loss is scaled, so that small gradients do not vanish in fp16; gradients are
// divided by the scale again ahead of the update, which is skipped where one of them overflowed.
// As torch.amp.GradScaler, with its ops.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <string>
#include <vector>

#include "executor/model.h"
#include "traces/result.h"

namespace stowage::executor {

// PyTorch's defaults.
struct GradScalerSpec {
  double init = 65536;
  double growth = 2;     // the scale's factor behind `interval` steps in a row without an overflow
  double backoff = 0.5;  // behind one with an overflow
  std::int64_t interval = 2000;
  bool operator==(const GradScalerSpec&) const = default;
};

// "on", or some of "init=..,growth=..,backoff=..,interval=..". Errors (usage): another option, a
// value that torch.amp.GradScaler refuses or that fp32 does not have.
[[nodiscard]] Result<GradScalerSpec> parse_grad_scaler(const std::string& text);
// All four, as parse_grad_scaler() reads them and a trace has them.
[[nodiscard]] std::string to_string(const GradScalerSpec& spec);

class GradScaler {
 public:
  GradScaler(const GradScalerSpec& spec, c10::Device device);

  // A scalar in fp32 on the device; update() writes it.
  [[nodiscard]] const at::Tensor& scale() const { return scale_; }
  // Divides the gradients by the scale, in place. True: one of them is not finite; the CPU waits
  // for the device to know.
  [[nodiscard]] bool unscale(const std::vector<NamedTensor>& parameters);
  // Behind the step that unscale() was called in: the scale of the next one.
  void update();
  // What it keeps from step to step: "grad_scaler.scale", "grad_scaler.growth_tracker".
  [[nodiscard]] std::vector<NamedTensor> state() const;

 private:
  GradScalerSpec spec_;
  at::Tensor scale_;
  at::Tensor growth_tracker_;  // steps in a row without an overflow
  at::Tensor found_inf_;       // of this step
};

}  // namespace stowage::executor
