// A layer is a callable: stowage::layer(path, fn, inputs) runs fn(inputs) and tells the driver
// where the layer begins and ends in forward and in backward. `fn` can be called again later
// (recompute and micro-batches of a segment need that), so it must be a function of its inputs and
// of parameters. Inputs and output pass through identity nodes (views) in every run, planned or
// not, so that runs compare op for op.
#pragma once

#include <ATen/core/Tensor.h>

#include <functional>
#include <string>
#include <vector>

namespace stowage {

using LayerFn = std::function<at::Tensor(const std::vector<at::Tensor>&)>;

// `path` is the full dotted name ("layers.3.mlp"); nested calls pass the longer path. The inputs
// are consumed: nothing keeps them alive after fn returns except fn's own results and autograd.
// backward begin: the output's gradient has arrived. backward end: the gradient of the first
// input that needs one is complete (no such event when no input needs a gradient).
at::Tensor layer(const std::string& path, const LayerFn& fn, std::vector<at::Tensor> inputs);

}  // namespace stowage
