#include "executor/device/cuda/cuda_check.h"

#include <c10/util/Exception.h>

#include <algorithm>
#include <fstream>

namespace stowage::executor {

namespace {

std::string words(cudaError_t status) {
  return std::string(cudaGetErrorString(status)) + " (" + cudaGetErrorName(status) + ")";
}

}  // namespace

void check_cuda(cudaError_t status, const char* what) {
  if (status == cudaSuccess || status == cudaErrorCudartUnloading) return;
  static_cast<void>(cudaGetLastError());
  TORCH_CHECK(false, "stowage: ", what, " failed: ", words(status));
}

Error cuda_error(cudaError_t status, const std::string& what) {
  static_cast<void>(cudaGetLastError());
  return {ErrorCode::environment, what + ": " + words(status), "", "", ""};
}

std::string version_text(int version) {
  return std::to_string(version / 1000) + "." + std::to_string(version % 1000 / 10);
}

std::string driver_text() {
  int version = 0;
  std::string text = "CUDA ";
  text += cudaDriverGetVersion(&version) == cudaSuccess ? version_text(version) : "unknown";
  // "NVRM version: NVIDIA UNIX Open Kernel Module for x86_64  580.95.05  Release Build .."
  std::ifstream file("/proc/driver/nvidia/version");
  std::string word;
  while (file >> word && word != "GCC") {
    const bool number = std::count(word.begin(), word.end(), '.') >= 1 &&
                        word.find_first_not_of("0123456789.") == std::string::npos;
    if (number) return word + ", " + text;
  }
  return text;
}

}  // namespace stowage::executor
