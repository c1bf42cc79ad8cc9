#include "profiler/assembly/resident_pass.h"

#include <gtest/gtest.h>

#include "profiler/assembly/assemble.h"
#include "tests/profiler/fabricated_recording.h"

namespace stowage::profiler {
namespace {

// Everything in the order of its serial: 1 = parameter, 2 = a, 3 = b.
struct Fixture {
  RawPass pass;

  Fixture() {
    pass.live_at_begin = {{1, 1000, StorageClass::parameter}};
    add(RawKind::step_begin);
  }
  void add(RawKind kind, std::int64_t id = -1, Bytes bytes = 0) {
    pass.events.push_back({kind, id, static_cast<std::int64_t>(pass.events.size()) * 10, 0, bytes});
  }
  void pack(std::int64_t serial) {
    RawSaved saved;
    saved.view.serial = serial;
    pass.saved.push_back(saved);
    add(RawKind::pack, static_cast<std::int64_t>(pass.saved.size()) - 1);
  }
  void unpack(std::int32_t saved) {
    pass.unpacks.push_back({saved});
    add(RawKind::unpack, static_cast<std::int64_t>(pass.unpacks.size()) - 1);
  }
  // "alloc 2, free 2" of what is left.
  std::string text() {
    add(RawKind::step_end);
    resident = resident_pass(pass);
    std::string text;
    for (const RawEvent& event : resident.events) {
      if (!text.empty()) text += ", ";
      text += describe(event);
    }
    return text;
  }
  static std::string describe(const RawEvent& event) {
    const std::string id = std::to_string(event.id);
    switch (event.kind) {
      case RawKind::alloc:
        return "alloc " + id;
      case RawKind::free:
        return "free " + id;
      case RawKind::pack:
        return "pack " + id;
      case RawKind::unpack:
        return "unpack " + id;
      case RawKind::step_begin:
        return "begin";
      case RawKind::step_end:
        return "end";
      default:
        return "?";
    }
  }
  RawPass resident;
};

TEST(ResidentPass, AStorageDiesWithTheLastThatHoldsIt) {
  Fixture f;
  f.add(RawKind::alloc, 2, 100);
  f.pack(2);
  f.add(RawKind::free, 2);       // the model let go
  f.add(RawKind::alloc, 3, 50);  // at the peak both are alive
  f.add(RawKind::free, 3);       // nobody saved it
  f.unpack(0);
  f.add(RawKind::hook_gone, 0);  // autograd let go
  f.add(RawKind::released, 0);   // and the op that had unpacked it
  EXPECT_EQ(f.text(), "begin, alloc 2, pack 0, alloc 3, free 3, unpack 0, free 2, end");
  EXPECT_EQ(f.resident.peak_requested, 1150);
  EXPECT_EQ(f.resident.requested_at_begin, 1000);
  EXPECT_EQ(f.resident.events[1].requested, 1100);
  EXPECT_EQ(f.resident.events[4].requested, 1100);
  EXPECT_EQ(f.resident.events[6].requested, 1000);
}

TEST(ResidentPass, EachOfTheThreeMayBeTheLast) {
  Fixture hook;
  hook.add(RawKind::alloc, 2, 100);
  hook.pack(2);
  hook.unpack(0);
  hook.add(RawKind::released, 0);
  hook.add(RawKind::free, 2);
  hook.pack(1);
  hook.add(RawKind::hook_gone, 0);
  EXPECT_EQ(hook.text(), "begin, alloc 2, pack 0, unpack 0, pack 1, free 2, end");
  Fixture model;
  model.add(RawKind::alloc, 2, 100);
  model.pack(2);
  model.add(RawKind::hook_gone, 0);
  model.pack(1);
  model.add(RawKind::free, 2);
  EXPECT_EQ(model.text(), "begin, alloc 2, pack 0, pack 1, free 2, end");
}

TEST(ResidentPass, OneThatIsNeverLetGoOutlivesTheStep) {
  Fixture f;
  f.add(RawKind::alloc, 2, 100);
  f.pack(2);
  f.pack(2);  // saved twice; one hook stays
  f.add(RawKind::free, 2);
  f.add(RawKind::hook_gone, 1);
  f.add(RawKind::free, 1);  // existed before the step
  EXPECT_EQ(f.text(), "begin, alloc 2, pack 0, pack 1, free 1, end");
  EXPECT_EQ(f.resident.events[4].requested, 100);
}

TEST(ResidentPass, CopiesInsideHooksTakeNoTime) {
  Fixture f;
  f.add(RawKind::alloc, 2, 100);  // at 10
  f.pack(2);                      // at 20
  f.add(RawKind::free, 2);        // at 30
  f.add(RawKind::hook_gone, 0);   // at 40
  f.pass.hook_spans = {{15, 18}, {25, 45}};
  f.text();  // step_end at 50
  EXPECT_EQ(f.resident.events[1].time_ns, 10);
  EXPECT_EQ(f.resident.events[2].time_ns, 17);
  EXPECT_EQ(f.resident.events[3].time_ns, 22);
  EXPECT_EQ(f.resident.events[4].time_ns, 27);
  EXPECT_EQ(f.resident.step_ns, 27);
}

// A recording without a clean pass needs no structure pass, and says what it is.
TEST(ResidentPass, MakesATraceOfAStepThatDoesNotFit) {
  testing::FabricatedRecording r;
  const auto w = r.existing(400);
  r.begin_layer("a");
  r.begin_op("aten::mul");
  const auto a = r.alloc(100);
  r.pack(a);
  r.end_op();
  r.end_layer("a");
  r.free_in_both(a);
  r.accumulate(w);
  RawRecording recording = r.finish(0);
  recording.structure = {};
  recording.clean = {};
  recording.clean.out_of_memory = true;
  const Result<Trace> trace = assemble(recording);
  ASSERT_TRUE(trace.ok()) << trace.error().text();
  EXPECT_EQ(trace->schema.features, std::vector<std::string>{"offloaded_recording"});
  EXPECT_EQ(trace->overhead.clean.step_ns, 0);
  EXPECT_EQ(trace->peaks.requested, std::vector<Bytes>{500});
  EXPECT_EQ(trace->peaks.active, std::vector<Bytes>{500});
  // No hook of this recording ever ended.
  EXPECT_FALSE(trace->storages.free_event[1].valid());
  EXPECT_TRUE(trace->storages.natural_free_event[1].valid());
}

}  // namespace
}  // namespace stowage::profiler
