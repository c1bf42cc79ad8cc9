// What the CUDA device does before it needs a GPU, and where there is none.
#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>
#include <utility>

#include "executor/device/cuda/cuda_allocations.h"
#include "executor/device/cuda/cuda_device.h"
#include "tests/support/gpu_state.h"

namespace stowage::executor {
namespace {

class AllocatorSettings : public ::testing::TestWithParam<std::pair<const char*, const char*>> {
 protected:
  void TearDown() override { ::unsetenv(GetParam().first); }
};

TEST_P(AllocatorSettings, ThatCannotBeFollowedAreRefusedInWords) {
  const auto [name, value] = GetParam();
  ::setenv(name, value, 1);
  const Status status = check_allocator_environment();
  ASSERT_FALSE(status.ok());
  EXPECT_EQ(status.error().code, ErrorCode::environment);
  EXPECT_NE(status.error().message.find(name), std::string::npos) << status.error().message;
}

INSTANTIATE_TEST_SUITE_P(All, AllocatorSettings,
                         ::testing::Values(std::pair{"PYTORCH_NO_CUDA_MEMORY_CACHING", "1"},
                                           std::pair{"PYTORCH_CUDA_ALLOC_CONF", "backend:mine"},
                                           std::pair{"PYTORCH_ALLOC_CONF",
                                                     "max_split_size_mb:64, backend: mine"}));

TEST(OtherAllocatorSettings, AreAccepted) {
  for (const char* settings :
       {"backend:cudaMallocAsync", "max_split_size_mb:64, backend: cudaMallocAsync",
        " Expandable_Segments : true "}) {
    ::setenv("PYTORCH_ALLOC_CONF", settings, 1);
    EXPECT_TRUE(check_allocator_environment().ok()) << settings;
  }
  ::setenv("PYTORCH_ALLOC_CONF", "backend:native,expandable_segments:False", 1);
  EXPECT_TRUE(check_allocator_environment().ok());
  EXPECT_NE(allocator_text().find("backend:native"), std::string::npos);
  ::unsetenv("PYTORCH_ALLOC_CONF");
  EXPECT_TRUE(check_allocator_environment().ok());
}

TEST(CudaDevice, WithoutAGpuIsAnErrorAndNotACrash) {
  if (cuda_present()) GTEST_SKIP() << "there is a GPU";
  for (int attempt = 0; attempt < 2; ++attempt) {
    const auto device = CudaDevice::create({});
    ASSERT_FALSE(device.ok());
    EXPECT_EQ(device.error().code, ErrorCode::environment);
    EXPECT_EQ(device.error().message.find("no CUDA device: "), 0U) << device.error().message;
  }
  EXPECT_FALSE(cuda_device().ok());
}

// A GPU whose driver does not work is not taken for none.
TEST(GpuState, ANodeWithoutADeviceIsABrokenOne) {
  const char* const set = std::getenv("CUDA_VISIBLE_DEVICES");
  const std::string before = set == nullptr ? "" : set;
  ::unsetenv("CUDA_VISIBLE_DEVICES");
  const std::filesystem::path dev = std::filesystem::path(::testing::TempDir()) / "gpu_state_dev";
  std::filesystem::create_directories(dev);
  const Status absent = Error{ErrorCode::environment, "no CUDA device", "", "", ""};
  EXPECT_EQ(testing::gpu_state(absent, dev), testing::GpuState::none);
  std::ofstream(dev / "nvidiactl").put('\n');
  EXPECT_EQ(testing::gpu_state(absent, dev), testing::GpuState::none);
  std::ofstream(dev / "nvidia3").put('\n');
  EXPECT_EQ(testing::gpu_state(absent, dev), testing::GpuState::broken);
  EXPECT_EQ(testing::gpu_state(Unit{}, dev), testing::GpuState::there);
  ::setenv("CUDA_VISIBLE_DEVICES", "", 1);
  EXPECT_EQ(testing::gpu_state(absent, dev), testing::GpuState::none);
  ::unsetenv("CUDA_VISIBLE_DEVICES");
  if (set != nullptr) ::setenv("CUDA_VISIBLE_DEVICES", before.c_str(), 1);
  std::filesystem::remove_all(dev);
}

}  // namespace
}  // namespace stowage::executor
