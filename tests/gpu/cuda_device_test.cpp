#include "executor/device/cuda/cuda_device.h"

#include <ATen/Functions.h>
#include <c10/cuda/CUDACachingAllocator.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "tests/support/gpu_state.h"

namespace stowage::executor {
namespace {

namespace native = c10::cuda::CUDACachingAllocator;

class OnGpu : public ::testing::Test {
 protected:
  void SetUp() override {
    STOWAGE_NEEDS_GPU(cuda_present());
    auto device = CudaDevice::create({});
    ASSERT_TRUE(device.ok()) << device.error().text();
    device_ = std::move(device).value();
  }
  void TearDown() override {
    if (device_) device_->set_listener(nullptr);
  }
  [[nodiscard]] at::Tensor bytes(Bytes count) const {
    return at::empty({count}, at::TensorOptions(at::kByte).device(device_->torch_device()));
  }
  // Our own count is the allocator's.
  void expect_counts_agree() const {
    const native::DeviceStats stats = native::getDeviceStats(device_->torch_device().index());
    EXPECT_EQ(device_->counted_bytes(), stats.requested_bytes[0].current);
    Bytes live = 0;
    for (const LiveAllocation& each : device_->live_allocations()) live += each.bytes;
    EXPECT_EQ(live, stats.requested_bytes[0].current);
    EXPECT_EQ(device_->memory().requested, stats.requested_bytes[0].current);
  }

