// Whether tests of a GPU can run here: a machine whose GPU does not work is none without one.
#pragma once

#include <cstdlib>
#include <filesystem>
#include <string>

#include "traces/result.h"

namespace stowage::testing {

enum class GpuState { there, none, broken };

// `present` is what executor::cuda_present() says. None: no device node of NVIDIA's driver in
// `dev`, or somebody hides all devices.
inline GpuState gpu_state(const Status& present, const std::filesystem::path& dev = "/dev") {
  if (present) return GpuState::there;
  const char* const visible = std::getenv("CUDA_VISIBLE_DEVICES");
  if (visible != nullptr && (*visible == '\0' || *visible == '-')) return GpuState::none;
  constexpr int kMostDevices = 64;
  for (int number = 0; number < kMostDevices; ++number) {
    if (std::filesystem::exists(dev / ("nvidia" + std::to_string(number)))) {
      return GpuState::broken;
    }
  }
  return GpuState::none;
}

}  // namespace stowage::testing

// In SetUp(): skips where there is no GPU, fails where there is one that does not work.
#define STOWAGE_NEEDS_GPU(present)                                              \
  do {                                                                          \
    const ::stowage::Status stowage_gpu = (present);                            \
    const auto stowage_state = ::stowage::testing::gpu_state(stowage_gpu);      \
    ASSERT_NE(stowage_state, ::stowage::testing::GpuState::broken)              \
        << "there is a GPU that does not work: " << stowage_gpu.error().text(); \
    if (!stowage_gpu) GTEST_SKIP() << "skipped: no CUDA device";                \
  } while (false)
