// The autograd engine that lets the current StepDriver intercept every saved tensor. Stock
// LibTorch: a subclass of torch::autograd::Engine that hands out saved-tensor hooks, and whose
// execute() returns when autograd's own threads hold nothing of that backward any more: what they
// free, they free before backward_end().
// In a Python process it hands out hooks only (the user's own win) and has Python's engine do all
// work. What Python calls backward there does not come by here: python/ tells the driver of it.
#pragma once

namespace stowage::executor {

// A program that calls this has our engine from its start, before main(), as the process's default
// one (on a GPU it must be the first that runs a backward, Python's excepted). The call itself only
// checks that it is still there: throws c10::Error when another one took its place. The engine is
// leaked on purpose, so that no autograd thread outlives it at exit. Without a StepDriver it
// computes what PyTorch's does.
void install_saved_tensor_engine();

}  // namespace stowage::executor
