// The tail of a step's forward, from a layer up to where backward begins, as a callable that can
// run in parts of the batch ("partial gradient accumulation"): what the whole of it needs at once,
// the logits of a large vocabulary above all, is then needed for one part at a time.
//
//   at::Tensor x = .. all layers ahead of the head ..
//   return stowage::tail("head", [this](std::vector<at::Tensor> in) -> BackwardRoot {
//     at::Tensor logits = layer("head", head, {in[0]});
//     return {layer("loss", loss, {logits, in[1]}), {}};
//   }, {x, targets});
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "executor/backward_root.h"
#include "simulator/step/structure.h"

namespace stowage {

// The tail that is all of the step.
using simulator::kWholeStep;

// A function of its inputs and of parameters; it may consume the inputs.
using TailFn = std::function<executor::BackwardRoot(std::vector<at::Tensor>)>;

// What the loss of a part is of the whole loss.
enum class Reduction : std::uint8_t {
  mean,  // it counts as its weight in the sum of all
  sum,   // as it is; so does a root with a gradient of its own
};

struct TailBatch {
  // Leading dimensions of every input that are samples, which do not depend on each other: 1, or 2
  // where every position of a sequence is one. The parts have one such dimension.
  std::int64_t dimensions = 1;
  Reduction reduction = Reduction::mean;
  // Of a mean, the weight of a part, a scalar on the device: how many targets are not ignored, or
  // the sum of their classes' weights; a part may have 0 where its loss is a number all the same.
  // Called with inputs, those of all parts first. Empty: how many samples it has.
  std::function<at::Tensor(const std::vector<at::Tensor>& inputs)> weight{};
};

// Runs fn(inputs) and returns its root, unless the step's driver says that this segment runs in
// parts (StepDriver::parts): then forward and backward run here for one part behind the other, of
// as many samples each as the others or one more (the first). Parameters accumulate; what is
// returned is the whole loss (of a root with a gradient, the first part's first element), whose
// backward goes on with the collected gradients of the inputs.
//
// That gradient is 1: the parts have accumulated already, so the loss must not be scaled behind it
// (executor/loss_scale.h declares a scale ahead, and the parts have it). Another
// incoming gradient throws c10::Error, and so does a second backward, or one that is to be
// differentiated again (create_graph); autograd::grad() of a parameter would not have the parts,
// and a hook behind the accumulation of a gradient runs once a part; root.tensor.backward(
// root.gradient) costs no look at the value. Throws c10::Error where inputs have no such
// dimensions, or fewer samples than parts. Without grad mode nothing is divided.
//
// `segment` is the first layer's path, or kWholeStep; plans name it
// (`micro_batches`). Not inside of a layer that runs again, nor of another tail that is divided.
[[nodiscard]] executor::BackwardRoot tail(const std::string& segment, const TailFn& fn,
                                          std::vector<at::Tensor> inputs,
                                          const TailBatch& batch = {});

}  // namespace stowage
