// A layer is a callable: stowage::layer(path, fn, inputs) hands it to the step's driver, which runs
// fn(inputs), and hears where the layer begins and ends in forward and in backward. The driver may
// call `fn` again later (executor/layer_fn.h; recompute and micro-batches of a segment need that),
// so it must be a function of its inputs and of parameters. Tensors pass as they are, so that the
// graph is that of the model without layers, and gradients add up in its order: a node at a
// boundary would add those of one side among themselves first, and a sum of three in another order
// has other bits. What is heard of backward comes from hooks on nodes that are there.
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
// In each backward through the layer, backward begin: the gradient of one of its outputs is
// complete (outputs that the loss does not use get none). backward end: the gradient of the first
// input that needs one is complete, other users' share included; no such event when no input needs
// a gradient, or when that one gets none. What other inputs and outputs still cause in backward may
// come behind it, and a layer may begin ahead of another one's end.
std::vector<at::Tensor> layer(const std::string& path, const LayerFn& fn,
                              std::vector<at::Tensor> inputs);
at::Tensor layer(const std::string& path, const TensorFn& fn, std::vector<at::Tensor> inputs);

// Of a callable that is no function of its inputs and parameters (it appends to a cache, say): it
// is heard of as well, and never called again.
std::vector<at::Tensor> layer_once(const std::string& path, const LayerFn& fn,
                                   std::vector<at::Tensor> inputs);

}  // namespace stowage
