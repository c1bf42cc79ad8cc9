#include "executor/tensor_dump.h"

#include <ATen/Functions.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <cmath>
#include <cstdio>
#include <limits>
#include <string>
#include <utility>
#include <vector>

#include "tests/executor/model_support.h"

namespace stowage::executor {
namespace {

// A file without a name.
class Dump {
 public:
  explicit Dump(Bytes most_bytes = TensorDumpWriter::kMostBytes)
      : file_(std::tmpfile()), most_bytes_(most_bytes) {}
  ~Dump() { std::fclose(file_); }
  Dump(const Dump&) = delete;
  Dump& operator=(const Dump&) = delete;
  [[nodiscard]] int descriptor() const { return ::fileno(file_); }

  Dump& add(const std::string& name, const at::Tensor& tensor) {
    EXPECT_TRUE(TensorDumpWriter(test_device(), descriptor(), most_bytes_)
                    .add(0, "gradient", {name, tensor})
                    .ok());
    return *this;
  }
  [[nodiscard]] Bytes size() const { return ::lseek(descriptor(), 0, SEEK_END); }

 private:
  std::FILE* file_;
  Bytes most_bytes_;
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
  EXPECT_EQ(d.by_digest, 0);
  EXPECT_EQ(d.differing, 0);
  EXPECT_EQ(d.first, "");
}

// PyTorch's tensors of zeros that have no memory, such as the gradient of `sgn`.
TEST(CompareDumps, ZerosWithoutMemory) {
  const at::Tensor p = at::ones({3}).requires_grad_();
  at::sgn(p).sum().backward();
  const at::Tensor& zeros = p.grad();
  ASSERT_TRUE(zeros._is_zerotensor());
  for (const Bytes most_bytes : {TensorDumpWriter::kMostBytes, TensorDumpWriter::kAlwaysDigests}) {
    Dump a(most_bytes);
    Dump b(most_bytes);
    a.add("w", zeros).add("x", floats({1}));
    b.add("w", floats({0, 0, 0})).add("x", floats({1}));
    const DumpDifference d = compared(a, b);
    EXPECT_TRUE(d.bitwise);
    EXPECT_EQ(d.tensors, 2);
  }
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
  EXPECT_TRUE(d.magnitude_known);
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

constexpr Bytes kDigests = TensorDumpWriter::kAlwaysDigests;

// Bytes 0, 1, .., 250, 0, 1, ..: no two pieces are equal.
at::Tensor bytes_of(Bytes size) {
  return at::arange(251, at::kByte).repeat({size / 251 + 1}).slice(0, 0, size).contiguous();
}

// One digest a piece, the last one of a byte, of a piece less a byte, of a whole one; five pieces
// go through both halves of the staging memory.
TEST(DumpDigests, EqualTensorsOfSizesAroundAPiece) {
  for (const Bytes size : {Bytes{1}, kPieceBytes - 1, kPieceBytes, kPieceBytes + 1, 2 * kPieceBytes,
                           4 * kPieceBytes + 1}) {
    Dump a(kDigests);
    Dump b(kDigests);
    for (Dump* dump : {&a, &b}) dump->add("w", bytes_of(size));
    const DumpDifference d = compared(a, b);
    EXPECT_TRUE(d.bitwise) << size;
    EXPECT_TRUE(d.magnitude_known);
    EXPECT_EQ(d.tensors, 1);
    EXPECT_EQ(d.by_digest, 1);
    const Bytes pieces = (size + kPieceBytes - 1) / kPieceBytes;
    Dump empty(kDigests);
    EXPECT_EQ(a.size() - empty.add("w", at::empty({0}, at::kByte)).size(), 16 * pieces) << size;
  }
}

// The digests are those of the pieces, in order.
TEST(DumpDigests, OfThePieces) {
  const at::Tensor tensor = bytes_of(4 * kPieceBytes + 5);
  const auto* const data = static_cast<const std::byte*>(tensor.const_data_ptr());
  auto hasher = PieceHasher::create(test_device());
  ASSERT_TRUE(hasher.ok());
  const auto digests = hasher->digests(data, 4 * kPieceBytes + 5);
  ASSERT_EQ(digests.size(), 5U);
  for (std::size_t i = 0; i < 4; ++i) {
    EXPECT_EQ(digests[i], digest_of(data + static_cast<Bytes>(i) * kPieceBytes, kPieceBytes)) << i;
  }
  EXPECT_EQ(digests[4], digest_of(data + 4 * kPieceBytes, 5));
  EXPECT_NE(digests[0], digests[1]);
  EXPECT_TRUE(hasher->digests(data, 0).empty());
}

// A bit of the second tensor's last piece, and nothing is known about how far apart they are.
TEST(DumpDigests, OneFlippedBit) {
  const at::Tensor tensor = bytes_of(kPieceBytes + 100);
  Dump a(kDigests);
  a.add("u", bytes_of(9)).add("w", tensor).add("x", bytes_of(8));
  tensor.mutable_data_ptr<std::uint8_t>()[kPieceBytes + 99] ^= 1;
  Dump b(kDigests);
  b.add("u", bytes_of(9)).add("w", tensor).add("x", bytes_of(8));
  const DumpDifference d = compared(a, b, 1e9);
  EXPECT_FALSE(d.bitwise);
  EXPECT_FALSE(d.within_tolerance);
  EXPECT_FALSE(d.magnitude_known);
  EXPECT_TRUE(std::isnan(d.max_abs_diff));
  EXPECT_EQ(d.tensors, 3);
  EXPECT_EQ(d.differing, 1);
  EXPECT_EQ(d.first, "step 0 gradient w");
  ASSERT_EQ(d.each.size(), 1U);
  EXPECT_TRUE(std::isnan(d.each[0].max_abs_diff));
  EXPECT_EQ(beyond(d, d), &d.each[0]);  // not known to be within any noise
}

TEST(DumpDigests, AreChosenByTheStepsBytes) {
  for (const Bytes most : {Bytes{39}, Bytes{40}}) {
    Dump dump;
    TensorDumpWriter writer(test_device(), dump.descriptor(), most);
    writer.choose_form(40);
    ASSERT_TRUE(writer.add_loss(0, 1.5).ok());
    const Bytes before = dump.size();
    ASSERT_TRUE(writer.add(0, "gradient", {"w", bytes_of(40)}).ok());
    Dump whole;
    whole.add("w", bytes_of(40));
    EXPECT_EQ(dump.size() - before, most == 40 ? whole.size() : whole.size() - 40 + 16);
  }
}

// The loss is no tensor: both forms hold its value.
TEST(DumpDigests, LossesAreWritten) {
  Dump a;
  Dump b;
  for (const auto& [dump, loss] : {std::pair{&a, 2.0}, std::pair{&b, 3.0}}) {
    TensorDumpWriter writer(test_device(), dump->descriptor(), kDigests);
    ASSERT_TRUE(writer.add_loss(0, loss).ok());
  }
  EXPECT_EQ(compared(a, b).max_abs_diff, 1);
}

TEST(DumpDigests, AgainstBytesIsRefused) {
  Dump digests(kDigests);
  Dump bytes;
  for (Dump* dump : {&digests, &bytes}) dump->add("w", floats({1, 2}));
  const auto refused = compare_dumps(digests.descriptor(), bytes.descriptor(), 0);
  ASSERT_FALSE(refused.ok());
  EXPECT_EQ(refused.error().code, ErrorCode::internal);
  EXPECT_NE(refused.error().message.find("gradient w"), std::string::npos);
}

TEST(CheckDump, WholeCutAndEmpty) {
  for (const Bytes most : {TensorDumpWriter::kMostBytes, kDigests}) {
    Dump dump(most);
    EXPECT_FALSE(check_dump(dump.descriptor()).ok());
    dump.add("w", floats({1, 2, 3, 4, 5})).add("none", {}).add("x", floats({1}));
    EXPECT_TRUE(check_dump(dump.descriptor()).ok());
    const Bytes whole = dump.size();
    Dump twin(most);
    twin.add("w", floats({1, 2, 3, 4, 5})).add("none", {}).add("x", floats({1}));
    ASSERT_EQ(::ftruncate(dump.descriptor(), whole - 1), 0);
    EXPECT_FALSE(check_dump(dump.descriptor()).ok());
    EXPECT_FALSE(compare_dumps(dump.descriptor(), twin.descriptor(), 0).ok());
  }
}

}  // namespace
}  // namespace stowage::executor
