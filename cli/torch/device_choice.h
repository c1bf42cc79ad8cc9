// The training devices that this build and this machine have, by name: "cpu" and "cuda".
#pragma once

#include <optional>
#include <string>

#include "executor/device/device.h"
#include "traces/result.h"

namespace stowage::cli {

// Built with the CUDA device (STOWAGE_WITH_CUDA).
[[nodiscard]] bool cuda_built();

// `asked`, else cuda where it was built and there is a GPU, else cpu. Starts nothing. Errors: usage
// for an unknown name, environment for a device that this build or machine does not have.
[[nodiscard]] Result<std::string> choose_device(const std::optional<std::string>& asked);

// The process's device of that name; made by the first call, so that comes before the first tensor.
// Errors: cpu_device(), cuda_device().
[[nodiscard]] Result<executor::Device*> open_device(const std::string& name);

// How the GPU hangs on the host ("32.0 GT/s PCIe, 16 lanes"), empty when that is not told.
[[nodiscard]] std::string gpu_link_text();

}  // namespace stowage::cli
