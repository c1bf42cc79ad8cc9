// Parameters that leave the CPU device and come back: bytes, bits, versions, and what others see.
#include "executor/streamed_storages.h"

#include <ATen/ATen.h>
#include <gtest/gtest.h>
#include <torch/csrc/api/include/torch/nn/utils/clip_grad.h>

#include <cstring>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

#include "tests/executor/model_support.h"
#include "tests/profiler_torch/forwarding_device.h"

namespace stowage::executor {
namespace {

using Bits = std::vector<std::vector<char>>;

std::vector<char> bits_of(const at::Tensor& tensor) {
  const auto* const data = static_cast<const char*>(tensor.const_data_ptr());
  return {data, data + tensor.nbytes()};
}

at::Tensor leaf(at::IntArrayRef sizes) {
  return at::rand(sizes).requires_grad_(true);
}

std::string error_of(const std::function<void()>& body) {
  try {
    body();
  } catch (const c10::Error& error) {
    return error.what_without_backtrace();
  }
  return "nothing was thrown";
}

// All parameters stream, in slots of their own.
struct Fixture {
  explicit Fixture(std::vector<NamedTensor> named, Device& on = test_device())
      : device(on), parameters(std::move(named)) {
    std::vector<StreamedStorages::Streamed> streamed;
    for (StateStorage& storage : state_storages(device, parameters)) {
      bytes.push_back(storage.bytes());
      slots.emplace_back(static_cast<std::size_t>(storage.bytes()));
      streamed.push_back({std::move(storage), bytes.back(), slots.back().data()});
    }
    stream.emplace(device, std::move(streamed), /*poison_buffers=*/true);
  }

  [[nodiscard]] Bytes all() const {
    Bytes sum = 0;
    for (const Bytes each : bytes) sum += each;
    return sum;
  }
  [[nodiscard]] Bits bits() const {
    Bits all_bits;
    for (const NamedTensor& each : parameters) all_bits.push_back(bits_of(each.tensor));
    return all_bits;
  }
  void load(std::size_t index) {
    stream->start_load(index, 7);
    stream->finish_load(index);
  }

