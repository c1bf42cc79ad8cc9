#include "report/storage_uses.h"

#include <gtest/gtest.h>

#include <map>

#include "tests/support/micro_trace.h"

namespace stowage::report {
namespace {

// The link moves 1 byte a nanosecond each way.
//   10 ..   30  forward: reads the parameters p and q; makes a, b, c, d, o; packs a and d
// 1030 .. 1130  middle: makes m, the moment that is looked at
// 1230 .. 1280  backward: unpacks a and d, reads p and c
class Purposes : public ::testing::Test {
 protected:
  Purposes() {
    testing::MicroTrace t;
    p = t.existing(100);
    q = t.existing(90);
    old_gradient = t.existing(80, StorageClass::gradient);
    t.run(10).begin_op("aten::forward");
    t.read(p);
    t.read(q);
    a = t.alloc(400);
    b = t.alloc(300);
    c = t.alloc(50);
    d = t.alloc(700);
    o = t.alloc(60, StorageClass::output);
    const SavedId sa = t.pack(a);
    const SavedId sd = t.pack(d);
    t.run(20).end_op();
    t.let_go(a);
    t.let_go(d);
    t.run(1000).begin_op("aten::middle");
    m = t.alloc(200);
    t.run(100).end_op();
    t.backward();
    t.run(100).begin_op("aten::backward");
    const UnpackId ua = t.unpack(sa);
    const UnpackId ud = t.unpack(sd);
    t.read(p);
    t.read(c);
    t.run(50);
    t.drop(ua);
    t.drop(ud);
    t.end_op();
    for (const StorageId each : {a, b, c, d, m, old_gradient}) t.free(each);
    trace = t.finish();
  }

  std::map<std::int32_t, ByteUse> at(EventId event) {
    const Alive alive = AliveIndex(trace).at(event);
    const BytesByUse by_use =
        bytes_by_use(trace, StorageUses(trace), alive, trace.events.time, trace.events.time.back());
    EXPECT_EQ(by_use.rows.size(), alive.storages.size());
    std::map<std::int32_t, ByteUse> found;
    Bytes sum = 0;
    Bytes of_rows[kByteUses] = {};
    for (std::size_t i = 0; i < by_use.rows.size(); ++i) {
      found[alive.storages[i].storage.value] = by_use.rows[i].use;
      of_rows[static_cast<std::size_t>(by_use.rows[i].use)] += alive.storages[i].bytes;
    }
    for (std::size_t i = 0; i < kByteUses; ++i) {
      EXPECT_EQ(by_use.bytes[i], of_rows[i]) << i;
      sum += by_use.bytes[i];
    }
    EXPECT_EQ(sum, alive.bytes);
    headline = use_headline(by_use);
    return found;
  }
  EventId made(StorageId storage) { return trace.storages.alloc_event[storage.index()]; }

  Trace trace;
  StorageId p, q, old_gradient, a, b, c, d, o, m;
  std::string headline;
};

TEST_F(Purposes, OfEachByteAreTold) {
  const auto use = at(made(m));
  ASSERT_EQ(use.size(), 9U);
  EXPECT_EQ(use.at(m.value), ByteUse::needed) << "it is being made";
  EXPECT_EQ(use.at(a.value), ByteUse::saved) << "1,200 until backward, 800 to leave and return";
  EXPECT_EQ(use.at(d.value), ByteUse::needed) << "1,400 to leave and return are too many";
  EXPECT_EQ(use.at(b.value), ByteUse::dead) << "nothing uses it behind forward";
  EXPECT_EQ(use.at(c.value), ByteUse::idle) << "it is no saved tensor";
  EXPECT_EQ(use.at(p.value), ByteUse::idle);
  EXPECT_EQ(use.at(q.value), ByteUse::idle) << "the next step uses it";
  EXPECT_EQ(use.at(old_gradient.value), ByteUse::dead) << "the step frees it and never uses it";
  EXPECT_EQ(use.at(o.value), ByteUse::idle) << "it outlives the step: somebody may want it";
  EXPECT_EQ(headline, "1.98 kB: 380 B dead, 400 B saved and idle, 300 B idle, 900 B needed");
}

TEST_F(Purposes, AreThoseOfTheMoment) {
  // While backward works, what it reads is needed; what the middle made is not used again.
  const EventId backward = trace.unpacks.event[1];
  const auto use = at(backward);
  for (const StorageId each : {a, c, d, p}) EXPECT_EQ(use.at(each.value), ByteUse::needed);
  EXPECT_EQ(use.at(m.value), ByteUse::dead);
}

TEST_F(Purposes, WithoutALinkNothingCanLeaveAndDeadBytesAreDead) {
  trace.calibration.d2h.bytes.clear();
  trace.calibration.d2h.bytes_per_second.clear();
  const auto use = at(made(m));
  EXPECT_EQ(use.at(a.value), ByteUse::needed);
  EXPECT_EQ(use.at(p.value), ByteUse::needed);
  EXPECT_EQ(use.at(b.value), ByteUse::dead);
}

TEST_F(Purposes, UsesAreInOrderFromTheirFirstToTheirLastEvent) {
  const StorageUses uses(trace);
  std::vector<std::pair<Nanoseconds, Nanoseconds>> times;
  for (const StorageUse& use : uses[a]) {
    times.emplace_back(trace.events.time[use.first.index()], trace.events.time[use.last.index()]);
  }
  using Times = std::vector<std::pair<Nanoseconds, Nanoseconds>>;
  // Made by an op that ends at 30, packed at 10, unpacked at 1,230 and let go before anything else
  // happens.
  EXPECT_EQ(times, (Times{{10, 30}, {10, 10}, {1230, 1230}}));
  EXPECT_EQ(uses[old_gradient].size(), 0U);
}

}  // namespace
}  // namespace stowage::report
