#include "executor/device/cpu_device.h"

#include <ATen/ops/empty.h>
#include <ATen/ops/equal.h>
#include <ATen/ops/randn.h>
#include <ATen/ops/zeros_like.h>
#include <ATen/record_function.h>
#include <gtest/gtest.h>

#include <atomic>
#include <memory>
#include <random>
#include <semaphore>
#include <thread>
#include <vector>

#include "executor/device/host_arena.h"

namespace stowage::executor {
namespace {

std::unique_ptr<CpuDevice> make_device(CpuDevice::Options options = {}) {
  auto device = CpuDevice::create(std::move(options));
  EXPECT_TRUE(device.ok());
  return std::move(device).value();
}

TEST(CpuDevice, BufferHasExactlyTheBytesAndTheTag) {
  struct Listener final : AllocationListener {
    void on_alloc(const AllocationEvent& event) override {
      last_serial = event.serial;
      last_bytes = event.bytes;
      last_tag = event.tag;
    }
    void on_free(const AllocationEvent& event) override { freed_tag = event.tag; }
    std::int64_t last_serial = -1, last_tag = -2, freed_tag = -2;
    Bytes last_bytes = -1;
  } listener;
  const auto device = make_device();
  const MemoryStats before = device->memory();
  device->set_listener(&listener);
  at::Tensor buffer = device->allocate_buffer(12345, 9);
  EXPECT_EQ(buffer.scalar_type(), at::kByte);
  EXPECT_EQ(buffer.numel(), 12345);
  EXPECT_FALSE(buffer.requires_grad());
  EXPECT_EQ(listener.last_bytes, 12345);
  EXPECT_EQ(listener.last_tag, 9);
  EXPECT_EQ(listener.last_serial, before.allocations);
  EXPECT_EQ(device->allocation_serial(buffer.data_ptr()), before.allocations);
  EXPECT_EQ(device->next_serial(), before.allocations + 1);
  EXPECT_EQ(device->memory().requested - before.requested, 12345);
  buffer.reset();
  EXPECT_EQ(listener.freed_tag, 9);
  buffer = at::empty({3}, at::kByte);
  EXPECT_EQ(listener.last_tag, kStepAllocation);
  device->set_listener(nullptr);
  EXPECT_EQ(device->allocate_buffer(0, 1).numel(), 0);
  EXPECT_EQ(device->torch_device(), c10::Device(c10::kCPU));
}

std::atomic<int> g_observed{0};

TEST(CpuDevice, BuffersAreInvisibleToOpObservers) {
  const auto device = make_device();
  const auto handle =
      at::addGlobalCallback(at::RecordFunctionCallback([](const at::RecordFunction&)
                                                           -> std::unique_ptr<at::ObserverContext> {
                              ++g_observed;
                              return nullptr;
                            }).scopes({at::RecordScope::FUNCTION}));
  g_observed = 0;
  at::Tensor buffer = device->allocate_buffer(64, 1);
  EXPECT_EQ(g_observed.load(), 0);
  buffer = at::empty({64}, at::kByte);
  EXPECT_GT(g_observed.load(), 0) << "the observer works";
  at::removeCallback(handle);
}

TEST(CpuDevice, RoundTripThroughTheArenaIsBitwise) {
  const auto device = make_device();
  const at::Tensor tensor = at::randn({37, 11});
  auto arena = HostArena::create(static_cast<Bytes>(tensor.nbytes()));
  ASSERT_TRUE(arena.ok());
  const auto bytes = static_cast<Bytes>(tensor.nbytes());
  const CopyTicket out =
      device->copy_async(CopyLane::d2h, arena->data(), tensor.const_data_ptr(), bytes);
  EXPECT_EQ(out.lane, CopyLane::d2h);
  EXPECT_EQ(out.number, 1u);
  device->wait(out);
  at::Tensor back = at::zeros_like(tensor);
  const CopyTicket in =
      device->copy_async(CopyLane::h2d, back.mutable_data_ptr(), arena->data(), bytes);
  EXPECT_EQ(in.lane, CopyLane::h2d);
  EXPECT_EQ(in.number, 1u) << "lanes count for themselves";
  device->wait_blocking(in);
  EXPECT_TRUE(at::equal(back, tensor));
  at::Tensor again = at::zeros_like(tensor);
  device->copy_on_compute(again.mutable_data_ptr(), back.const_data_ptr(), bytes);
  EXPECT_TRUE(at::equal(again, tensor));
  EXPECT_EQ(device->lane_totals(CopyLane::d2h).bytes, bytes);
  EXPECT_EQ(device->lane_totals(CopyLane::h2d).bytes, bytes);
}

TEST(CpuDevice, LanesDoNotWaitForEachOther) {
  std::binary_semaphore gate(0);
  const auto device = make_device({.before_copy = [&](CopyLane lane, std::uint64_t) {
    if (lane == CopyLane::d2h) gate.acquire();
  }});
  const int source = 5;
  int host = 0;
  int other = 0;
  const CopyTicket blocked = device->copy_async(CopyLane::d2h, &host, &source, 4);
  device->wait(device->copy_async(CopyLane::h2d, &other, &source, 4));
  EXPECT_EQ(other, 5);
  EXPECT_EQ(device->lane_totals(CopyLane::d2h).copies, 0u);
  gate.release();
  device->wait(blocked);
  EXPECT_EQ(host, 5);
}

TEST(CpuDevice, SynchronizeWaitsForBothLanes) {
  const auto device = make_device({.before_copy = [](CopyLane, std::uint64_t number) {
    for (std::uint64_t i = 0; i < 50 * (number % 5); ++i) std::this_thread::yield();
  }});
  std::vector<int> source(64, 3);
  std::vector<int> out(64, 0);
  std::vector<int> in(64, 0);
  for (std::size_t i = 0; i < 64; ++i) {
    device->copy_async(CopyLane::d2h, &out[i], &source[i], 4);
    device->copy_async(CopyLane::h2d, &in[i], &source[i], 4);
  }
  device->synchronize();
  EXPECT_EQ(out, source);
  EXPECT_EQ(in, source);
  EXPECT_EQ(device->stall_ns(), 0) << "only waits of compute are stalls";
}

TEST(CpuDevice, StallsAreMeasuredAndResetWithThePeak) {
  std::atomic<std::uint64_t> about_to_wait{0};
  const auto device = make_device({.before_copy = [&](CopyLane, std::uint64_t number) {
    while (about_to_wait.load() < number) std::this_thread::yield();
    for (int i = 0; i < 1000; ++i) std::this_thread::yield();
  }});
  const int source = 1;
  int destination = 0;
  EXPECT_EQ(device->stall_ns(), 0);
  for (int attempt = 0; attempt < 1000 && device->stall_ns() == 0; ++attempt) {
    const CopyTicket ticket = device->copy_async(CopyLane::h2d, &destination, &source, 4);
    about_to_wait.store(ticket.number);
    device->wait(ticket);
  }
  EXPECT_GT(device->stall_ns(), 0);
  device->reset_peak();
  EXPECT_EQ(device->stall_ns(), 0);
  EXPECT_EQ(device->memory().peak_requested, device->memory().requested);
  device->wait({CopyLane::h2d, 0});
  EXPECT_EQ(device->stall_ns(), 0) << "ticket 0 is no copy";
}

// What the executor does with a saved tensor, many times over and with random delays: copy out,
// drop, allocate, copy in, compare.
TEST(CpuDevice, OffloadAndReloadUnderRandomDelays) {
  constexpr std::size_t kTensors = 200;
  std::mt19937 copy_random[2] = {std::mt19937(1), std::mt19937(2)};
  const auto device = make_device({.before_copy = [&](CopyLane lane, std::uint64_t) {
    const auto pauses = copy_random[static_cast<std::size_t>(lane)]() % 200;
    for (std::uint64_t i = 0; i < pauses; ++i) std::this_thread::yield();
  }});
  const Bytes base = device->memory().requested;
  constexpr Bytes kSlot = 4096;
  auto arena = HostArena::create(kSlot * static_cast<Bytes>(kTensors));
  ASSERT_TRUE(arena.ok());
  const auto slot = [&](std::size_t i) { return arena->data() + kSlot * static_cast<Bytes>(i); };
  std::vector<at::Tensor> originals;
  std::vector<CopyTicket> out;
  for (std::size_t i = 0; i < kTensors; ++i) {
    originals.push_back(at::empty({kSlot}, at::kByte).fill_(static_cast<int>(i % 251)));
    out.push_back(device->copy_async(CopyLane::d2h, slot(i), originals[i].const_data_ptr(), kSlot));
    if (i >= 3) {
      device->wait(out[i - 3]);
      originals[i - 3].reset();
    }
  }
  for (std::size_t i = kTensors - 3; i < kTensors; ++i) {
    device->wait(out[i]);
    originals[i].reset();
  }
  EXPECT_EQ(device->memory().requested, base);
  for (std::size_t i = kTensors; i-- > 0;) {
    const at::Tensor reload = device->allocate_buffer(kSlot, static_cast<std::int64_t>(i));
    device->wait(device->copy_async(CopyLane::h2d, reload.mutable_data_ptr(), slot(i), kSlot));
    const auto* const bytes = static_cast<const unsigned char*>(reload.const_data_ptr());
    ASSERT_EQ(bytes[0], i % 251);
    ASSERT_EQ(bytes[kSlot - 1], i % 251);
  }
  EXPECT_EQ(device->memory().requested, base);
}

TEST(CpuDevice, MemoryLimitIsARealOutOfMemory) {
  const auto device = make_device();
  device->set_memory_limit(device->memory().requested + 1000);
  EXPECT_THROW(static_cast<void>(at::empty({1001}, at::kByte)), c10::OutOfMemoryError);
  EXPECT_THROW(static_cast<void>(device->allocate_buffer(1001, 0)), c10::OutOfMemoryError);
  EXPECT_EQ(at::empty({1000}, at::kByte).numel(), 1000);
  device->set_memory_limit(0);
  EXPECT_EQ(at::empty({1001}, at::kByte).numel(), 1001);
}

TEST(CpuDevice, TheProcessHasOneOfItsOwn) {
  const auto first = cpu_device();
  const auto second = cpu_device();
  ASSERT_TRUE(first.ok());
  EXPECT_EQ(*first, *second);
}

}  // namespace
}  // namespace stowage::executor
