// A layer is a callable: stowage::layer(path, fn, inputs) hands it to the step's driver, which runs
// fn(inputs), and hears where the layer begins and ends in forward and in backward. The driver may
// call `fn` again later (executor/layer_fn.h; recompute and micro-batches of a segment need that),
// so it must be a function of its inputs and of parameters. Outputs that need a gradient pass
// through identity nodes (views) in every run, planned or not, so that runs compare op for op.
// Inputs do not: a node there would add the gradients of a layer's uses of its input among
// themselves first, and a sum of three in another order has other bits than the model without
// layers.
#pragma once

#include <ATen/core/Tensor.h>

#include <string>
#include <vector>

#include "executor/layer_fn.h"

namespace stowage {

// What `fn` returns says which of the two it is: of a lambda with several outputs write
// `-> std::vector<at::Tensor>`.
//
// `path` is the full dotted name ("layers.3.mlp"); nested calls pass the longer path. The inputs
// are consumed: nothing keeps them alive after fn returns except fn's own results and autograd.
// The result is fn's, in its order; an output that is undefined or needs no gradient is passed on
// as it is.
// In each backward through the layer, backward begin: the first gradient of one of its outputs has
// arrived (outputs that the loss does not use get none). backward end: the gradient of the first
// input that needs one is complete, other users' share included; no such event when no input needs
// a gradient, or when that one gets none. What other inputs and outputs still cause in backward may
// come behind it.
std::vector<at::Tensor> layer(const std::string& path, const LayerFn& fn,
                              std::vector<at::Tensor> inputs);
at::Tensor layer(const std::string& path, const TensorFn& fn, std::vector<at::Tensor> inputs);

}  // namespace stowage