  Device& device;
  std::vector<NamedTensor> parameters;
  std::vector<Bytes> bytes;
  std::vector<std::vector<std::byte>> slots;
  std::optional<StreamedStorages> stream;
};

Bytes requested() {
  return test_device().memory().requested;
}

TEST(StreamedStorages, AdoptionGivesUpExactlyTheirBytesAndMaterialiseTakesThemBack) {
  test_device();
  Fixture f({{"a", leaf({33, 7})}, {"b", leaf({5})}});
  const Bits before = f.bits();
  const Bytes start = requested();
  ASSERT_TRUE(f.stream->check().ok());
  f.stream->adopt();
  EXPECT_EQ(requested(), start - (33 * 7 + 5) * 4);
  EXPECT_EQ(f.all(), (33 * 7 + 5) * 4);
  f.load(1);
  EXPECT_EQ(requested(), start - 33 * 7 * 4);
  EXPECT_TRUE(bits_of(f.parameters[1].tensor) == before[1]);
  f.stream->materialise();
  EXPECT_EQ(requested(), start);
  EXPECT_TRUE(f.bits() == before);
  // And once more: its memory is now the buffer's.
  ASSERT_TRUE(f.stream->check().ok());
  f.stream->adopt();
  EXPECT_EQ(requested(), start - f.all());
  f.stream->materialise();
  EXPECT_TRUE(f.bits() == before);
}

TEST(StreamedStorages, KeepTheirMemoryWhenTheOwnerGoesAfterMaterialise) {
  test_device();
  const at::Tensor a = leaf({9});
  const std::vector<char> before = bits_of(a);
  {
    Fixture f({{"a", a}});
    f.stream->adopt();
    f.stream->materialise();
  }
  EXPECT_TRUE(bits_of(a) == before);
  EXPECT_GE(test_device().allocation_serial(a.const_data_ptr()), 0);
}

TEST(StreamedStorages, AnyTouchWhileAbsentNamesTheParameter) {
  test_device();
  const at::Tensor weight = leaf({6, 6});
  weight.mutable_grad() = at::ones({6, 6});
  Fixture f({{"layers.3.up.weight", weight}});
  const auto expect_refused = [&](const std::function<void()>& touch) {
    const std::string text = error_of(touch);
    EXPECT_NE(text.find("parameter layers.3.up.weight is not on the device"), std::string::npos)
        << text;
    EXPECT_NE(text.find("materialise()"), std::string::npos) << text;
  };
  const at::Tensor x = at::ones({2, 6});
  f.stream->adopt();
  const auto expect_all_refused = [&] {
    expect_refused([&] { static_cast<void>(weight.clone()); });
    expect_refused([&] { static_cast<void>(weight.detach().clone()); });
    expect_refused([&] { static_cast<void>(at::linear(x, weight)); });
    expect_refused([&] { static_cast<void>(weight.norm()); });
    expect_refused([&] { static_cast<void>(weight.t().sum()); });
    expect_refused([&] { static_cast<void>(weight.data_ptr()); });
    expect_refused([&] {
      const at::NoGradGuard no_grad;
      weight.mul_(2);
    });
    expect_refused([&] {
      const at::NoGradGuard no_grad;
      at::zeros({6, 6}).copy_(weight);
    });
    expect_refused([&] {
      std::ostringstream out;
      out << weight;
    });
  };
  expect_all_refused();
  f.stream->start_load(0, 7);  // on its way is not there
  expect_all_refused();
  f.stream->finish_load(0);
  EXPECT_EQ(at::linear(x, weight).sizes(), (at::IntArrayRef{2, 6}));
  f.stream->evict(0);
  expect_all_refused();
  // The gradient is another storage: clipping reads gradients alone and works.
  EXPECT_GT(torch::nn::utils::clip_grad_norm_({weight}, 1.0), 5.9);
}

TEST(StreamedStorages, ViewsMadeWhilePresentSeeTheNextLoad) {
  test_device();
  const at::Tensor weight = leaf({8, 4});
  Fixture f({{"w", weight}});
  f.stream->adopt();
  const Bytes absent = requested();
  f.load(0);
  const at::Tensor view = weight.tensor_data().t();
  const at::Tensor expected = view.clone();
  const Bytes with_clone = requested();
  EXPECT_EQ(f.stream->index_of(view), 0);
  f.stream->evict(0);
  EXPECT_EQ(requested(), with_clone - 8 * 4 * 4) << "the view holds device memory";
  EXPECT_NE(error_of([&] { f.stream->check_present(0); }).find("parameter w"), std::string::npos);
  f.load(0);
  EXPECT_TRUE(at::equal(view, expected));
  f.stream->evict(0);
  EXPECT_EQ(requested(), absent + 8 * 4 * 4);
}

// A view is not the parameter's own tensor: no guard stands before it.
TEST(StreamedStorages, AViewThatIsReadWhileAbsentNamesTheParameter) {
  test_device();
  const at::Tensor weight = leaf({8, 4});
  Fixture f({{"layers.3.up.weight", weight}});
  const at::Tensor x = at::ones({2, 8});
  f.stream->adopt();
  f.load(0);
  const at::Tensor view = weight.tensor_data().t();
  const at::Tensor expected = view.clone();
  const auto expect_refused = [&](const std::function<void()>& touch) {
    const std::string text = error_of(touch);
    EXPECT_NE(text.find("a view of parameter layers.3.up.weight is read"), std::string::npos)
        << text;
  };
  for (int repeat = 0; repeat < 2; ++repeat) {
    f.stream->evict(0);
    expect_refused([&] { static_cast<void>(view.clone()); });
    expect_refused([&] { static_cast<void>(at::mm(x, view.t())); });
    expect_refused([&] { static_cast<void>(view.slice(0, 1).sum()); });
    expect_refused([&] { static_cast<void>(view.const_data_ptr()); });
    expect_refused([&] { view.mul_(2); });
    f.load(0);
    EXPECT_TRUE(at::equal(view, expected));
  }
  EXPECT_TRUE(f.stream->hide() == 0);
  expect_refused([&] { static_cast<void>(view.clone()); });
  f.stream->materialise();
  EXPECT_TRUE(at::equal(view, expected));
}

TEST(StreamedStorages, VersionsAreTheOptimizersAlone) {
  test_device();
  const at::Tensor weight = leaf({8});
  const auto version = weight._version();
  Fixture f({{"w", weight}});
  f.stream->adopt();
  f.load(0);
  f.stream->start_store(0);
  EXPECT_EQ(f.stream->evict(0), 0);
  f.load(0);
  EXPECT_EQ(weight._version(), version);
  {
    const at::NoGradGuard no_grad;
    weight.add_(1);
  }
  EXPECT_EQ(weight._version(), version + 1);
  f.stream->evict(0);
  f.stream->materialise();
  EXPECT_EQ(weight._version(), version + 1);
}

TEST(StreamedStorages, WhatWasWrittenIsNeverLost) {
  test_device();
  const at::Tensor weight = leaf({50});
  std::vector<float> expected(50);
  std::memcpy(expected.data(), weight.const_data_ptr(), 200);
  Fixture f({{"w", weight}});
  const auto write = [&] {
    const at::NoGradGuard no_grad;
    weight.add_(1);
    for (float& each : expected) each += 1;
  };
  const auto expect_right = [&] {
    EXPECT_EQ(std::memcmp(weight.const_data_ptr(), expected.data(), 200), 0);
  };
  f.stream->adopt();
  f.load(0);
  write();
  f.stream->start_store(0);
  EXPECT_EQ(f.stream->evict(0), 0) << "the store had it";
  f.load(0);
  expect_right();
  write();  // nobody stores this one
  EXPECT_EQ(f.stream->evict(0), 200);
  f.load(0);
  expect_right();
  f.stream->start_store(0);
  write();  // behind its store
  EXPECT_EQ(f.stream->evict(0), 200);
  f.load(0);
  expect_right();
  write();
  EXPECT_EQ(f.stream->give_up(), 200);
  f.load(0);
  expect_right();
  EXPECT_EQ(f.stream->give_up(), 0);
  f.load(0);
  write();
  f.stream->materialise();
  expect_right();
  write();  // in its own memory
  f.stream->adopt();
  f.load(0);
  expect_right();
}

// SGD writes through .data(), which counts no version.
TEST(StreamedStorages, AnAnnouncedWriteIsNotLostEither) {
  test_device();
  const at::Tensor weight = leaf({50});
  Fixture f({{"w", weight}});
  f.stream->adopt();
  f.load(0);
  const auto version = weight._version();
  f.stream->mark_dirty(0);
  weight.data().add_(1);
  const std::vector<char> expected = bits_of(weight);
  EXPECT_EQ(weight._version(), version);
  EXPECT_EQ(f.stream->evict(0), 200);
  f.load(0);
  EXPECT_TRUE(bits_of(weight) == expected);
  EXPECT_EQ(f.stream->evict(0), 0);
}

TEST(StreamedStorages, HiddenOnesKeepTheirMemoryAndCannotBeTouched) {
  test_device();
  const at::Tensor weight = leaf({50});
  Fixture f({{"w", weight}});
  f.stream->adopt();
  f.load(0);
  const Bytes present = requested();
  {
    const at::NoGradGuard no_grad;
    weight.add_(1);
  }
  const std::vector<char> expected = bits_of(weight);
  EXPECT_EQ(f.stream->hide(), 200);
  EXPECT_EQ(requested(), present);
  EXPECT_NE(error_of([&] { weight.data().add_(1); }).find("parameter w is not"), std::string::npos);
  EXPECT_TRUE(f.stream->check().ok());
  EXPECT_TRUE(bits_of(f.stream->value(weight)) == expected);
  f.stream->finish_load(0);
  EXPECT_TRUE(bits_of(weight) == expected);
  EXPECT_EQ(f.stream->hide(), 0);
  f.stream->materialise();
  EXPECT_EQ(requested(), present);
  EXPECT_TRUE(bits_of(weight) == expected);
}

// Trap 2: two tensors, one storage, and one tensor listed twice.
TEST(StreamedStorages, TiedOnesShareOneLoad) {
  test_device();
  const at::Tensor embed = leaf({10, 3});
  const at::Tensor head = embed.detach().requires_grad_(true);
  Fixture f({{"embed", embed}, {"head", head}, {"embed.again", embed}});
  ASSERT_EQ(f.bytes, (std::vector<Bytes>{120}));
  const Bits before = f.bits();
  const Bytes start = requested();
  ASSERT_TRUE(f.stream->check().ok()) << f.stream->check().error().text();
  f.stream->adopt();
  EXPECT_EQ(requested(), start - 120);
  EXPECT_NE(error_of([&] { static_cast<void>(head.sum()); }).find("parameter head is not"),
            std::string::npos);
  f.load(0);
  EXPECT_EQ(requested(), start);
  EXPECT_TRUE(f.bits() == before);
  EXPECT_EQ(embed.data_ptr(), head.data_ptr());
  {
    const at::NoGradGuard no_grad;
    head.mul_(3);
  }
  EXPECT_EQ(f.stream->evict(0), 120) << "a write through either of them counts";
  f.stream->materialise();
  EXPECT_EQ(embed.data_ptr(), head.data_ptr());
  EXPECT_FALSE(f.bits() == before);
  EXPECT_TRUE(at::equal(embed, head));
}

std::vector<NamedTensor> flattened(bool through_autograd) {
  const at::Tensor flat = at::rand({20});
  const auto part = [&](std::int64_t begin, std::int64_t size, at::IntArrayRef shape) {
    at::Tensor view = flat.narrow(0, begin, size).view(shape);
    if (!through_autograd) view = view.detach();
    return view.requires_grad_(true);
  };
  return {{"first", part(0, 12, {3, 4})}, {"second", part(12, 8, {8})}};
}

TEST(StreamedStorages, FlattenedOnesAreViewsOfOneStorage) {
  test_device();
  for (const bool through_autograd : {false, true}) {
    SCOPED_TRACE(through_autograd);
    Fixture f(flattened(through_autograd));
    ASSERT_EQ(f.bytes, (std::vector<Bytes>{80}));
    const Bits before = f.bits();
    const Bytes start = requested();
    ASSERT_TRUE(f.stream->check().ok()) << f.stream->check().error().text();
    f.stream->adopt();
    EXPECT_EQ(requested(), start - 80);
    EXPECT_NE(error_of([&] {
                static_cast<void>(f.parameters[1].tensor.sum());
              }).find("parameter second is not"),
              std::string::npos);
    EXPECT_TRUE(bits_of(f.stream->value(f.parameters[1].tensor)) == before[1]);
    f.load(0);
    EXPECT_TRUE(f.bits() == before);
    f.stream->evict(0);
    f.stream->materialise();
    EXPECT_TRUE(f.bits() == before);
  }
}

TEST(StreamedStorages, ValuesAreReadWithoutMovingAnything) {
  test_device();
  const at::Tensor weight = leaf({4, 6});
  const at::Tensor other = leaf({2});
  Fixture f({{"w", weight}});
  const std::vector<char> before = bits_of(weight);
  f.stream->adopt();
  const Bytes absent = requested();
  const at::Tensor value = f.stream->value(weight);
  EXPECT_EQ(value.sizes(), weight.sizes());
  EXPECT_TRUE(bits_of(value) == before);
  EXPECT_EQ(requested(), absent);
  EXPECT_TRUE(f.stream->value(other).is_same(other));
  f.load(0);
  EXPECT_TRUE(f.stream->value(weight).is_same(weight));
}

TEST(StreamedStorages, RefuseWhatSomebodyElseHolds) {
  test_device();
  const at::Tensor weight = leaf({4, 6});
  Fixture f({{"w", weight}});
  {
    const at::Tensor view = weight.detach().t();
    const Status status = f.stream->check();
    ASSERT_FALSE(status.ok());
    EXPECT_NE(status.error().text().find("parameter w cannot stream: somebody else holds"),
              std::string::npos)
        << status.error().text();
  }
  EXPECT_TRUE(f.stream->check().ok());
  f.stream->adopt();
  f.load(0);
  at::Tensor loss = at::mm(at::ones({2, 6}).requires_grad_(), weight.t()).sum();  // not dropped
  f.stream->evict(0);
  EXPECT_FALSE(f.stream->check().ok());
  loss.reset();
  EXPECT_TRUE(f.stream->check().ok());
  weight.set_data(at::zeros({4, 6}));
  const Status given = f.stream->check();
  ASSERT_FALSE(given.ok());
  EXPECT_NE(given.error().text().find("it was given other memory"), std::string::npos);
}

TEST(StreamedStorages, OutOfMemoryLosesNothing) {
  test_device();
  const at::Tensor a = leaf({100});
  const at::Tensor b = leaf({100});
  Fixture f({{"a", a}, {"b", b}});
  const Bits before = f.bits();
  f.stream->adopt();
  test_device().set_memory_limit(requested() + 500);
  f.load(0);
  EXPECT_THROW(f.stream->start_load(1, 7), c10::OutOfMemoryError);
  EXPECT_THROW(f.stream->materialise(), c10::OutOfMemoryError);
  EXPECT_TRUE(f.stream->is_present(0));
  EXPECT_FALSE(f.stream->is_present(1));
  test_device().set_memory_limit(0);
  f.stream->materialise();
  EXPECT_TRUE(f.bits() == before);
}

// What has room comes back, whatever lies ahead of it.
TEST(StreamedStorages, MaterialiseGoesOnPastWhatHasNoRoom) {
  test_device();
  Fixture f({{"large", leaf({1000})}, {"hidden", leaf({100})}, {"small", leaf({10})}});
  const Bits before = f.bits();
  f.stream->adopt();
  f.load(1);
  {
    const at::NoGradGuard no_grad;
    f.parameters[1].tensor.add_(1);
  }
  const std::vector<char> written = bits_of(f.parameters[1].tensor);
  f.stream->evict(1);
  for (int repeat = 0; repeat < 2; ++repeat) {
    f.load(1);
    f.stream->hide();
    test_device().set_memory_limit(requested() + 100);
    EXPECT_THROW(f.stream->materialise(), c10::OutOfMemoryError);
    test_device().set_memory_limit(0);
    EXPECT_TRUE(f.stream->is_absent(0));
    EXPECT_TRUE(bits_of(f.parameters[1].tensor) == written);
    EXPECT_TRUE(bits_of(f.parameters[2].tensor) == before[2]);
    ASSERT_TRUE(f.stream->check().ok()) << f.stream->check().error().text();
    f.stream->adopt();
    EXPECT_TRUE(f.stream->is_absent(1) && f.stream->is_absent(2));
  }
  f.stream->materialise();
  EXPECT_TRUE(bits_of(f.parameters[0].tensor) == before[0]);
  EXPECT_TRUE(bits_of(f.parameters[1].tensor) == written);
}

// Its n-th copy from now on throws.
class FailsToCopy final : public testing::ForwardingDevice {
 public:
  using ForwardingDevice::ForwardingDevice;
  CopyTicket copy_async(CopyLane lane, void* destination, const void* source,
                        Bytes bytes) override {
    TORCH_CHECK(--copies_left != 0, "the copy fails");
    return ForwardingDevice::copy_async(lane, destination, source, bytes);
  }
  int copies_left = 0;  // 0 = none fails
};

TEST(StreamedStorages, CanBeAdoptedAgainWhenACopyFailed) {
  FailsToCopy device(test_device());
  Fixture f({{"a", leaf({3})}, {"b", leaf({4})}, {"c", leaf({5})}}, device);
  const Bits before = f.bits();
  const Bytes start = requested();
  device.copies_left = 2;
  EXPECT_NE(error_of([&] { f.stream->adopt(); }).find("the copy fails"), std::string::npos);
  EXPECT_EQ(requested(), start);
  EXPECT_TRUE(f.bits() == before);
  for (std::size_t i = 0; i < 3; ++i) {
    EXPECT_EQ(f.stream->index_of(f.parameters[i].tensor), static_cast<std::int32_t>(i));
  }
  ASSERT_TRUE(f.stream->check().ok()) << f.stream->check().error().text();
  f.stream->adopt();
  EXPECT_EQ(requested(), start - f.all());
  f.stream->materialise();
  EXPECT_TRUE(f.bits() == before);
}

TEST(StreamedStorages, AreFoundInTheOrderOfTheirFirstParameter) {
  test_device();
  const at::Tensor b = leaf({3});
  const at::Tensor a = leaf({2});
  const at::Tensor empty = leaf({0});
  const auto storages = state_storages(
      test_device(), {{"a", a}, {"none", empty}, {"b", b}, {"a2", a.detach().requires_grad_()}});
  ASSERT_EQ(storages.size(), 2);
  EXPECT_EQ(storages[0].tensors.size(), 2);
  EXPECT_EQ(storages[0].bytes(), 8);
  EXPECT_EQ(storages[1].tensors.front().name, "b");
}

}  // namespace
}  // namespace stowage::executor
