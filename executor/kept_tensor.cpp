#include "executor/kept_tensor.h"

#include <c10/util/Exception.h>

namespace stowage::executor {

const at::Tensor& KeptTensor::get() const {
  const std::int64_t now = version_of(tensor_);
  if (now != version_) throw_modified_in_place(tensor_, version_, now);
  return tensor_;
}

void throw_modified_in_place(const at::Tensor& tensor, std::int64_t expected, std::int64_t found) {
  TORCH_CHECK(false,
              "one of the variables needed for gradient computation has been modified by an "
              "inplace operation: [",
              tensor.toString(), " ", tensor.sizes(), "] is at version ", found,
              "; expected version ", expected, " instead");
}

}  // namespace stowage::executor
