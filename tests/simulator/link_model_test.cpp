#include "simulator/machine/link_model.h"

#include <gtest/gtest.h>

namespace stowage::simulator {
namespace {

// 1000 bytes at 1 GB/s: 1000 ns; 3000 bytes at 2 GB/s: 1500 ns.
LinkCurve curve() {
  LinkCurve c;
  c.bytes = {1000, 3000};
  c.bytes_per_second = {1'000'000'000, 2'000'000'000};
  return c;
}

TEST(LinkModel, InterpolatesTimeBetweenSizes) {
  EXPECT_EQ(transfer_ns(curve(), 1000), 1000);
  EXPECT_EQ(transfer_ns(curve(), 3000), 1500);
  EXPECT_EQ(transfer_ns(curve(), 2000), 1250);
  EXPECT_EQ(transfer_ns(curve(), 1001), 1001);  // 1000.25, rounded up
}

TEST(LinkModel, ProportionalOutside) {
  EXPECT_EQ(transfer_ns(curve(), 500), 500);
  EXPECT_EQ(transfer_ns(curve(), 1), 1);
  EXPECT_EQ(transfer_ns(curve(), 0), 0);
  EXPECT_EQ(transfer_ns(curve(), 6000), 3000);
  EXPECT_EQ(transfer_ns(curve(), 6001), 3001);  // 3000.5
}

TEST(LinkModel, BigTransfersDoNotOverflow) {
  EXPECT_EQ(transfer_ns(curve(), Bytes{1} << 40), (Bytes{1} << 40) / 2);
  LinkCurve slow = curve();
  slow.bytes_per_second = {1, 1};
  EXPECT_EQ(transfer_ns(slow, Bytes{1} << 50), kMaxTransfer);
}

TEST(LinkModel, BestRate) {
  EXPECT_EQ(best_rate(curve()), 2'000'000'000);
  EXPECT_EQ(best_rate({}), 0);
}

TEST(LinkModel, Usable) {
  EXPECT_TRUE(is_usable(curve()));
  EXPECT_FALSE(is_usable({}));
  LinkCurve c = curve();
  c.bytes_per_second[1] = 0;
  EXPECT_FALSE(is_usable(c));
  c = curve();
  c.bytes[1] = 1000;
  EXPECT_FALSE(is_usable(c));
}

}  // namespace
}  // namespace stowage::simulator
