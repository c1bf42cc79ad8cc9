// The autograd engine that lets the current StepDriver intercept every saved tensor. Stock
// LibTorch: a subclass of torch::autograd::Engine that hands out saved-tensor hooks.
#pragma once

namespace stowage::executor {

// Makes our engine the process's default one. Must run before the first backward of the process;
// calling it again does nothing. The engine is leaked on purpose, so that no autograd thread
// outlives it at exit.
void install_saved_tensor_engine();

}  // namespace stowage::executor