  std::unique_ptr<CudaDevice> device_;
};

TEST_F(OnGpu, CountsAreTheAllocators) {
  expect_counts_agree();
  const Bytes before = device_->memory().requested;
  device_->reset_peak();
  {
    std::vector<at::Tensor> tensors;
    for (Bytes size = 1; size < (Bytes{1} << 28); size = size * 5 + 3) {
      tensors.push_back(bytes(size));
      expect_counts_agree();
    }
    EXPECT_GE(device_->memory().active, device_->memory().requested);
    EXPECT_GE(device_->memory().reserved, device_->memory().active);
    while (tensors.size() > 1) {
      tensors.erase(tensors.begin());
      expect_counts_agree();
    }
  }
  EXPECT_EQ(device_->memory().requested, before);
  EXPECT_GT(device_->memory().peak_requested, before + (Bytes{1} << 26));
  device_->reset_peak();
  EXPECT_EQ(device_->memory().peak_requested, before);
  EXPECT_TRUE(device_->warnings().empty());
}

TEST_F(OnGpu, CountsAgreeAfterMatrixProductsWithTheirWorkspaces) {
  const auto options = at::TensorOptions(device_->torch_device());
  for (int i = 0; i < 3; ++i) {
    const at::Tensor a = at::ones({256, 256}, options);
    static_cast<void>(at::mm(a, a).sum());
    expect_counts_agree();
  }
}

TEST_F(OnGpu, SerialsAreNeverReusedAndNothingIsNoAllocation) {
  std::set<std::int64_t> serials;
  for (int i = 0; i < 50; ++i) {
    const std::int64_t next = device_->next_serial();
    const at::Tensor tensor = bytes(1000);
    EXPECT_EQ(device_->allocation_serial(tensor.const_data_ptr()), next);
    EXPECT_TRUE(serials.insert(next).second);
  }
  const std::int64_t next = device_->next_serial();
  EXPECT_EQ(bytes(0).numel(), 0);
  EXPECT_EQ(device_->next_serial(), next);
  EXPECT_EQ(device_->allocation_serial(nullptr), -1);
  int on_the_host = 0;
  EXPECT_EQ(device_->allocation_serial(&on_the_host), -1);
}

class Heard final : public AllocationListener {
 public:
  void on_alloc(const AllocationEvent& event) override { events.push_back(event); }
  void on_free(const AllocationEvent& event) override { events.push_back(event); }
  std::vector<AllocationEvent> events;
};

TEST_F(OnGpu, ListenerHearsProgramOrderWithTagsAndLiveBytes) {
  Heard heard;
  const Bytes before = device_->memory().requested;
  const std::int64_t serial = device_->next_serial();
  device_->set_listener(&heard);
  at::Tensor first = bytes(1001);
  at::Tensor second = device_->allocate_buffer(513, 42);
  first.reset();
  at::Tensor third = bytes(7);
  second.reset();
  third.reset();
  device_->set_listener(nullptr);
  static_cast<void>(bytes(5));
  ASSERT_EQ(heard.events.size(), 6U);
  const auto expect = [&](std::size_t i, std::int64_t number, Bytes size, std::int64_t tag,
                          Bytes live, bool is_free) {
    SCOPED_TRACE(i);
    EXPECT_EQ(heard.events[i].serial, serial + number);
    EXPECT_EQ(heard.events[i].bytes, size);
    EXPECT_EQ(heard.events[i].tag, tag);
    EXPECT_EQ(heard.events[i].requested, before + live);
    EXPECT_EQ(heard.events[i].is_free, is_free);
  };
  expect(0, 0, 1001, kStepAllocation, 1001, false);
  expect(1, 1, 513, 42, 1514, false);
  expect(2, 0, 1001, kStepAllocation, 513, true);
  expect(3, 2, 7, kStepAllocation, 520, false);
  expect(4, 1, 513, 42, 7, true);
  expect(5, 2, 7, kStepAllocation, 0, true);
}

TEST_F(OnGpu, BufferIsExactlyWhatWasAskedForAndInvisibleToDeterministicFills) {
  for (const Bytes size : {Bytes{0}, Bytes{1}, Bytes{511}, Bytes{513}, Bytes{3} << 20}) {
    const Bytes before = device_->memory().requested;
    const at::Tensor buffer = device_->allocate_buffer(size, 3);
    EXPECT_EQ(buffer.scalar_type(), at::kByte);
    EXPECT_EQ(buffer.device(), device_->torch_device());
    EXPECT_EQ(static_cast<Bytes>(buffer.nbytes()), size);
    EXPECT_EQ(device_->memory().requested - before, size);
  }
}

TEST_F(OnGpu, ArenaIsPinnedExactlyAndCounted) {
  const std::int64_t pinned = device_->memory().pinned_blocks;
  for (const Bytes size : {Bytes{1}, Bytes{4097}, (Bytes{1} << 27) + 5}) {
    const auto arena = device_->host_arena(size);
    ASSERT_TRUE(arena.ok()) << arena.error().text();
    EXPECT_EQ(arena->bytes(), size);
    EXPECT_TRUE(arena->pinned());
    cudaPointerAttributes attributes{};
    ASSERT_EQ(cudaPointerGetAttributes(&attributes, arena->data() + size - 1), cudaSuccess);
    EXPECT_EQ(attributes.type, cudaMemoryTypeHost);
  }
  EXPECT_EQ(device_->memory().pinned_blocks, pinned + 3);
  const auto nothing = device_->host_arena(0);
  ASSERT_TRUE(nothing.ok());
  EXPECT_FALSE(nothing->pinned());
  EXPECT_FALSE(device_->host_arena(-1).ok());
}

TEST_F(OnGpu, RefusedPinningGivesPageableMemoryAndAWarning) {
  CudaDevice::Options options;
  options.refuse_pinning = true;
  auto device = CudaDevice::create(std::move(options));
  ASSERT_TRUE(device.ok());
  const auto arena = (*device)->host_arena(1 << 20);
  ASSERT_TRUE(arena.ok());
  EXPECT_FALSE(arena->pinned());
  ASSERT_EQ((*device)->warnings().size(), 1U);
  EXPECT_NE((*device)->warnings()[0].find("1048576 bytes of host memory could not be pinned"),
            std::string::npos);
  // Copies are right all the same.
  const at::Tensor buffer = (*device)->allocate_buffer(1 << 20, 0);
  arena->data()[77] = std::byte{9};
  (*device)->wait(
      (*device)->copy_async(CopyLane::h2d, buffer.mutable_data_ptr(), arena->data(), 1 << 20));
  (*device)->fill_on_compute(arena->data(), std::byte{0}, 1 << 20);
  EXPECT_EQ(arena->data()[77], std::byte{0});
  (*device)->wait_blocking(
      (*device)->copy_async(CopyLane::d2h, arena->data(), buffer.const_data_ptr(), 1 << 20));
  EXPECT_EQ(arena->data()[77], std::byte{9});
}

TEST_F(OnGpu, CopiesOfEverySizeAreRight) {
  for (const Bytes size : {Bytes{0}, Bytes{1}, Bytes{4095}, Bytes{1} << 20, (Bytes{1} << 24) + 3}) {
    SCOPED_TRACE(size);
    auto arena = device_->host_arena(2 * size);
    ASSERT_TRUE(arena.ok());
    std::byte* const in = arena->data();
    std::byte* const out = arena->data() + size;
    for (Bytes i = 0; i < size; ++i) in[i] = static_cast<std::byte>(i * 31 + 7);
    const at::Tensor buffer = device_->allocate_buffer(size, 0);
    device_->wait(device_->copy_async(CopyLane::h2d, buffer.mutable_data_ptr(), in, size));
    device_->wait(device_->copy_async(CopyLane::d2h, out, buffer.const_data_ptr(), size));
    device_->synchronize();
    EXPECT_TRUE(std::equal(in, in + size, out));
  }
}

// What a planned step does, again and again: after the first round nothing new is taken.
TEST_F(OnGpu, NothingIsTakenFromTheDriverAfterTheFirstRound) {
  constexpr Bytes kSize = Bytes{1} << 20;
  constexpr int kTensors = 20;
  auto arena = device_->host_arena(kSize * kTensors);
  ASSERT_TRUE(arena.ok());
  MemoryStats first;
  std::size_t events = 0;
  for (int round = 0; round < 4; ++round) {
    for (int i = 0; i < kTensors; ++i) {
      at::Tensor made = bytes(kSize).fill_(i);
      device_->wait(device_->copy_async(CopyLane::d2h, arena->data() + i * kSize,
                                        made.const_data_ptr(), kSize));
      made.reset();
    }
    for (int i = kTensors; i-- > 0;) {
      const at::Tensor back = device_->allocate_buffer(kSize, i);
      device_->wait(device_->copy_async(CopyLane::h2d, back.mutable_data_ptr(),
                                        arena->data() + i * kSize, kSize));
      device_->copy_on_compute(arena->data() + i * kSize, back.const_data_ptr(), kSize);
    }
    device_->synchronize();
    for (int i = 0; i < kTensors; ++i) EXPECT_EQ(arena->data()[i * kSize + 5], std::byte(i));
    const MemoryStats stats = device_->memory();
    if (round == 0) {
      first = stats;
      events = device_->events_created();
      continue;
    }
    EXPECT_EQ(stats.driver_allocations, first.driver_allocations);
    EXPECT_EQ(stats.pinned_blocks, first.pinned_blocks);
    EXPECT_EQ(stats.reserved, first.reserved);
    EXPECT_EQ(device_->events_created(), events);
  }
}

TEST_F(OnGpu, MemoryLimitIsARealOutOfMemory) {
  native::emptyCache();
  const Bytes reserved = device_->memory().reserved;
  device_->set_memory_limit(reserved + (Bytes{64} << 20));
  EXPECT_THROW(static_cast<void>(bytes(Bytes{66} << 20)), c10::OutOfMemoryError);
  EXPECT_THROW(static_cast<void>(device_->allocate_buffer(Bytes{66} << 20, 0)),
               c10::OutOfMemoryError);
  EXPECT_EQ(bytes(Bytes{64} << 20).numel(), Bytes{64} << 20);
  device_->set_memory_limit(0);
  EXPECT_EQ(bytes(Bytes{66} << 20).numel(), Bytes{66} << 20);
  expect_counts_agree();
}

TEST_F(OnGpu, DescribesItself) {
  Environment environment;
  device_->describe(environment);
  EXPECT_EQ(environment.device, "cuda");
  EXPECT_FALSE(environment.device_name.empty());
  EXPECT_FALSE(environment.driver.empty());
  EXPECT_NE(environment.cuda.find('.'), std::string::npos);
  EXPECT_EQ(environment.allocator.find("native"), 0U);
  EXPECT_NE(environment.allocator.find("CUBLAS_WORKSPACE_CONFIG="), std::string::npos);
  EXPECT_GT(environment.device_memory, Bytes{1} << 30);
  EXPECT_GT(environment.context_bytes, 0);
}

// A history from the first allocation on, whose running sum is the live bytes that it tells.
TEST_F(OnGpu, SetupHistoryAddsUp) {
  static_cast<void>(bytes(123));
  Bytes live = 0;
  const auto history = device_->setup_history().events;
  ASSERT_FALSE(history.empty());
  EXPECT_EQ(history.front().serial, 0);
  for (const AllocationEvent& event : history) {
    live += event.is_free ? -event.bytes : event.bytes;
    ASSERT_EQ(event.requested, live);
  }
  EXPECT_EQ(live, device_->memory().requested);

  // The first step begins where it is said first.
  device_->begin_first_step();
  const at::Tensor kept = bytes(77);
  device_->begin_first_step();
  const SetupHistory with_step = device_->setup_history();
  EXPECT_EQ(with_step.first_step, history.size());
  ASSERT_EQ(with_step.events.size(), history.size() + 1);
  EXPECT_EQ(with_step.events.back().bytes, 77);
}

TEST_F(OnGpu, AStepStaysOnItsStream) {
  const auto other = c10::cuda::getStreamFromPool(false, device_->torch_device().index());
  const auto before = c10::cuda::getCurrentCUDAStream();
  device_->begin_step();
  EXPECT_NO_THROW(device_->check_stream());
  c10::cuda::setCurrentCUDAStream(other);
  EXPECT_THROW(device_->check_stream(), c10::Error);
  EXPECT_THROW(static_cast<void>(device_->allocate_buffer(8, 0)), c10::Error);
  device_->end_step();
  EXPECT_NO_THROW(device_->check_stream());
  device_->begin_step();
  EXPECT_NO_THROW(device_->check_stream());
  device_->end_step();
  c10::cuda::setCurrentCUDAStream(before);
}

}  // namespace
}  // namespace stowage::executor
