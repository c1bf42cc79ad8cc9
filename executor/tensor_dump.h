// TensorDump: the loss, gradients and parameters of some steps, written to a file so that two
// processes can be compared bit for bit.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "executor/device/device.h"
#include "executor/model.h"
#include "traces/result.h"

namespace stowage::executor {

// Appends to the file behind a descriptor, from its current position; the caller keeps the
// descriptor. Tensors must be dense and are written in their memory order; nothing is allocated on
// the device. `device` is where the tensors are.
class TensorDumpWriter {
 public:
  TensorDumpWriter(Device& device, int descriptor) : device_(device), descriptor_(descriptor) {}

  [[nodiscard]] Status add_loss(std::int64_t step, double loss);
  // `kind` is "gradient" or "parameter".
  [[nodiscard]] Status add(std::int64_t step, const std::string& kind, const NamedTensor& tensor);

 private:
  Device& device_;
  int descriptor_;
  std::vector<std::byte> chunk_;  // of a tensor, on the host
};

struct DumpDifference {
  bool bitwise = true;           // same tensors, same bytes
  bool within_tolerance = true;  // every |a - b| <= rtol * |b|
  double max_abs_diff = 0;       // NaN against a number counts as infinity
  std::string first;             // "step 1 gradient layers.0.mlp.up.weight", empty when bitwise
  std::int64_t tensors = 0;      // compared
  std::int64_t differing = 0;
};

// Compares two dumps from their beginnings (`b` is the reference). Error (internal): a file that
// no writer made. Memory: two chunks.
[[nodiscard]] Result<DumpDifference> compare_dumps(int a, int b, double rtol);

}  // namespace stowage::executor
