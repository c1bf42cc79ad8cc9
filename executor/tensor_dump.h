// TensorDump: the loss, gradients, parameters and buffers of some steps, written to a file so that
// two processes can be compared bit for bit. Steps with many bytes leave digests there instead
// (piece_digests.h), which tell whether tensors are equal and not how far apart they are.
#pragma once

#include <cstddef>
#include <cstdint>
#include <limits>
#include <optional>
#include <string>
#include <vector>

#include "executor/device/device.h"
#include "executor/model.h"
#include "executor/piece_digests.h"
#include "traces/result.h"

namespace stowage::executor {

// Appends to the file behind a descriptor, from its current position; the caller keeps the
// descriptor. Tensors must be dense and are written in their memory order; nothing is allocated on
// the device. `device` is where the tensors are.
class TensorDumpWriter {
 public:
  // Tensors of a step with up to `most_bytes` in all are written whole, others as digests.
  static constexpr Bytes kMostBytes = Bytes{2} << 30;
  static constexpr Bytes kAlwaysDigests = -1;
  TensorDumpWriter(Device& device, int descriptor, Bytes most_bytes = kMostBytes)
      : device_(device), descriptor_(descriptor), most_bytes_(most_bytes) {
    choose_form(0);
  }

  // By the bytes of all tensors of the step whose results come next.
  void choose_form(Bytes step_bytes) { digests_ = step_bytes > most_bytes_; }
  // A loss is written as it is in either form.
  [[nodiscard]] Status add_loss(std::int64_t step, double loss);
  // `kind` is "gradient", "parameter" or "buffer".
  [[nodiscard]] Status add(std::int64_t step, const std::string& kind, const NamedTensor& tensor);

 private:
  Device& device_;
  int descriptor_;
  Bytes most_bytes_;
  bool digests_ = false;
  std::vector<std::byte> chunk_;       // of a tensor, on the host
  std::optional<PieceHasher> hasher_;  // made when it is first needed
};

// One record of two dumps that is not the same in both.
struct TensorDifference {
  std::string name;         // "step 1 gradient layers.0.mlp.up.weight"
  double max_abs_diff = 0;  // NaN when there are only digests of it
};

struct DumpDifference {
  bool bitwise = true;           // same tensors, same bytes
  bool within_tolerance = true;  // every |a - b| <= rtol * |b|
  double max_abs_diff = 0;       // NaN against a number counts as infinity
  // False when tensors differ of which there are only digests.
  bool magnitude_known = true;
  std::string first;           // "step 1 gradient layers.0.mlp.up.weight", empty when bitwise
  std::int64_t tensors = 0;    // compared
  std::int64_t by_digest = 0;  // of them by digests
  std::int64_t differing = 0;
  std::vector<TensorDifference> each;  // the differing ones, in order

  // Tensors differ and there are only digests of them: nothing is within a tolerance, and
  // max_abs_diff is NaN.
  void forget_magnitude() {
    magnitude_known = within_tolerance = false;
    max_abs_diff = std::numeric_limits<double>::quiet_NaN();
  }
};

// Compares two dumps from their beginnings (`b` is the reference). Error (internal): a file that
// no writer made, one with digests against one without. Memory: two chunks.
[[nodiscard]] Result<DumpDifference> compare_dumps(int a, int b, double rtol);

// Whether a writer made this file: whole records, at least one. Error (internal): it did not.
[[nodiscard]] Status check_dump(int descriptor);

// The first record of `difference` that is further apart than `noise`, the difference of two runs
// that should have been the same, has it for that loss or tensor in any step; null: none is.
[[nodiscard]] const TensorDifference* beyond(const DumpDifference& difference,
                                             const DumpDifference& noise);

}  // namespace stowage::executor
