// Which ops there are: tests/data/differentiable_ops.txt, which PyTorch's operator database wrote
// (differentiable_ops.py), and those of them that the tables leave out.
#pragma once

#include <ATen/core/Tensor.h>

#include <map>
#include <string>
#include <vector>

namespace stowage::ops {

// Name -> the dtypes that it takes on a CPU, a letter each; empty for none.
[[nodiscard]] const std::map<std::string, std::string>& differentiable_ops();

struct DtypeLetter {
  char letter;
  const char* name;
  at::ScalarType dtype;
};
// As the file names them.
[[nodiscard]] const std::vector<DtypeLetter>& dtype_letters();

// Name -> why it is in no table.
[[nodiscard]] const std::map<std::string, std::string>& left_out_ops();

}  // namespace stowage::ops
