#include "profiler/assembly/join.h"

#include <gtest/gtest.h>

#include <functional>
#include <stdexcept>
#include <string>

#include "tests/profiler/fabricated_recording.h"

namespace stowage::profiler {
namespace {

using testing::FabricatedRecording;
using testing::kOtherSerials;

// Saves A twice; in the offload_all pass A goes right after its second pack.
RawRecording small() {
  FabricatedRecording r;
  r.existing(32);
  const auto gone = r.existing(16);  // rows of the structure pass:
  r.begin_layer("a");                //  1
  r.begin_op("aten::exp");           //  2
  const auto a = r.alloc(100);       //  3
  r.end_op();                        //  4
  r.pack(a);                         //  5
  r.pack(a);                         //  6
  r.let_go(a);
  r.end_layer("a");                //  7
  r.free_in_both(gone);            //  8
  r.begin_backward();              //  9
  r.begin_layer_backward("a");     // 10
  const auto first = r.unpack(1);  // 11
  r.release(first);
  r.unpack(0);                // 12, never released
  r.free(a);                  // 13
  r.end_layer_backward("a");  // 14
  r.end_backward();           // 15
  return r.finish(0);         // 16
}

TEST(Join, EndsAreRowsOfTheFirstPass) {
  const RawRecording r = small();
  const Result<Ends> ends = join(r.structure, r.offload_all);
  ASSERT_TRUE(ends.ok()) << ends.error().text();
  // By serial of the first pass: what existed is found by rank, what was made by order.
  EXPECT_EQ(ends->freed_after, (std::unordered_map<std::int64_t, std::int32_t>{{2, 7}, {3, 6}}));
  // Frees are no common events: the release right after unpack 11 stands at 11.
  EXPECT_EQ(ends->released_after, (std::vector<std::int32_t>{11, -1}));
}

TEST(Join, ReleasesStandAtTheLastEventThatIsNoFree) {
  RawRecording r = small();
  // Another free just ahead of the release changes nothing.
  auto& events = r.offload_all.events;
  for (std::size_t i = 0; i < events.size(); ++i) {
    if (events[i].kind != RawKind::released) continue;
    events.insert(events.begin() + static_cast<std::ptrdiff_t>(i),
                  RawEvent{RawKind::free, 1 + kOtherSerials, 0, 0, 0});
    break;
  }
  const Result<Ends> ends = join(r.structure, r.offload_all);
  ASSERT_TRUE(ends.ok());
  EXPECT_EQ(ends->released_after.front(), 11);
  EXPECT_EQ(ends->freed_after.at(1), 11);
}

TEST(Join, FreesOfUnknownMemoryInTheOtherPassAreReloads) {
  RawRecording r = small();
  r.offload_all.events.insert(r.offload_all.events.begin() + 5,
                              RawEvent{RawKind::free, 424242, 0, 0, 0});
  const Result<Ends> ends = join(r.structure, r.offload_all);
  ASSERT_TRUE(ends.ok());
  EXPECT_EQ(ends->freed_after.size(), 2U);
}

TEST(Join, APassJoinsItself) {
  const RawRecording r = small();
  const Result<Ends> ends = join(r.structure, r.structure);
  ASSERT_TRUE(ends.ok()) << ends.error().text();
  EXPECT_EQ(ends->freed_after.at(3), 12);
}

// A pass without hooks has no packs and unpacks; everything else still has its counterpart.
TEST(Align, FindsTheEventsOfAPassThatWasNotHooked) {
  const RawRecording r = small();
  RawPass plain = r.structure;
  plain.hooked = false;
  plain.saved.clear();
  plain.unpacks.clear();
  std::erase_if(plain.events, [](const RawEvent& each) {
    return each.kind == RawKind::pack || each.kind == RawKind::unpack;
  });
  const Result<std::vector<std::int32_t>> rows = align(r.structure, plain);
  ASSERT_TRUE(rows.ok()) << rows.error().text();
  for (std::size_t i = 0; i < rows->size(); ++i) {
    const RawKind kind = r.structure.events[i].kind;
    if (kind == RawKind::pack || kind == RawKind::unpack) {
      EXPECT_EQ((*rows)[i], -1);
      continue;
    }
    ASSERT_GE((*rows)[i], 0) << describe(r.structure, r.structure.events[i]);
    EXPECT_EQ(plain.events[static_cast<std::size_t>((*rows)[i])].time_ns,
              r.structure.events[i].time_ns);
  }
  plain.hooked = true;
  EXPECT_FALSE(align(r.structure, plain).ok());
}

struct Difference {
  const char* name;
  std::function<void(RawPass&)> change;  // of the offload_all pass
  const char* text;
};

// The n-th event of a kind in a pass.
RawEvent& event(RawPass& pass, RawKind kind, int n = 0) {
  for (RawEvent& each : pass.events) {
    if (each.kind == kind && n-- == 0) return each;
  }
  throw std::out_of_range("no such event");
}

class Differ : public ::testing::TestWithParam<Difference> {};

TEST_P(Differ, NamesTheFirstDifference) {
  RawRecording r = small();
  GetParam().change(r.offload_all);
  const Result<Ends> ends = join(r.structure, r.offload_all);
  ASSERT_FALSE(ends.ok());
  EXPECT_EQ(ends.error().code, ErrorCode::bad_input);
  EXPECT_NE(ends.error().message.find(GetParam().text), std::string::npos) << ends.error().text();
  EXPECT_FALSE(ends.error().hint.empty());
}

INSTANTIATE_TEST_SUITE_P(
    All, Differ,
    ::testing::Values(
        Difference{"alloc_size", [](RawPass& p) { event(p, RawKind::alloc).bytes = 104; },
                   "event 3 is alloc 100 B in one and alloc 104 B in the other"},
        Difference{"op_name", [](RawPass& p) { p.ops[0].name = "aten::tanh"; },
                   "event 2 is begin of aten::exp in one and begin of aten::tanh in the other"},
        Difference{"layer_name", [](RawPass& p) { p.layer_paths[0] = "b"; },
                   "event 1 is forward begin of a in one and forward begin of b in the other"},
        Difference{"shape",
                   [](RawPass& p) {
                     p.saved[1].view.shape = {5, 5};
                   },
                   "event 6 is pack a#1 in one and pack a#1 in the other"},
        Difference{"strides", [](RawPass& p) { p.saved[1].view.strides = {2}; },
                   "event 6 is pack a#1 in one and pack a#1 in the other"},
        Difference{"offset", [](RawPass& p) { p.saved[1].view.offset = 1; },
                   "event 6 is pack a#1 in one and pack a#1 in the other"},
        Difference{"ordinal", [](RawPass& p) { p.saved[0].ordinal = 4; },
                   "event 5 is pack a#0 in one and pack a#4 in the other"},
        Difference{"call", [](RawPass& p) { p.saved[0].call = 1; }, "event 5"},
        Difference{"outside_of_layers", [](RawPass& p) { p.saved[0].layer = -1; },
                   "pack a#0 in one and pack step#0 in the other"},
        Difference{"unpacked", [](RawPass& p) { p.unpacks[0].saved = 0; },
                   "event 11 is unpack of saved tensor 1 in one and unpack of saved tensor 0"},
        Difference{"kind", [](RawPass& p) { event(p, RawKind::pack).kind = RawKind::unpack; },
                   "event 5 is pack a#0 in one and unpack of saved tensor 1 in the other"},
        Difference{"one_more", [](RawPass& p) { p.events.push_back(p.events.back()); },
                   "after the last event of one pass the other has step end"},
        Difference{"one_less", [](RawPass& p) { p.events.pop_back(); },
                   "after the last event of one pass the other has step end"},
        Difference{"lives_at_begin", [](RawPass& p) { p.live_at_begin.pop_back(); },
                   "2 against 1 allocations alive when the step began"},
        Difference{"sizes_at_begin", [](RawPass& p) { p.live_at_begin[0].bytes = 8; },
                   "an allocation that existed before the step has another size"}),
    [](const auto& difference) { return std::string(difference.param.name); });

TEST(Describe, SaysWhatAnEventIs) {
  RawRecording r = small();
  EXPECT_EQ(describe(r.structure, r.structure.events.front()), "step begin");
  EXPECT_EQ(describe(r.structure, event(r.structure, RawKind::free)), "free");
  EXPECT_EQ(describe(r.offload_all, event(r.offload_all, RawKind::released)), "released");
  EXPECT_EQ(describe(r.structure, event(r.structure, RawKind::op_end)), "end of aten::exp");
  EXPECT_EQ(describe(r.structure, event(r.structure, RawKind::layer_backward_begin)),
            "backward begin of a");
  EXPECT_EQ(describe(r.structure, event(r.structure, RawKind::backward_begin)), "backward begin");
}

}  // namespace
}  // namespace stowage::profiler
