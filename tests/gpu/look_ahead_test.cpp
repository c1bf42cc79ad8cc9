// The look ahead behind the first planned step: the allocator of the GPU is where the simulator
// thinks it is, step after step, and takes nothing from the driver any more.
#include <gtest/gtest.h>

#include <cstdio>
#include <string>
#include <vector>

#include "executor/device/cuda/cuda_device.h"
#include "executor/reserve_segments.h"
#include "simulator/allocator/allocator_outlook.h"
#include "tests/profiler_torch/twin_sessions.h"

namespace stowage {
namespace {

using simulator::CachingAllocator;
using Stream = simulator::ParameterPlan::Stream;

std::string text_of(const CachingAllocator::Piece& piece) {
  return std::to_string(piece.address) + " size " + std::to_string(piece.size) +
         (piece.allocated ? " allocated" : " free");
}

// Where they first differ; empty when they are equal.
std::string difference(const std::vector<CachingAllocator::Piece>& predicted,
                       const std::vector<simulator::ObservedBlock>& real) {
  for (std::size_t i = 0; i < predicted.size() || i < real.size(); ++i) {
    const std::string expected = i < predicted.size() ? text_of(predicted[i]) : "nothing";
    const std::string is =
        i < real.size() ? text_of({real[i].address, real[i].size, real[i].allocated}) : "nothing";
    if (expected == is) continue;
    std::string text = "block " + std::to_string(i) + " of " + std::to_string(predicted.size()) +
                       ": predicted " + expected + ", is " + is;
    if (i < real.size()) {
      text += " (serial " + std::to_string(real[i].serial) + ", requested " +
              std::to_string(real[i].requested) + ", tag " + std::to_string(real[i].tag) + ")";
    }
    return text;
  }
  return "";
}

class GpuLookAhead : public ::testing::TestWithParam<const char*> {};

TEST_P(GpuLookAhead, FollowsTheAllocatorStepByStep) {
  testing::TwinSessions twins(GetParam(), 4, "adamw");
  executor::Device& device = twins.device();
  for (const Stream stream : {Stream::always, Stream::forward}) {
    SCOPED_TRACE(static_cast<int>(stream));
    const simulator::Schedule schedule = twins.stream(stream, 1);
    const simulator::AllocatorOutlook outlook(twins.index(), schedule);
    const auto plan = twins.plan(schedule);
    EXPECT_EQ(plan->look_ahead(), "");
    static_cast<void>(twins.run_planned(*plan, 0));
    std::printf("look ahead: %s\n", plan->look_ahead().c_str());
    EXPECT_NE(plan->look_ahead(), "");
    EXPECT_EQ(plan->look_ahead().find("not known"), std::string::npos) << plan->look_ahead();
    const std::int64_t taken = device.memory().driver_allocations;
    for (std::int64_t k = 1; k < 60; ++k) {
      const auto before = device.observed_allocator();
      ASSERT_TRUE(before.has_value());
      const auto predicted = outlook.layout_after(*before, plan->first_serial(), 1);
      ASSERT_FALSE(predicted.empty())
          << outlook.look(*before, plan->first_serial()).described << " behind step " << k;
      static_cast<void>(twins.run_planned(*plan, k));
      const auto now = device.observed_allocator();
      ASSERT_TRUE(now.has_value());
      ASSERT_EQ(difference(predicted, now->blocks), "") << "in step " << k;
      ASSERT_EQ(device.memory().driver_allocations, taken) << "in step " << k;
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Models, GpuLookAhead,
                         ::testing::Values("mlp:layers=6,width=512",
                                           "gpt2:layers=4,width=256,seq=128,vocab=2048"),
                         [](const auto& each) { return std::string(each.param).substr(0, 3); });

// Every block is there once, in order, and adds up to what the allocator says itself.
TEST(ObservedAllocator, IsTheAllocatorsOwnCount) {
  testing::TwinSessions twins("mlp:layers=2,width=256", 16, "sgd");
  executor::Device& device = twins.device();
  const at::Tensor buffer = device.allocate_buffer(3'000'000, 77);
  const auto observed = device.observed_allocator();
  ASSERT_TRUE(observed.has_value());
  Bytes end = 0;
  Bytes reserved = 0;
  int found = 0;
  for (const simulator::ObservedBlock& each : observed->blocks) {
    EXPECT_GE(each.address, end);
    end = each.address + each.size;
    reserved += each.size;
    EXPECT_TRUE(!each.allocated || each.serial >= 0) << each.address;
    const bool is_ours = each.tag == 77 && each.requested == 3'000'000;
    found += is_ours;
    EXPECT_TRUE(!is_ours || each.serial == device.allocation_serial(buffer.storage().data()));
  }
  EXPECT_EQ(found, 1);
  EXPECT_LE(reserved, device.memory().reserved);  // other streams have theirs
  EXPECT_GT(observed->room, 0);
  device.set_memory_limit(device.memory().reserved + (10 << 20));
  EXPECT_LE(device.observed_allocator()->room, 10 << 20);
  device.set_memory_limit(0);
}

}  // namespace
}  // namespace stowage
