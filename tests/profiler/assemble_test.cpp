#include "profiler/assembly/assemble.h"

#include <gtest/gtest.h>

#include <functional>
#include <random>
#include <string>
#include <vector>

#include "profiler/assembly/event_times.h"
#include "tests/profiler/fabricated_recording.h"
#include "traces/validate.h"

namespace stowage::profiler {
namespace {

using testing::FabricatedRecording;

constexpr std::int64_t kW = 1;  // serials, in order of their making
constexpr std::int64_t kA = 2;
constexpr std::int64_t kB = 3;

// Layer "a", called twice; its first call makes A and saves it, its second saves the parameter w.
// The model drops A right after the first call; backward frees it after the op that used it.
RawRecording two_calls() {
  FabricatedRecording r;
  const auto w = r.existing(400);  // row of events in the structure pass:
  r.begin_layer("a");              //  1  (0 is step_begin)
  r.begin_op("aten::mul", 5);      //  2
  r.use(w);
  const auto a = r.alloc(100);  //  3
  const auto s0 = r.pack(a);    //  4
  r.end_op();                   //  5
  r.end_layer("a");             //  6
  r.let_go(a);
  r.begin_layer("a");                      //  7
  const auto s1 = r.pack(w);               //  8
  r.end_layer("a");                        //  9
  r.begin_backward();                      // 10
  r.begin_layer_backward("a");             // 11
  const auto u1 = r.unpack(s1);            // 12
  static_cast<void>(u1);                   //     never released
  const auto u0 = r.unpack(s0);            // 13
  r.begin_op("aten::mul_backward", 9, 5);  // 14
  const auto b = r.alloc(200);             // 15
  r.end_op();                              // 16
  r.release(u0);
  r.free(a);        // 17
  r.accumulate(w);  // 18
  r.is_gradient(b, w);
  r.end_layer_backward("a");  // 19
  r.end_backward();           // 20
  r.begin_op("aten::add_");   // 21
  r.use(w, UseMode::in_place);
  r.end_op();            // 22
  return r.finish(460);  // 23 is step_end
}

Trace assembled(const RawRecording& recording) {
  Result<Trace> trace = assemble(recording);
  EXPECT_TRUE(trace.ok()) << trace.error().text();
  const Status status = validate(*trace, "fabricated");
  EXPECT_TRUE(status.ok()) << status.error().text();
  return std::move(trace).value();
}

std::vector<std::string> names(const Trace& trace, const std::vector<StringId>& ids) {
  std::vector<std::string> result;
  for (const StringId id : ids) result.push_back(trace.string(id));
  return result;
}

using Rows = std::vector<EventId>;
using Strings = std::vector<std::string>;

TEST(Assemble, GradientsNameTheirParameter) {
  const Trace trace = assembled(two_calls());
  for (std::size_t i = 0; i < trace.storages.size(); ++i) {
    const StorageId owner = trace.storages.parameter[i];
    const bool is_gradient = trace.storages.storage_class[i] == StorageClass::gradient;
    ASSERT_EQ(owner.valid(), is_gradient) << i;
    if (!is_gradient) continue;
    EXPECT_EQ(trace.storages.storage_class[owner.index()], StorageClass::parameter);
  }
}

TEST(Assemble, StoragesHaveTheirLivesFromBothPasses) {
  const Trace trace = assembled(two_calls());
  const Storages& storages = trace.storages;
  EXPECT_EQ(storages.bytes, (std::vector<Bytes>{400, 100, 200}));  // w, A, B
  EXPECT_EQ(storages.alloc_event, (Rows{EventId(), EventId(3), EventId(15)}));
  EXPECT_EQ(storages.free_event, (Rows{EventId(), EventId(17), EventId()}));
  EXPECT_EQ(storages.natural_free_event, (Rows{EventId(), EventId(6), EventId()}));
  EXPECT_EQ(storages.storage_class, (std::vector{StorageClass::parameter, StorageClass::activation,
                                                 StorageClass::gradient}));
  EXPECT_EQ(storages.evidence,
            (std::vector{Evidence::registered, Evidence::hook, Evidence::registered}));
  EXPECT_EQ(storages.alloc_op, (std::vector<OpId>{OpId(), OpId(0), OpId(1)}));
  EXPECT_EQ(storages.layer, (std::vector<LayerId>{LayerId(1), LayerId(1), LayerId(1)}));
}

TEST(Assemble, SavedTensorsHaveSitesByCall) {
  const Trace trace = assembled(two_calls());
  EXPECT_EQ(names(trace, trace.saved.site), (Strings{"a@0#0", "a@1#0"}));
  EXPECT_EQ(trace.saved.storage, (std::vector<StorageId>{StorageId(1), StorageId(0)}));
  EXPECT_EQ(trace.saved.storage_index, (std::vector<std::int32_t>{0, 1}));
  EXPECT_EQ(trace.saved.event, (Rows{EventId(4), EventId(8)}));
  EXPECT_EQ(trace.saved.op, (std::vector<OpId>{OpId(0), OpId()}));
  EXPECT_EQ(trace.unpacks.saved, (std::vector<SavedId>{SavedId(1), SavedId(0)}));
  EXPECT_EQ(trace.unpacks.event, (Rows{EventId(12), EventId(13)}));
  // The release of u0 comes after the op's end; u1's never came.
  EXPECT_EQ(trace.unpacks.released_event, (Rows{EventId(), EventId(16)}));
}

TEST(Assemble, LayersOpsAndPhases) {
  const Trace trace = assembled(two_calls());
  EXPECT_EQ(names(trace, trace.layers.name), (Strings{"step", "a"}));
  EXPECT_EQ(trace.layers.calls, (std::vector<std::int32_t>{0, 2}));
  EXPECT_EQ(trace.layers.parameter_bytes, (std::vector<Bytes>{0, 400}));
  EXPECT_EQ(names(trace, trace.ops.name),
            (Strings{"aten::mul", "aten::mul_backward", "aten::add_"}));
  // The backward op finds its forward op, and so its layer, through the sequence number.
  EXPECT_EQ(trace.ops.forward_op, (std::vector<OpId>{OpId(), OpId(0), OpId()}));
  EXPECT_EQ(trace.ops.layer, (std::vector<LayerId>{LayerId(1), LayerId(1), LayerId(0)}));
  EXPECT_EQ(trace.ops.in_place, (std::vector<std::uint8_t>{0, 0, 1}));
  EXPECT_EQ(trace.phases.kind, (std::vector{PhaseKind::zero_grad, PhaseKind::forward,
                                            PhaseKind::backward, PhaseKind::optimizer}));
  EXPECT_EQ(trace.phases.first_event, (Rows{EventId(0), EventId(1), EventId(10), EventId(21)}));
  EXPECT_EQ(trace.phases.last_event, (Rows{EventId(0), EventId(9), EventId(20), EventId(23)}));
}

// Two micro-batches: after a backward, an op inside a layer is forward again, one outside of layers
// the optimizer's. In backward, what no forward op claims belongs to the innermost layer whose
// backward is open.
TEST(Assemble, MicroBatchesAndNestedBackward) {
  FabricatedRecording r;
  for (int i = 0; i < 2; ++i) {
    r.begin_layer("a");
    r.begin_layer("a.b");
    r.begin_op("aten::mul");
    r.end_op();
    r.end_layer("a.b");
    r.end_layer("a");
    r.begin_backward();
    r.begin_layer_backward("a");
    r.begin_layer_backward("a.b");
    r.begin_op("aten::in_b");
    r.end_op();
    r.end_layer_backward("a.b");
    r.begin_op("aten::in_a");
    r.end_op();
    r.end_layer_backward("a");
    r.end_backward();
  }
  r.begin_op("aten::add_");
  r.end_op();
  const Trace trace = assembled(r.finish(400));
  EXPECT_EQ(names(trace, trace.layers.name), (Strings{"step", "a", "a.b"}));
  EXPECT_EQ(trace.layers.parent, (std::vector<LayerId>{LayerId(-1), LayerId(0), LayerId(1)}));
  EXPECT_EQ(trace.ops.layer, (std::vector<LayerId>{LayerId(2), LayerId(2), LayerId(1), LayerId(2),
                                                   LayerId(2), LayerId(1), LayerId(0)}));
  EXPECT_EQ(trace.phases.kind,
            (std::vector{PhaseKind::zero_grad, PhaseKind::forward, PhaseKind::backward,
                         PhaseKind::forward, PhaseKind::backward, PhaseKind::optimizer}));
}

// A backward that runs inside a backward ends neither the phase nor the layer.
TEST(Assemble, BackwardInsideBackward) {
  FabricatedRecording r;
  r.begin_layer("a");
  r.end_layer("a");
  r.begin_backward();
  r.begin_layer_backward("a");
  r.begin_backward();
  r.begin_op("aten::inner");
  r.end_op();
  r.end_backward();
  r.begin_op("aten::outer");
  r.end_op();
  r.end_layer_backward("a");
  r.end_backward();
  const Trace trace = assembled(r.finish(120));
  EXPECT_EQ(trace.ops.layer, (std::vector<LayerId>{LayerId(1), LayerId(1)}));
  EXPECT_EQ(trace.phases.kind,
            (std::vector{PhaseKind::zero_grad, PhaseKind::forward, PhaseKind::backward}));
}

TEST(Assemble, TimesAndPeaksAreTheCleanSteps) {
  const Trace trace = assembled(two_calls());
  ASSERT_EQ(trace.events.size(), 24U);
  for (std::size_t e = 0; e < trace.events.size(); ++e) {
    EXPECT_EQ(trace.events.time[e], static_cast<Nanoseconds>(20 * e));  // 230 ns made 460
  }
  EXPECT_EQ(trace.ops.start[1], 280);
  EXPECT_EQ(trace.ops.duration[1], 40);
  EXPECT_EQ(trace.allocator.event, (Rows{EventId(3), EventId(15), EventId(17)}));
  EXPECT_EQ(trace.allocator.requested, (std::vector<Bytes>{500, 700, 600}));
  EXPECT_EQ(trace.peaks.requested, (std::vector<Bytes>{700}));
  EXPECT_EQ(trace.peaks.event, (Rows{EventId(15)}));
  EXPECT_EQ(trace.peaks.op, (std::vector<OpId>{OpId(1)}));
  EXPECT_EQ(trace.overhead.structure.step_ns, 230);
  EXPECT_EQ(trace.overhead.clean.step_ns, 460);
}

TEST(Assemble, PeakIsAtTheFirstEventThatReachesIt) {
  FabricatedRecording r;
  for (int i = 0; i < 2; ++i) {
    r.begin_op("aten::mul");                      // 1 and 5
    const std::int64_t temporary = r.alloc(100);  // 2 and 6
    r.free_in_both(temporary);                    // 3 and 7
    r.end_op();                                   // 4 and 8
  }
  const Trace trace = assembled(r.finish(90));
  EXPECT_EQ(trace.peaks.requested, (std::vector<Bytes>{100}));
  EXPECT_EQ(trace.peaks.event, Rows{EventId(2)});
}

TEST(Assemble, NestedOpsEndWhenTheNextOneBegins) {
  FabricatedRecording r;
  r.begin_op("outer");         // event 1, at 10 ns
  r.begin_op("outer.first");   // 2
  r.end_op();                  //     nested: no event
  r.begin_op("outer.second");  // 3
  const auto a = r.alloc(64);  // 4
  r.end_op();
  r.end_op();                                  // 5
  r.free_in_both(a);                           // 6
  const Trace trace = assembled(r.finish(0));  // the observed scale
  EXPECT_EQ(trace.ops.parent, (std::vector<OpId>{OpId(), OpId(0), OpId(0)}));
  EXPECT_EQ(trace.ops.start, (std::vector<Nanoseconds>{10, 20, 30}));
  EXPECT_EQ(trace.ops.duration[0], 40);
  EXPECT_EQ(trace.ops.duration[2], 20);
  EXPECT_EQ(trace.storages.alloc_op, (std::vector<OpId>{OpId(2)}));
  EXPECT_EQ(trace.storages.storage_class, (std::vector{StorageClass::temporary}));
  EXPECT_EQ(trace.storages.natural_free_event, (Rows{EventId(5)}));
}

TEST(Assemble, VersionsCountFromTheStoragesFirstPack) {
  FabricatedRecording r;
  r.begin_layer("a");
  const auto a = r.alloc(64);
  r.pack(a, 7);
  r.pack(a, 7);
  r.pack(a, 9);
  r.end_layer("a");
  r.free_in_both(a);
  const Trace trace = assembled(r.finish(100));
  EXPECT_EQ(trace.saved.version, (std::vector<std::int64_t>{0, 0, 2}));
  EXPECT_EQ(trace.saved.storage_index, (std::vector<std::int32_t>{0, 0, 0}));
  EXPECT_EQ(names(trace, trace.saved.site), (Strings{"a#0", "a#1", "a#2"}));
}

TEST(EventTimes, AreMedianGapsOnTheCleanScale) {
  RawPass pass;
  for (const std::int64_t time : {100, 110, 130, 200}) {
    pass.events.push_back({RawKind::op_begin, 0, time, 0, 0});
  }
  using Times = std::vector<Nanoseconds>;
  EXPECT_EQ(event_times(pass, {}, 0), (Times{0, 10, 30, 100}));
  EXPECT_EQ(event_times(pass, {}, 50), (Times{0, 5, 15, 50}));
  // Gaps 10 20 70, 20 10 30, 30 60 50: medians 20, 20, 50. A row of another length is ignored.
  const std::vector<std::vector<std::int64_t>> more = {{0, 20, 30, 60}, {0, 30, 90, 140}, {0, 1}};
  EXPECT_EQ(event_times(pass, more, 0), (Times{0, 20, 40, 90}));
  EXPECT_EQ(event_times(pass, more, 180), (Times{0, 40, 80, 180}));
  // A clock that steps back is no negative gap.
  pass.events[2].time_ns = 90;
  EXPECT_EQ(event_times(pass, {}, 0), (Times{0, 10, 10, 120}));
  EXPECT_EQ(event_times(RawPass{}, {}, 100), Times{});
}

// Every bad recording: what was done to a good one, and what the error must say.
struct Bad {
  const char* name;
  std::function<void(RawRecording&)> spoil;
  const char* text;
};

class BadRecording : public ::testing::TestWithParam<Bad> {};

TEST_P(BadRecording, IsRefused) {
  RawRecording recording = two_calls();
  GetParam().spoil(recording);
  const Result<Trace> trace = assemble(recording);
  ASSERT_FALSE(trace.ok());
  EXPECT_EQ(trace.error().code, ErrorCode::bad_input);
  EXPECT_NE(trace.error().text().find(GetParam().text), std::string::npos) << trace.error().text();
}

constexpr const char* kDangling = "refers to a record that it does not have";

INSTANTIATE_TEST_SUITE_P(
    All, BadRecording,
    ::testing::Values(
        Bad{"peak", [](RawRecording& r) { r.clean.peak_requested = 701; },
            "the observed step peaked at 700 requested bytes, the unobserved one at 701"},
        Bad{"counter", [](RawRecording& r) { r.structure.events[15].requested = 704; },
            "live bytes at event 15 are 700, the allocator counts 704"},
        Bad{"bytes_at_begin",
            [](RawRecording& r) {
              r.structure.live_at_begin[0].bytes = r.offload_all.live_at_begin[0].bytes = 396;
            },
            "live bytes at event 3 are 496, the allocator counts 500"},
        Bad{"passes_differ", [](RawRecording& r) { r.offload_all.ops[1].name = "aten::div"; },
            "event 14 is begin of aten::mul_backward in one and begin of aten::div in the other"},
        Bad{"unknown_free", [](RawRecording& r) { r.structure.events[17].id = 55; },
            "a free of memory whose allocation was not seen"},
        Bad{"freed_twice",
            [](RawRecording& r) {
              r.structure.events.insert(r.structure.events.begin() + 18, r.structure.events[17]);
            },
            "live bytes at event 18 are 500"},
        Bad{"unknown_gradient", [](RawRecording& r) { r.structure.events[18].id = 55; },
            "a gradient of a parameter whose storage was not seen"},
        Bad{"release_in_structure",
            [](RawRecording& r) {
              r.structure.events.insert(r.structure.events.begin() + 18,
                                        RawEvent{RawKind::released, 0, 0, 0, 0});
            },
            "a release in the structure pass"},
        Bad{"no_begin",
            [](RawRecording& r) { r.structure.events.erase(r.structure.events.begin()); },
            "the structure pass does not run from step begin to step end"},
        Bad{"no_end", [](RawRecording& r) { r.offload_all.events.pop_back(); },
            "the offload_all pass does not run from step begin to step end"},
        Bad{"empty", [](RawRecording& r) { r.structure = {}; }, "does not run from step begin"},
        Bad{"pack_row", [](RawRecording& r) { r.structure.events[4].id = 2; }, kDangling},
        Bad{"pack_none", [](RawRecording& r) { r.structure.events[4].id = -1; }, kDangling},
        Bad{"unpack_row", [](RawRecording& r) { r.structure.events[12].id = 9; }, kDangling},
        Bad{"layer_row", [](RawRecording& r) { r.structure.events[1].id = 1; }, kDangling},
        Bad{"op_row", [](RawRecording& r) { r.structure.events[2].id = 3; }, kDangling},
        Bad{"op_end_row", [](RawRecording& r) { r.structure.events[5].id = -4; }, kDangling},
        Bad{"layer_of_saved", [](RawRecording& r) { r.structure.saved[0].layer = 1; }, kDangling},
        Bad{"layer_of_saved_there", [](RawRecording& r) { r.offload_all.saved[1].layer = 8; },
            kDangling},
        Bad{"saved_of_unpack", [](RawRecording& r) { r.structure.unpacks[0].saved = 2; },
            kDangling},
        Bad{"parent_of_op", [](RawRecording& r) { r.structure.ops[0].parent = 0; }, kDangling},
        Bad{"rows_left_over",
            [](RawRecording& r) { r.structure.ops.push_back(r.structure.ops[0]); },
            "has records that no event names"},
        Bad{"packs_out_of_order",
            [](RawRecording& r) {
              for (RawPass* pass : {&r.structure, &r.offload_all}) {
                for (RawEvent& event : pass->events) {
                  if (event.kind == RawKind::pack) event.id = 1 - event.id;
                }
              }
            },
            "out of order"}),
    [](const auto& bad) { return std::string(bad.param.name); });

TEST(Assemble, RandomFabricationsAreValid) {
  for (unsigned seed = 0; seed < 300; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    std::mt19937 random(seed);
    const auto below = [&](unsigned n) { return static_cast<std::int64_t>(random() % n); };
    FabricatedRecording r;
    std::vector<std::int64_t> saved;
    std::vector<std::int64_t> storages;
    std::vector<std::pair<std::size_t, EventId>> natural;  // storage row, expected natural free
    for (std::int64_t i = below(4); i-- > 0;) r.existing(4 * (1 + below(50)));
    const std::int64_t existing_count = static_cast<std::int64_t>(r.existing(8));
    std::vector<std::string> open;
    const auto forward_op = [&] {
      r.begin_op("op" + std::to_string(below(5)), below(20));
      if (below(4) == 0) {
        r.begin_op("nested");
        r.end_op();
      }
      storages.push_back(r.alloc(4 * (1 + below(50))));
      for (std::int64_t k = below(3); k-- > 0;) {
        saved.push_back(r.pack(1 + below(static_cast<unsigned>(storages.back()))));
      }
      r.end_op();
    };
    for (std::int64_t i = 3 + below(12); i-- > 0;) {
      if (below(3) == 0) {
        open.push_back((open.empty() ? "l" : open.back() + ".l") + std::to_string(below(3)));
        r.begin_layer(open.back());
      }
      forward_op();
      if (!open.empty() && below(3) == 0) {
        r.end_layer(open.back());
        open.pop_back();
      }
    }
    for (; !open.empty(); open.pop_back()) r.end_layer(open.back());
    for (const std::int64_t serial : storages) {
      if (below(2) == 0) continue;
      natural.emplace_back(static_cast<std::size_t>(serial - 1), EventId(r.next_event() - 1));
      r.let_go(serial);
    }
    r.begin_backward();
    for (const std::int64_t each : saved) {
      for (std::int64_t uses = below(3); uses-- > 0;) {
        const std::int64_t unpack = r.unpack(each);
        r.begin_op("backward", 0, below(20));
        r.end_op();
        if (below(5) > 0) r.release(unpack);
      }
    }
    for (const std::int64_t serial : storages) {
      if (below(4) > 0) r.free(serial);
    }
    r.end_backward();
    const Trace trace = assembled(r.finish(1 + below(100000)));
    if (HasFailure()) return;
    EXPECT_EQ(trace.storages.size(), static_cast<std::size_t>(existing_count) + storages.size());
    EXPECT_EQ(trace.saved.size(), saved.size());
    for (const auto& [row, event] : natural) {
      EXPECT_EQ(trace.storages.natural_free_event[row], event);
    }
  }
}

}  // namespace
}  // namespace stowage::profiler
