#include "executor/tensor_dump.h"

#include <ATen/Functions.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <cmath>
#include <cstdio>
#include <limits>
#include <vector>

#include "tests/executor/model_support.h"

namespace stowage::executor {
namespace {

// A file without a name.
class Dump {
 public:
  Dump() : file_(std::tmpfile()) {}
  ~Dump() { std::fclose(file_); }
  Dump(const Dump&) = delete;
  Dump& operator=(const Dump&) = delete;
  [[nodiscard]] int descriptor() const { return ::fileno(file_); }

  Dump& add(const std::string& name, const at::Tensor& tensor) {
    EXPECT_TRUE(
        TensorDumpWriter(test_device(), descriptor()).add(0, "gradient", {name, tensor}).ok());
    return *this;
  }

 private:
  std::FILE* file_;
};

DumpDifference compared(const Dump& a, const Dump& b, double rtol = 0) {
  auto difference = compare_dumps(a.descriptor(), b.descriptor(), rtol);
  EXPECT_TRUE(difference.ok());
  return difference.ok() ? *difference : DumpDifference{};
}

at::Tensor floats(const std::vector<float>& values) {
  return at::tensor(values);
}

constexpr float kInfinity = std::numeric_limits<float>::infinity();

TEST(CompareDumps, EqualBytes) {
  Dump a;
  Dump b;
  for (Dump* dump : {&a, &b}) dump->add("w", floats({1, NAN, kInfinity})).add("none", {});
  const DumpDifference d = compared(a, b);
  EXPECT_TRUE(d.bitwise);
  EXPECT_TRUE(d.within_tolerance);
  EXPECT_EQ(d.tensors, 2);
  EXPECT_EQ(d.differing, 0);
  EXPECT_EQ(d.first, "");
}

// The second of three tensors differs in one element, by 0.5 of 2.
TEST(CompareDumps, OneElement) {
  Dump a;
  Dump b;
  a.add("u", floats({1})).add("w", floats({1, 2.5, kInfinity})).add("x", floats({3}));
  b.add("u", floats({1})).add("w", floats({1, 2, kInfinity})).add("x", floats({3}));
  const DumpDifference d = compared(a, b);
  EXPECT_FALSE(d.bitwise);
  EXPECT_FALSE(d.within_tolerance);
  EXPECT_EQ(d.max_abs_diff, 0.5);  // equal infinities are not apart
  EXPECT_EQ(d.tensors, 3);
  EXPECT_EQ(d.differing, 1);
  EXPECT_EQ(d.first, "step 0 gradient w");
  ASSERT_EQ(d.each.size(), 1U);
  EXPECT_EQ(d.each[0].name, "step 0 gradient w");
  EXPECT_EQ(d.each[0].max_abs_diff, 0.5);
  EXPECT_TRUE(compared(a, b, 0.25).within_tolerance);
  EXPECT_FALSE(compared(a, b, 0.24).within_tolerance);
}

// The same value in other bits, and the last byte of more than one chunk.
TEST(CompareDumps, BitsNotValues) {
  Dump zero;
  Dump minus_zero;
  zero.add("w", floats({0.0F}));
  minus_zero.add("w", floats({-0.0F}));
  EXPECT_FALSE(compared(zero, minus_zero).bitwise);
  EXPECT_EQ(compared(zero, minus_zero).max_abs_diff, 0);

  Dump a;
  Dump b;
  const at::Tensor long_one = at::zeros({(1 << 18) + 1});
  a.add("w", long_one);
  long_one[1 << 18] = 1;
  b.add("w", long_one);
  EXPECT_FALSE(compared(a, b).bitwise);
  EXPECT_EQ(compared(a, b).max_abs_diff, 1);
}

TEST(CompareDumps, NotANumberIsInfinitelyApart) {
  Dump a;
  Dump b;
  a.add("w", floats({NAN}));
  b.add("w", floats({1}));
  EXPECT_TRUE(std::isinf(compared(a, b, 1e9).max_abs_diff));
  EXPECT_FALSE(compared(a, b, 1e9).within_tolerance);
}

// A tensor's noise is its own, whichever step shows it; another tensor's is no excuse.
TEST(BeyondNoise, IsJudgedByTensor) {
  const auto of = [](std::vector<TensorDifference> each) {
    DumpDifference difference;
    difference.each = std::move(each);
    return difference;
  };
  const DumpDifference noise = of({{"step 0 gradient loud", 100},
                                   {"step 0 gradient w", 0.5},
                                   {"step 2 gradient w", 0.25},
                                   {"step 1 loss", 0.1},
                                   {"step 1 gradient lost", kInfinity}});
  EXPECT_EQ(beyond(of({}), noise), nullptr);
  EXPECT_EQ(
      beyond(of({{"step 1 gradient w", 0.5}, {"step 0 loss", 0.1}, {"step 2 gradient loud", 99}}),
             noise),
      nullptr);
  for (const TensorDifference& bad :
       {TensorDifference{"step 0 gradient w", 0.51}, TensorDifference{"step 0 parameter w", 0.1},
        TensorDifference{"step 1 loss", 0.2}, TensorDifference{"step 1 gradient quiet", 0},
        TensorDifference{"step 1 gradient lost", 1}}) {
    const DumpDifference difference = of({{"step 1 gradient w", 0.5}, bad});
    const TensorDifference* const found = beyond(difference, noise);
    ASSERT_NE(found, nullptr) << bad.name;
    EXPECT_EQ(found->name, bad.name);
  }
}

TEST(CompareDumps, OtherTensors) {
  Dump a;
  a.add("u", floats({1})).add("w", floats({1, 2}));
  Dump shorter;
  shorter.add("u", floats({1}));
  Dump renamed;
  renamed.add("u", floats({1})).add("x", floats({1, 2}));
  Dump retyped;
  retyped.add("u", floats({1})).add("w", at::tensor(std::vector<double>{1}));
  Dump without;
  without.add("u", floats({1})).add("w", {});
  for (const Dump* other : {&shorter, &renamed, &retyped, &without}) {
    for (const DumpDifference& d : {compared(a, *other), compared(*other, a)}) {
      EXPECT_FALSE(d.bitwise);
      EXPECT_FALSE(d.within_tolerance);
      EXPECT_TRUE(std::isinf(d.max_abs_diff));
      EXPECT_EQ(d.differing, 1);
    }
  }
}

}  // namespace
}  // namespace stowage::executor
