#include "executor/saved_view.h"

#include <ATen/Functions.h>
#include <gtest/gtest.h>

#include <set>
#include <string>

#include "tests/executor/model_support.h"

namespace stowage::executor {
namespace {

TEST(SavedView, KnowsEveryDtypeOfLibTorchAndItsWidth) {
  const auto count = static_cast<int>(at::ScalarType::NumOptions);
  std::set<std::string> names;
  for (int number = 0; number < count; ++number) {
    const auto dtype = static_cast<at::ScalarType>(number);
    if (dtype == at::ScalarType::Undefined) continue;
    SCOPED_TRACE(c10::toString(dtype));
    EXPECT_NE(dtype_of(dtype), DType::other);
    EXPECT_EQ(element_bytes(dtype_of(dtype)), static_cast<Bytes>(c10::elementSize(dtype)));
    names.insert(name_of(dtype_of(dtype)));
  }
  EXPECT_EQ(names.size(), static_cast<std::size_t>(count) - 1);
  EXPECT_STREQ(name_of(dtype_of(at::kBFloat16)), "bfloat16");
  EXPECT_STREQ(name_of(dtype_of(at::kFloat8_e4m3fn)), "float8_e4m3fn");
  EXPECT_STREQ(name_of(dtype_of(at::kUInt64)), "uint64");
  EXPECT_EQ(dtype_of(at::ScalarType::Undefined), DType::other);
}

// The copy of a view must hold all of the view.
TEST(SavedView, IsRefusedOutsideOfWhatWasCopied) {
  test_device();
  const at::Tensor whole = at::arange(512, at::kFloat);
  const SavedView view = SavedView::of(whole.narrow(0, 128, 128));  // bytes 512 to 1024
  const auto buffer = [](std::int64_t bytes) {
    return at::zeros({bytes}, at::TensorOptions(at::kByte)).storage();
  };
  EXPECT_NO_THROW(static_cast<void>(view.over(buffer(512), 512)));
  EXPECT_NO_THROW(static_cast<void>(view.over(buffer(1024), 0)));
  EXPECT_THROW(static_cast<void>(view.over(buffer(511), 512)), c10::Error);
  EXPECT_THROW(static_cast<void>(view.over(buffer(512), 256)), c10::Error);
  EXPECT_THROW(static_cast<void>(view.over(buffer(512), 516)), c10::Error);
  EXPECT_NO_THROW(static_cast<void>(SavedView::of(whole.narrow(0, 9, 0)).over(buffer(0), 0)));
}

}  // namespace
}  // namespace stowage::executor
