#include "executor/backward_thread.h"

#include <ATen/core/Tensor.h>
#include <ATen/core/grad_mode.h>
#include <ATen/ops/addmm.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/zeros.h>
#include <ATen/record_function.h>
#include <c10/core/ScalarType.h>
#include <c10/core/TensorOptions.h>
#include <c10/util/Exception.h>

namespace stowage::executor {
namespace {

void multiply_in_backward(c10::Device device, StepMemory* memory) {
  constexpr std::int64_t kSize = 16;
  const auto options = at::TensorOptions().dtype(at::kFloat).device(device);
  at::Tensor leaf = at::zeros({1}, options);
  leaf.set_requires_grad(true);
  const at::Tensor twice = leaf + leaf;
  twice.register_hook([&](const at::Tensor&) {
    const at::AutoGradMode no_grad(false);
    const StepMemoryGuard guard(memory);
    const at::Tensor a = at::zeros({kSize, kSize}, options);
    static_cast<void>(at::addmm(at::zeros({kSize}, options), a, a));
  });
  twice.backward();
}

}  // namespace

void take_backward_workspace(c10::Device device, StepMemory* memory) {
  if (!device.is_cuda()) return;
  const at::RecordFunctionGuard no_observer(/*is_enabled=*/false);
  const at::AutoGradMode grad(true);
  try {
    multiply_in_backward(device, memory);
  } catch (const c10::OutOfMemoryError&) {
    // The first product that needs it asks for it.
  }
}

}  // namespace stowage::executor
