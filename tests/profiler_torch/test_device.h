// The device that these tests run on: the environment variable STOWAGE_TEST_DEVICE says "cpu" (the
// default) or "cuda". ctest registers them once for each; without a GPU the second kind says
// "skipped: no CUDA device".
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "executor/device/device.h"
#include "simulator/schedule/schedule.h"

namespace stowage::testing {

[[nodiscard]] bool on_gpu();
// STOWAGE_TEST_PLACEMENT=planned: schedules that say nothing else run in planned memory.
[[nodiscard]] simulator::Schedule in_test_memory(simulator::Schedule schedule);
[[nodiscard]] std::string test_device_name();  // "cpu" or "cuda"

// A device whose copies start after pauses: `delay` runs on another thread in front of each copy,
// on a GPU once on the lane and once on compute. Throws with the error's text.
[[nodiscard]] std::unique_ptr<executor::Device> make_delayed_device(
    std::function<void(std::uint64_t number)> delay);

// What a lane has copied since the device was made; `device` comes from make_delayed_device().
struct Copied {
  std::uint64_t copies = 0;
  Bytes bytes = 0;
};
[[nodiscard]] Copied copied(executor::Device& device, executor::CopyLane lane);

// Bytes of device memory, fetched without an op or a device allocation; and back.
[[nodiscard]] std::vector<char> fetch(executor::Device& device, const void* data,
                                      std::size_t bytes);
// Of a dense tensor.
[[nodiscard]] std::vector<char> fetch(executor::Device& device, const at::Tensor& tensor);
void store(executor::Device& device, const at::Tensor& tensor, const std::vector<char>& bytes);

}  // namespace stowage::testing
