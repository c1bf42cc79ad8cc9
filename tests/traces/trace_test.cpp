#include "traces/trace.h"

#include <gtest/gtest.h>

namespace stowage {
namespace {

TEST(ByteRange, CoversExactlyWhatIsTouched) {
  // 4 x 8 floats, contiguous: 32 elements.
  EXPECT_EQ(byte_range({4, 8}, {8, 1}, 0, 4).end, 128);
  // Begins at element 80 = byte 320: down to 256. Last element 80 + 3 = 83, ends at 336.
  const ByteRange part = byte_range({4}, {1}, 80, 4);
  EXPECT_EQ(part.begin, 256);
  EXPECT_EQ(part.end, 336);
  EXPECT_EQ(part.size(), 80);
  // Every second column of 4 x 8: last element 3 * 8 + 3 * 2 = 30.
  EXPECT_EQ(byte_range({4, 4}, {8, 2}, 0, 4).end, 124);
  // Expanded: stride 0 touches one row only.
  EXPECT_EQ(byte_range({100, 8}, {0, 1}, 0, 4).end, 32);
  // A scalar.
  EXPECT_EQ(byte_range({}, {}, 3, 8).end, 32);
}

TEST(ByteRange, OfAnEmptyViewIsEmpty) {
  const ByteRange range = byte_range({std::int64_t{1} << 50, 0}, {std::int64_t{1} << 50, 1}, 99, 4);
  EXPECT_EQ(range.begin, 0);
  EXPECT_EQ(range.end, 0);
}

TEST(Names, AreThoseOfTheFiles) {
  EXPECT_STREQ(name_of(StorageClass::activation), "activation");
  EXPECT_STREQ(name_of(StorageClass::other), "other");
  EXPECT_STREQ(name_of(Evidence::data_flow), "data_flow");
  EXPECT_STREQ(name_of(PhaseKind::optimizer), "optimizer");
  EXPECT_STREQ(name_of(DType::float32), "float32");
  EXPECT_STREQ(name_of(DType::boolean), "boolean");
  EXPECT_STREQ(name_of(UseMode::in_place), "in_place");
  EXPECT_STREQ(name_of(EventKind::layer_forward_begin), "layer_forward_begin");
  EXPECT_STREQ(name_of(EventKind::backward_end), "backward_end");
  EXPECT_STREQ(name_of(GpuKind::memset), "memset");
  EXPECT_STREQ(name_of(static_cast<EventKind>(200)), "unknown");
}

TEST(ElementBytes, OfEveryType) {
  EXPECT_EQ(element_bytes(DType::boolean), 1);
  EXPECT_EQ(element_bytes(DType::bfloat16), 2);
  EXPECT_EQ(element_bytes(DType::float32), 4);
  EXPECT_EQ(element_bytes(DType::int64), 8);
  EXPECT_EQ(element_bytes(DType::complex128), 16);
  EXPECT_EQ(element_bytes(DType::complex32), 4);
  EXPECT_EQ(element_bytes(DType::uint64), 8);
  EXPECT_EQ(element_bytes(DType::float8_e4m3fn), 1);
}

}  // namespace
}  // namespace stowage
