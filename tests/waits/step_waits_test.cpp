// The waits of the executor outside of plans, on a device whose copies happen at the last moment.
#include <ATen/Functions.h>
#include <gtest/gtest.h>

#include <cstdio>
#include <memory>
#include <string>
#include <utility>

#include "executor/host_copy.h"
#include "executor/piece_digests.h"
#include "executor/tensor_dump.h"
#include "executor/training_step.h"
#include "tests/profiler_torch/hand_step.h"
#include "tests/profiler_torch/test_device.h"
#include "tests/waits/late_device.h"

namespace stowage {
namespace {

using testing::fetch;
using testing::hand_device;
using testing::LateDevice;

// The tensor may be written as soon as the copy is made.
TEST(StepWaits, HostCopyOut) {
  const at::Tensor tensor = testing::input({8, 8});
  const auto bytes = fetch(hand_device(), tensor);
  LateDevice device(hand_device());
  executor::HostPool pool(device);
  const executor::HostCopy copy(pool, tensor);
  tensor.zero_();
  EXPECT_TRUE(fetch(hand_device(), copy.load(executor::kOffPlanTag)) == bytes);
}

// What comes back may be used at once.
TEST(StepWaits, HostCopyIn) {
  const at::Tensor tensor = testing::input({8, 8});
  const auto bytes = fetch(hand_device(), tensor);
  LateDevice device(hand_device());
  executor::HostPool pool(device);
  const executor::HostCopy copy(pool, tensor);
  EXPECT_TRUE(fetch(hand_device(), copy.load(executor::kOffPlanTag)) == bytes);
}

executor::TrainingStep mlp_step(executor::Device& device) {
  auto spec = executor::parse_model_spec("mlp:layers=2,width=16,batch=4");
  EXPECT_TRUE(spec.ok());
  auto model = executor::make_model(*spec, device.torch_device(), /*seed=*/1);
  EXPECT_TRUE(model.ok()) << model.error().text();
  return {device, std::move(model).value(), {}};
}

// The loss is read when it has arrived.
TEST(StepWaits, Loss) {
  auto plain = mlp_step(hand_device());
  LateDevice device(hand_device());
  auto late = mlp_step(device);
  for (std::int64_t k = 0; k < 3; ++k) EXPECT_EQ(late.run(k), plain.run(k));
}

// A dump holds the tensor's bytes, not what the buffer held before.
TEST(StepWaits, Dump) {
  const at::Tensor tensor = testing::input({64});
  LateDevice device(hand_device());
  std::FILE* const expected = std::tmpfile();
  std::FILE* const dumped = std::tmpfile();
  ASSERT_TRUE(expected != nullptr && dumped != nullptr);
  for (const auto& [to, file] : {std::pair<executor::Device&, std::FILE*>{hand_device(), expected},
                                 std::pair<executor::Device&, std::FILE*>{device, dumped}}) {
    executor::TensorDumpWriter writer(to, ::fileno(file));
    EXPECT_TRUE(writer.add(0, "gradient", {"w", tensor}).ok());
  }
  const auto difference = executor::compare_dumps(::fileno(dumped), ::fileno(expected), 0);
  ASSERT_TRUE(difference.ok()) << difference.error().text();
  EXPECT_TRUE(difference->bitwise);
  std::fclose(expected);
  std::fclose(dumped);
}

// What is hashed are the tensor's bytes.
TEST(StepWaits, DumpDigests) {
  const at::Tensor tensor = testing::input({64});
  const auto* const data = static_cast<const std::byte*>(tensor.const_data_ptr());
  const auto bytes = static_cast<Bytes>(tensor.nbytes());
  LateDevice device(hand_device());
  auto hasher = executor::PieceHasher::create(device);
  ASSERT_TRUE(hasher.ok()) << hasher.error().text();
  const auto digests = hasher->digests(data, bytes);
  ASSERT_EQ(digests.size(), 1U);
  EXPECT_EQ(digests[0], executor::digest_of(data, bytes));
}

}  // namespace
}  // namespace stowage
