// Everything process-wide that changes the kernels, the bytes or the bits of a step. A recording,
// its reference and its planned run set the same options, and the fingerprint holds them.
#pragma once

#include <cstdint>

#include "traces/result.h"

namespace stowage::executor {

struct RunOptions {
  // Deterministic algorithms only (an op that has none throws). Uninitialised memory is never
  // filled: that would add kernels and time.
  // On a GPU: cuDNN without autotuning and without its attention, which does not repeat itself. The
  // CUDA device sets CUBLAS_WORKSPACE_CONFIG, which cuBLAS reads when it starts.
  bool deterministic = true;
  // fp32 products on TF32 tensor cores (Run.dtype "tf32"); a GPU's option.
  bool tf32 = false;
  // Intra-op threads; on a CPU they change gradients and even the allocation sequence. 0 leaves
  // PyTorch's choice.
  std::int64_t threads = 0;
};

// Before the first step; PyTorch can set the threads up once only, before parallel work has begun.
// Without tf32, fp32 is computed as fp32: no TF32, no bf16 inside. Errors (usage): threads negative
// or above 1024.
[[nodiscard]] Status apply_run_options(const RunOptions& options);

// What is in force now, threads resolved.
[[nodiscard]] RunOptions current_run_options();

}  // namespace stowage::executor
