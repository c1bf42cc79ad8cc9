// The waits of parameters that stream, one test each, on a device whose copies happen at the last
// moment. CMakeLists.txt builds this once more without each wait.
#include <ATen/Functions.h>
#include <c10/core/GradMode.h>
#include <gtest/gtest.h>

#include <utility>
#include <vector>

#include "executor/streamed_storages.h"
#include "tests/profiler_torch/hand_step.h"
#include "tests/profiler_torch/test_device.h"
#include "tests/waits/late_device.h"

namespace stowage {
namespace {

using executor::StreamedStorages;
using testing::hand_device;
using testing::LateDevice;

class StreamedWaits : public ::testing::Test {
 protected:
  StreamedWaits() : device_(hand_device()), slot_(64 * 4), streamed_(device_, one(), false) {
    before_ = bits(p_);
  }

  std::vector<StreamedStorages::Streamed> one() {
    return {{executor::state_storages(device_, {{"p", p_}}).front(),
             static_cast<Bytes>(slot_.size()), slot_.data()}};
  }
  static std::vector<char> bits(const at::Tensor& tensor) {
    return testing::fetch(hand_device(), tensor);
  }
  void load() {
    streamed_.start_load(0, 0);
    streamed_.finish_load(0);
  }
  void write() {
    const c10::AutoGradMode no_gradient(false);
    p_.add_(1);
    before_ = bits(p_);
  }
  void expect_right() {
    EXPECT_EQ(device_.freed_under_copy(), 0);
    device_.synchronize();
    EXPECT_TRUE(bits(streamed_.value(p_)) == before_);
  }

  const at::Tensor p_ = testing::parameter({64});
  LateDevice device_;
  std::vector<std::byte> slot_;
  StreamedStorages streamed_;
  std::vector<char> before_;
};

// Its own memory is given up after the copy out of it.
TEST_F(StreamedWaits, Adopt) {
  streamed_.adopt();
  expect_right();
}

// The buffer is used after the copy into it.
TEST_F(StreamedWaits, AwaitLoad) {
  streamed_.adopt();
  load();
  EXPECT_TRUE(bits(p_) == before_);
}

// The buffer is given up after the store.
TEST_F(StreamedWaits, Evict) {
  streamed_.adopt();
  load();
  write();
  streamed_.start_store(0);
  streamed_.evict(0);
  expect_right();
}

// Likewise when nobody had stored what was written.
TEST_F(StreamedWaits, StoreDirty) {
  streamed_.adopt();
  load();
  write();
  EXPECT_EQ(streamed_.evict(0), 64 * 4);
  expect_right();
}

// What is brought back is there.
TEST_F(StreamedWaits, Materialise) {
  streamed_.adopt();
  streamed_.materialise();
  EXPECT_TRUE(bits(p_) == before_);
}

}  // namespace
}  // namespace stowage
