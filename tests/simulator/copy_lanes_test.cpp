#include "simulator/replay/copy_lanes.h"

#include <gtest/gtest.h>

#include "tests/support/micro_trace.h"

namespace stowage::simulator {
namespace {

// 1 byte a nanosecond each way unless said.
Calibration link() {
  Calibration c;
  c.d2h = testing::flat_link(1'000'000'000);
  c.h2d = testing::flat_link(1'000'000'000);
  return c;
}

TEST(CopyLanes, OneLaneIsFifo) {
  const Calibration c = link();
  CopyLanes lanes(c);
  const auto first = lanes.enqueue(CopyLanes::d2h, 100, {});
  const auto second = lanes.enqueue(CopyLanes::d2h, 50, {});
  lanes.run_compute(30);
  lanes.wait_for(CopyLanes::d2h, second);
  EXPECT_EQ(lanes.now(), 150);
  EXPECT_EQ(lanes.jobs(CopyLanes::d2h)[first].end, 100);
  EXPECT_EQ(lanes.jobs(CopyLanes::d2h)[second].start, 100);
  EXPECT_TRUE(lanes.idle());
}

// Duplex 0.5. D2H 100 bytes from 0; H2D 100 bytes from 40. Until 40 D2H does 40; then both at half
// speed: D2H's 60 take 120, until 160; H2D has done 60 then, its last 40 take 40: 200.
TEST(CopyLanes, DuplexSlowsBothWhileBothMove) {
  Calibration c = link();
  c.duplex = 500'000;
  CopyLanes lanes(c);
  lanes.enqueue(CopyLanes::d2h, 100, {});
  lanes.idle_until(40);
  const auto back = lanes.enqueue(CopyLanes::h2d, 100, {});
  lanes.wait_for(CopyLanes::h2d, back);
  EXPECT_EQ(lanes.now(), 200);
  EXPECT_EQ(lanes.jobs(CopyLanes::d2h)[0].end, 160);
}

// Copies at 0.8 beside compute, compute at 0.9 beside a copy. 80 bytes and 200 ns of compute from
// 0: the copy ends at 100, compute has done 90 by then, its last 110 at full speed: 210.
TEST(CopyLanes, InterferenceBothWays) {
  Calibration c = link();
  c.copy_interference = 800'000;
  c.compute_interference = 900'000;
  CopyLanes lanes(c);
  lanes.enqueue(CopyLanes::d2h, 80, {});
  lanes.run_compute(200);
  EXPECT_EQ(lanes.now(), 210);
  EXPECT_EQ(lanes.jobs(CopyLanes::d2h)[0].end, 100);
}

// A copy of 100 bytes on the compute stream from 20 on, beside one of 100 on the D2H lane from 0.
// The same way: half each from 20, so the lane has 80 left until 180; the other 20 of compute's
// copy then take 20: 200. The other way, duplex 0.5: the lane has 80 left until 180, then 20: 200,
// too.
TEST(CopyLanes, ACopyOnComputeSharesTheLink) {
  for (const auto direction : {CopyLanes::d2h, CopyLanes::h2d}) {
    Calibration c = link();
    c.duplex = 500'000;
    CopyLanes lanes(c);
    lanes.enqueue(CopyLanes::d2h, 100, {});
    lanes.idle_until(20);
    lanes.copy_on_compute(direction, 100);
    EXPECT_EQ(lanes.now(), 200);
    EXPECT_EQ(lanes.jobs(CopyLanes::d2h)[0].end, 180);
  }
}

// Duplex 0.5, and 60 bytes each way on the lanes from 0: both at half speed. A copy of 60 bytes on
// the compute stream at the same time: it and D2H get a quarter each, H2D a half until 120; then 30
// are left of each of the two, at half speed: 180.
TEST(CopyLanes, ThreeCopiesAtOnce) {
  Calibration c = link();
  c.duplex = 500'000;
  CopyLanes lanes(c);
  lanes.enqueue(CopyLanes::d2h, 60, {});
  lanes.enqueue(CopyLanes::h2d, 60, {});
  lanes.copy_on_compute(CopyLanes::d2h, 60);
  EXPECT_EQ(lanes.now(), 180);
  EXPECT_EQ(lanes.jobs(CopyLanes::h2d)[0].end, 120);
  EXPECT_EQ(lanes.jobs(CopyLanes::d2h)[0].end, 180);
}

// Duplex 0.01 and copies beside compute 0.01: together not 0.0001 but 0.001, the least. One byte
// each way takes 1000 ns.
TEST(CopyLanes, FactorsTogetherAreCutToo) {
  Calibration c = link();
  c.duplex = 10'000;
  c.copy_interference = 10'000;
  CopyLanes lanes(c);
  lanes.enqueue(CopyLanes::d2h, 1, {});
  lanes.enqueue(CopyLanes::h2d, 1, {});
  lanes.run_compute(20'000);
  EXPECT_EQ(lanes.jobs(CopyLanes::d2h)[0].end, 1000);
  EXPECT_EQ(lanes.jobs(CopyLanes::h2d)[0].end, 1000);
}

// Latency 30 of a nominal 100: the first 30 ns neither slow compute down nor are slowed down. With
// compute at 0.5 beside moving bytes: 30 ns done by 30, then 0.5 until 100 (65 done), then the
// rest.
TEST(CopyLanes, LatencyDoesNotInterfere) {
  Calibration c = link();
  c.d2h.latency = 30;
  c.compute_interference = 500'000;
  CopyLanes lanes(c);
  lanes.enqueue(CopyLanes::d2h, 100, {});
  lanes.run_compute(80);
  EXPECT_EQ(lanes.jobs(CopyLanes::d2h)[0].end, 100);
  EXPECT_EQ(lanes.now(), 115);
}

// Copies at 0.3 beside compute: 10 bytes need 33.3 ns, so 34; the next one starts then.
TEST(CopyLanes, CompletionsRoundUp) {
  Calibration c = link();
  c.copy_interference = 300'000;
  CopyLanes lanes(c);
  lanes.enqueue(CopyLanes::d2h, 10, {});
  lanes.enqueue(CopyLanes::d2h, 3, {});
  lanes.run_compute(100);
  EXPECT_EQ(lanes.jobs(CopyLanes::d2h)[0].end, 34);
  EXPECT_EQ(lanes.jobs(CopyLanes::d2h)[1].start, 34);
  EXPECT_EQ(lanes.jobs(CopyLanes::d2h)[1].end, 44);
  EXPECT_EQ(lanes.now(), 100);
}

// Compute that has rested runs at 1.25: 100 ns of rest are to save 25 ns, by 100 ns at 1.25. They
// do 125 of the next 300; the other 175 end at 375. Without more rest all is as recorded. Beside a
// copy the factors multiply: 0.8 * 1.25 for 40 ns, the 40 that the copy takes.
TEST(CopyLanes, ARestMakesComputeFaster) {
  Calibration c = link();
  c.least_compute = 800'000;
  c.rest_gain = 250'000;
  c.compute_interference = 800'000;
  CopyLanes lanes(c);
  lanes.wait_for(CopyLanes::h2d, lanes.enqueue(CopyLanes::h2d, 100, {}));
  EXPECT_EQ(lanes.now(), 100);
  lanes.rest(100);
  lanes.run_compute(300);
  EXPECT_EQ(lanes.now(), 375);
  lanes.idle_until(500);
  lanes.run_compute(100);
  EXPECT_EQ(lanes.now(), 600);
  lanes.copy_on_compute(CopyLanes::d2h, 40);
  EXPECT_EQ(lanes.now(), 640);
  lanes.rest(40);
  lanes.enqueue(CopyLanes::d2h, 40, {});
  lanes.run_compute(60);
  EXPECT_EQ(lanes.now(), 700);
  c.rest_gain = 0;
  CopyLanes plain(c);
  plain.wait_for(CopyLanes::h2d, plain.enqueue(CopyLanes::h2d, 100, {}));
  plain.rest(100);
  plain.run_compute(300);
  EXPECT_EQ(plain.now(), 400);
}

// 2^50 ns of compute (13 days), the longest that a trace may hold, beside the slowest copy.
TEST(CopyLanes, AbsurdTimesDoNotOverflow) {
  Calibration c = link();
  c.h2d.bytes_per_second = {1};
  c.compute_interference = 500'000;
  CopyLanes lanes(c);
  const auto job = lanes.enqueue(CopyLanes::h2d, Bytes{1} << 50, {});
  lanes.run_compute(Nanoseconds{1} << 50);
  EXPECT_EQ(lanes.jobs(CopyLanes::h2d)[job].end, 4'000'000'000'000);
  EXPECT_EQ(lanes.now(), (Nanoseconds{1} << 50) + 2'000'000'000'000);
}

TEST(CopyLanes, AbsurdRestsDoNotOverflow) {
  Calibration c = link();
  c.h2d.bytes_per_second = {1};
  c.least_compute = 0;
  c.rest_gain = kPpm;
  for (const Ppm least : {Ppm{0}, Ppm{998'000}, Ppm{999'999}}) {
    c.least_compute = least;
    CopyLanes lanes(c);
    for (int i = 0; i < 5; ++i) {
      lanes.wait_for(CopyLanes::h2d, lanes.enqueue(CopyLanes::h2d, Bytes{1} << 50, {}));
      lanes.rest(4'000'000'000'000);
    }
    const Nanoseconds begin = lanes.now();
    EXPECT_EQ(begin, 20'000'000'000'000);
    lanes.run_compute(Nanoseconds{1} << 50);
    EXPECT_GT(lanes.now(), begin + (Nanoseconds{1} << 47));
    EXPECT_LE(lanes.now(), begin + (Nanoseconds{1} << 50));
  }
}

TEST(CopyLanes, NoBytesTakeNoTime) {
  Calibration c = link();
  c.d2h.latency = 30;
  CopyLanes lanes(c);
  lanes.run_compute(5);
  const auto job = lanes.enqueue(CopyLanes::d2h, 0, {});
  EXPECT_EQ(lanes.jobs(CopyLanes::d2h)[job].end, 5);
  EXPECT_TRUE(lanes.idle());
}

}  // namespace
}  // namespace stowage::simulator
