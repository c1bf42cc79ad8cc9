#include "tests/profiler_torch/test_device.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <stdexcept>
#include <utility>

#include "executor/device/cpu_device.h"
#ifdef STOWAGE_HAVE_CUDA
#include "executor/device/cuda/cuda_device.h"
#endif
#include "tests/support/gpu_state.h"

namespace stowage::testing {

namespace {

// Skips every test of the process where the device is not there, fails where it does not work.
class DeviceThere final : public ::testing::Environment {
 public:
  void SetUp() override {
    if (!on_gpu()) return;
#ifdef STOWAGE_HAVE_CUDA
    STOWAGE_NEEDS_GPU(executor::cuda_present());
#else
    GTEST_SKIP() << "skipped: no CUDA device";
#endif
  }
};

[[maybe_unused]] const auto* const g_device_there =
    ::testing::AddGlobalTestEnvironment(new DeviceThere);

}  // namespace

bool on_gpu() {
  const char* const name = std::getenv("STOWAGE_TEST_DEVICE");
  return name != nullptr && std::string(name) == "cuda";
}

simulator::Schedule in_test_memory(simulator::Schedule schedule) {
  const char* const name = std::getenv("STOWAGE_TEST_PLACEMENT");
  const bool is_planned = name != nullptr && std::string(name) == "planned";
  if (is_planned) schedule.placement = simulator::PlacementMode::planned;
  return schedule;
}

std::string test_device_name() {
  return on_gpu() ? "cuda" : "cpu";
}

std::unique_ptr<executor::Device> make_delayed_device(
    std::function<void(std::uint64_t number)> delay) {
#ifdef STOWAGE_HAVE_CUDA
  if (on_gpu()) {
    executor::CudaDevice::Options options;
    options.delay = [delay](executor::CudaQueue, std::uint64_t number) { delay(number); };
    auto device = executor::CudaDevice::create(std::move(options));
    if (!device) throw std::runtime_error(device.error().text());
    return std::move(device).value();
  }
#endif
  executor::CpuDevice::Options options;
  options.before_copy = [delay](executor::CopyLane, std::uint64_t number) { delay(number); };
  auto device = executor::CpuDevice::create(std::move(options));
  if (!device) throw std::runtime_error(device.error().text());
  return std::move(device).value();
}

Copied copied(executor::Device& device, executor::CopyLane lane) {
  device.synchronize();
#ifdef STOWAGE_HAVE_CUDA
  if (const auto* const cuda = dynamic_cast<const executor::CudaDevice*>(&device)) {
    const auto totals = cuda->lane_totals(lane);
    return {totals.copies, totals.bytes};
  }
#endif
  const auto totals = dynamic_cast<const executor::CpuDevice&>(device).lane_totals(lane);
  return {totals.copies, totals.bytes};
}

std::vector<char> fetch(executor::Device& device, const void* data, std::size_t bytes) {
  std::vector<char> result(bytes);
  device.copy_on_compute(result.data(), data, static_cast<Bytes>(bytes));
  device.synchronize_compute();
  return result;
}

std::vector<char> fetch(executor::Device& device, const at::Tensor& tensor) {
  return fetch(device, tensor.const_data_ptr(), tensor.nbytes());
}

void store(executor::Device& device, const at::Tensor& tensor, const std::vector<char>& bytes) {
  ASSERT_EQ(tensor.nbytes(), bytes.size());
  device.copy_on_compute(tensor.mutable_data_ptr(), bytes.data(), static_cast<Bytes>(bytes.size()));
  device.synchronize_compute();
}

}  // namespace stowage::testing
