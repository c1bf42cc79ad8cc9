// A step that runs one op on operands of every dtype that it takes, in every layout: each
// combination is a layer of its own, named "transposed.float16", with a parameter for each operand.
// What the op saves is all that the step saves. Whoever runs the step finds what could be seen in
// each run: the op's results, their gradients and those of the parameters.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "tests/ops/op.h"
#include "tests/ops/op_layouts.h"
#include "tests/ops/op_names.h"
#include "tests/profiler_torch/tensor_look.h"

namespace stowage::ops {

struct Observation {
  std::string what;
  testing::TensorLook look;
  bool operator==(const Observation&) const = default;
};
using Observations = std::vector<Observation>;

// `second`: the loss also depends on the gradients of the parameters, so backward goes through
// backward, and saves what it was given.
enum class Derivative : std::uint8_t { first, second };

class OpStep {
 public:
  // Runs each combination once or twice alone. Those that PyTorch refuses are left out; a test
  // failure says so of a contiguous one without a first derivative, and of one that does not repeat
  // itself. `op` outlives the step.
  OpStep(const Op& op, const std::string& dtypes, Derivative derivative = Derivative::first);
  OpStep(const OpStep&) = delete;
  OpStep& operator=(const OpStep&) = delete;

  // "transposed.float16" -> PyTorch's words.
  [[nodiscard]] const std::map<std::string, std::string>& refused() const { return refused_; }
  // Of the combinations that run.
  [[nodiscard]] std::vector<std::string> names() const;
  [[nodiscard]] std::vector<at::Tensor> parameters() const;

  // Forward and backward; the loss. Gradients were reset.
  double run();
  // Of all runs since the last call.
  [[nodiscard]] std::vector<Observations> take_runs();

 private:
  struct Leaf {
    at::Tensor parameter;
    const OpLayout* layout;
    Operand operand;
  };
  struct Combination {
    std::string name;
    std::vector<Leaf> leaves;
  };

  [[nodiscard]] Combination combine(const OpLayout& layout, const DtypeLetter& dtype,
                                    bool first_alone) const;
  // False, with the text in refused_, when PyTorch refuses it.
  bool try_alone(const Combination& combination);
  Observations run_alone(const Combination& combination);
  void observe(const std::string& what, const at::Tensor& tensor);
  // Its part of the loss.
  at::Tensor loss_of(const Combination& combination);
  at::Tensor forward(const Combination& combination);
  static at::Tensor gradients_of(const at::Tensor& loss, const Combination& combination);
  void observe_gradients(const Combination& combination);

  const Op& op_;
  Derivative derivative_;
  std::vector<Combination> combinations_;
  std::map<std::string, std::string> refused_;
  std::vector<Observations> runs_;
};

}  // namespace stowage::ops
