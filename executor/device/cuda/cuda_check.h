// The one place where CUDA's error codes become errors of ours.
#pragma once

#include <cuda_runtime_api.h>

#include <string>

#include "traces/result.h"

namespace stowage::executor {

// Throws c10::Error ("WHAT failed: CUDA's words (cudaErrorName)") unless `status` is success.
// Clears CUDA's last error, so that the next launch check of PyTorch does not report it again.
// While the process ends (the runtime is unloading) nothing can be done and nothing is thrown.
void check_cuda(cudaError_t status, const char* what);

// The same as an environment error.
[[nodiscard]] Error cuda_error(cudaError_t status, const std::string& what);

// A CUDA version number such as 13000 as "13.0".
[[nodiscard]] std::string version_text(int version);

// The driver as "580.95.05, CUDA 13.0"; only the second half where the first is not told.
[[nodiscard]] std::string driver_text();

}  // namespace stowage::executor
