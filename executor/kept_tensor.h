// KeptTensor: a saved tensor that stays where it is. Saved-tensor hooks switch PyTorch's own check
// for in-place writes off, so it is made here.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>

namespace stowage::executor {

class KeptTensor {
 public:
  KeptTensor() = default;
  // Takes a handle without the graph (a raw one would tie it into a reference cycle), as PyTorch's
  // own saving does: no op runs, the version counter is shared.
  explicit KeptTensor(const at::Tensor& tensor)
      : tensor_(tensor.tensor_data()), version_(version_of(tensor_)) {}

  // Throws c10::Error when the tensor was written in place since it was saved.
  [[nodiscard]] const at::Tensor& get() const;
  [[nodiscard]] std::int64_t version() const { return version_; }

  // Inference tensors do not count versions: 0.
  [[nodiscard]] static std::int64_t version_of(const at::Tensor& tensor) {
    return tensor.is_inference() ? 0 : static_cast<std::int64_t>(tensor._version());
  }

 private:
  at::Tensor tensor_;
  std::int64_t version_ = 0;
};

// Throws the error of a tensor that was modified in place between saving and use. `what` names it.
[[noreturn]] void throw_modified_in_place(const at::Tensor& tensor, std::int64_t expected,
                                          std::int64_t found);

}  // namespace stowage::executor
