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

// One record of two dumps that is not the same in both.
struct TensorDifference {
  std::string name;  // "step 1 gradient layers.0.mlp.up.weight"
  double max_abs_diff = 0;
};

struct DumpDifference {
  bool bitwise = true;           // same tensors, same bytes
  bool within_tolerance = true;  // every |a - b| <= rtol * |b|
  double max_abs_diff = 0;       // NaN against a number counts as infinity
  std::string first;             // "step 1 gradient layers.0.mlp.up.weight", empty when bitwise
  std::int64_t tensors = 0;      // compared
  std::int64_t differing = 0;
  std::vector<TensorDifference> each;  // the differing ones, in order
};

// Compares two dumps from their beginnings (`b` is the reference). Error (internal): a file that
// no writer made. Memory: two chunks.
[[nodiscard]] Result<DumpDifference> compare_dumps(int a, int b, double rtol);

// The first record of `difference` that is further apart than `noise`, the difference of two runs
// that should have been the same, has it for that loss or tensor in any step; null: none is.
[[nodiscard]] const TensorDifference* beyond(const DumpDifference& difference,
                                             const DumpDifference& noise);

}  // namespace stowage::executor
