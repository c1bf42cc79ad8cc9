// Each of the four event waits that order copies and compute on a GPU, one test each: with the wait
// left out the data is wrong. Streams are held back by host functions that sleep; the same file is
// built again against copy lanes without each wait (STOWAGE_OMIT_WAIT), and must then fail.
#include <cuda_runtime_api.h>
#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <thread>
#include <utility>

#include "executor/device/cuda/cuda_device.h"
#include "tests/support/gpu_state.h"

namespace stowage::executor {
namespace {

constexpr Bytes kBytes = Bytes{1} << 16;
constexpr auto kHeldBack = std::chrono::milliseconds(100);

void CUDART_CB hold_back(void*) {
  std::this_thread::sleep_for(kHeldBack);
}

class Waits : public ::testing::Test {
 protected:
  void SetUp() override { STOWAGE_NEEDS_GPU(cuda_present()); }
  // CUDA runs the host functions of all streams on one thread: a device whose lanes have some would
  // wait for the one that holds compute back.
  void make_device(std::optional<CudaQueue> held_lane) {
    CudaDevice::Options options;
    if (held_lane) {
      options.delay = [this, held_lane](CudaQueue queue, std::uint64_t) {
        if (is_held_ && queue == *held_lane) std::this_thread::sleep_for(kHeldBack);
      };
    }
    auto device = CudaDevice::create(std::move(options));
    ASSERT_TRUE(device.ok()) << device.error().text();
    device_ = std::move(device).value();
    auto arena = device_->host_arena(2 * kBytes);
    ASSERT_TRUE(arena.ok()) << arena.error().text();
    arena_ = std::move(arena).value();
    ASSERT_TRUE(arena_.pinned()) << "a copy of pageable memory waits by itself";
    buffer_ = device_->allocate_buffer(kBytes, kStepAllocation);
    fill(1);
    // The first call of everything is slow; it must not hide what is measured.
    device_->wait(device_->copy_async(CopyLane::d2h, host(), memory(), kBytes));
    device_->wait(device_->copy_async(CopyLane::h2d, memory(), host(), kBytes));
    device_->synchronize();
  }
  void TearDown() override {
    if (device_) device_->synchronize();
  }

  void* memory() const { return buffer_.mutable_data_ptr(); }
  std::byte* host() const { return arena_.data(); }
  std::byte* other_host() const { return arena_.data() + kBytes; }
  void fill(int value) { device_->fill_on_compute(memory(), std::byte(value), kBytes); }
  void hold_compute() {
    const auto stream = c10::cuda::getCurrentCUDAStream();
    ASSERT_EQ(cudaLaunchHostFunc(stream.stream(), &hold_back, nullptr), cudaSuccess);
  }
  static void expect_all(const std::byte* data, int value) {
    for (Bytes i = 0; i < kBytes; ++i) {
      ASSERT_EQ(std::to_integer<int>(data[i]), value) << "byte " << i;
    }
  }

  std::atomic<bool> is_held_{false};
  std::unique_ptr<CudaDevice> device_;
  HostArena arena_;
  at::Tensor buffer_;
};

// 1: the copy out takes what compute wrote before it.
TEST_F(Waits, CopyOutForCompute) {
  ASSERT_NO_FATAL_FAILURE(make_device(std::nullopt));
  hold_compute();
  fill(7);
  device_->copy_async(CopyLane::d2h, host(), memory(), kBytes);
  device_->synchronize();
  expect_all(host(), 7);
}

// 2: the copy in overwrites the buffer after compute has read it.
TEST_F(Waits, CopyInForCompute) {
  ASSERT_NO_FATAL_FAILURE(make_device(std::nullopt));
  std::fill_n(host(), kBytes, std::byte{2});
  hold_compute();
  device_->copy_on_compute(other_host(), memory(), kBytes);
  device_->copy_async(CopyLane::h2d, memory(), host(), kBytes);
  device_->synchronize();
  expect_all(other_host(), 1);
}

// 3: compute overwrites the buffer after it was copied out.
TEST_F(Waits, ComputeForCopyOut) {
  ASSERT_NO_FATAL_FAILURE(make_device(CudaQueue::d2h));
  fill(3);
  device_->synchronize();
  is_held_ = true;
  device_->wait(device_->copy_async(CopyLane::d2h, host(), memory(), kBytes));
  fill(9);
  device_->synchronize();
  expect_all(host(), 3);
}

// 4: compute reads the buffer after it was copied in.
TEST_F(Waits, ComputeForCopyIn) {
  ASSERT_NO_FATAL_FAILURE(make_device(CudaQueue::h2d));
  std::fill_n(host(), kBytes, std::byte{5});
  is_held_ = true;
  device_->wait(device_->copy_async(CopyLane::h2d, memory(), host(), kBytes));
  device_->copy_on_compute(other_host(), memory(), kBytes);
  device_->synchronize();
  expect_all(other_host(), 5);
}

}  // namespace
}  // namespace stowage::executor
