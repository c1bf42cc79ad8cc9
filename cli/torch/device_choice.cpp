#include "cli/torch/device_choice.h"

#include "cli/console.h"
#include "executor/device/cpu_device.h"
#include "traces/nearest.h"
#ifdef STOWAGE_HAVE_CUDA
#include "executor/device/cuda/cuda_device.h"
#endif

namespace stowage::cli {

namespace {

#ifdef STOWAGE_HAVE_CUDA
Status cuda_there() {
  return executor::cuda_present();
}

Result<executor::Device*> open_cuda() {
  Result<executor::CudaDevice*> device = executor::cuda_device();
  if (!device) return device.error();
  return static_cast<executor::Device*>(*device);
}
#else
Status cuda_there() {
  return Error{ErrorCode::environment, "this build has no CUDA device", "", "",
               "build with -DSTOWAGE_WITH_CUDA=ON, or record with --device cpu"};
}

Result<executor::Device*> open_cuda() {
  return cuda_there().error();
}
#endif

}  // namespace

bool cuda_built() {
#ifdef STOWAGE_HAVE_CUDA
  return true;
#else
  return false;
#endif
}

Result<std::string> choose_device(const std::optional<std::string>& asked) {
  if (!asked) return std::string(cuda_there() ? "cuda" : "cpu");
  if (*asked == "cpu") return *asked;
  if (*asked == "cuda") {
    if (Status there = cuda_there(); !there) return there.error();
    return *asked;
  }
  const std::string near = *asked == "gpu" ? "cuda" : nearest(*asked, {"cpu", "cuda"});
  return usage_error("unknown device '" + *asked + "'",
                     near.empty() ? "cpu or cuda" : "did you mean " + near + "?");
}

std::string gpu_link_text() {
#ifdef STOWAGE_HAVE_CUDA
  return executor::cuda_link_text();
#else
  return "";
#endif
}

Result<executor::Device*> open_device(const std::string& name) {
  if (name == "cuda") return open_cuda();
  Result<executor::CpuDevice*> device = executor::cpu_device();
  if (!device) return device.error();
  return static_cast<executor::Device*>(*device);
}

}  // namespace stowage::cli
