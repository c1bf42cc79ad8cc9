// Streamed parameters on a step that is worked out by hand.
#include <gtest/gtest.h>

#include <algorithm>
#include <sstream>

#include "simulator/hazards/hazards.h"
#include "simulator/lowering/lowering.h"
#include "simulator/replay/replay.h"
#include "tests/simulator/oracle_hazards.h"
#include "tests/simulator/oracle_memory.h"
#include "tests/support/micro_trace.h"
#include "tests/support/schedule_parts.h"

namespace stowage::simulator {
namespace {

using testing::MicroTrace;
using Stream = ParameterPlan::Stream;

// Layer a with 100 bytes of parameters, layer b with 200; the link moves a byte a nanosecond. Times
// are those at which an event is reached with nothing moved.
//    0 step_begin 0         1 forward a 0         2 op_begin 0       3 op_end 1000
//    4 forward end a        5 forward b 1000      6 op_begin         7 op_end 2000
//    8 forward end b        9 backward_begin     10 backward b 2000 11 op_begin
//   12 op_end 3000         13 backward end b     14 backward a 3000 15 op_begin
//   16 op_end 4000         17 backward end a     18 backward_end    19 update a 4000
//   20 op_begin            21 op_end 4100        22 update end a    23 update b 4100
//   24 op_begin            25 op_end 4200        26 update end b    27 step_end 4200
struct TwoLayers {
  explicit TwoLayers(bool optimizer = true) : trace(make(optimizer)) {}

  static Trace make(bool optimizer) {
    MicroTrace t;
    const auto a = t.existing(100);
    const auto b = t.existing(200);
    const auto op = [&](StorageId parameter) {
      t.begin_op();
      t.read(parameter);
      t.run(1000).end_op();
    };
    t.begin_layer("a");
    op(a);
    t.end_layer("a");
    t.begin_layer("b");
    op(b);
    t.end_layer("b");
    t.set_layer(a, "a");
    t.set_layer(b, "b");
    t.backward();
    t.begin_layer_backward("b");
    op(b);
    t.end_layer_backward("b");
    t.begin_layer_backward("a");
    op(a);
    t.end_layer_backward("a");
    t.optimizer();
    if (optimizer) {
      t.update(a, 100);
      t.update(b, 100);
    }
    return t.finish();
  }

  Lowering lowering(const StreamModes& stream, std::optional<std::int32_t> prefetch,
                    std::optional<Bytes> budget = {}) {
    Plan plan;
    plan.parameters = ParameterPlan{{{"a"}, {"b"}}, stream, prefetch};
    plan.budget.device = budget;
    auto lowered = lower(index, plan);
    EXPECT_TRUE(lowered.ok()) << (lowered.ok() ? "" : lowered.error().text());
    if (!lowered) return {};
    EXPECT_TRUE(find_hazards(index, lowered->schedule).empty());
    return std::move(lowered).value();
  }

  Trace trace;
  StepIndex index{trace};
};

// "load:a@1+ ..": every instruction with its place, + after, - before.
std::string text_of(const Trace& trace, const Schedule& s) {
  std::string out;
  for (const Instruction& i : s.instructions) {
    const LayerId layer = trace.storages.layer[s.tenant(i.stay).storage.index()];
    out += (out.empty() ? "" : " ") + std::string(name_of(i.action)) + ":" +
           trace.string(trace.layers.name[layer.index()]) + "@" +
           std::to_string(i.anchor.event.value) + (i.anchor.side == Side::after ? "+" : "-");
  }
  return out;
}

// Every use waits for its own load. What was updated leaves when its store is expected to be done:
// a's, started at 4100 of the resident step, at 4200, which is event 25; b's not within the step.
TEST(Streaming, AlwaysOnDemand) {
  TwoLayers t;
  const Lowering lowered = t.lowering(Stream::always, 0);
  const Schedule& s = lowered.schedule;
  EXPECT_EQ(text_of(t.trace, s),
            "load:a@1+ await:a@1+ evict:a@4+ load:b@5+ await:b@5+ evict:b@8+ "
            "load:b@10+ await:b@10+ evict:b@13+ "
            "load:a@14+ await:a@14+ evict:a@17+ "
            "load:a@19+ await:a@19+ store:a@22+ "
            "load:b@23+ await:b@23+ store:b@26+ evict:a@26+ evict:b@27-");
  EXPECT_EQ(s.host_bytes, 1024);
  ASSERT_EQ(s.tenants.size(), 2u);
  EXPECT_EQ(s.tenants[0].host_offset, 0);
  EXPECT_EQ(s.tenants[1].host_offset, 512);
  ReplayDetail detail;
  const ReplayResult r = replay(t.index, s, &detail);
  // Six loads, 100 or 200 each, all waited for: 900; the last store, 200, is waited for at the end.
  EXPECT_EQ(r.compute_ns, 4200);
  EXPECT_EQ(r.stall_ns, 1100);
  EXPECT_EQ(r.step_ns, 5300);
  EXPECT_EQ(r.h2d_bytes, 900);
  EXPECT_EQ(r.d2h_bytes, 300);
  ASSERT_EQ(r.stalls.size(), 7u);
  EXPECT_EQ(r.stalls[6].event, EventId(27));
  EXPECT_TRUE(r.stalls[6].is_store);
  EXPECT_EQ(r.stalls[6].duration, 200);
  EXPECT_FALSE(r.stalls[0].is_store);
  EXPECT_EQ(r.stalls[0].stay, StayId(std::size_t{0}));
  // Nothing at first; a leaves at event 4 behind its last use, b comes at 5.
  EXPECT_EQ(detail.requested[0], 0);
  EXPECT_EQ(detail.requested[3], 100);
  EXPECT_EQ(detail.requested[5], 200);
  EXPECT_EQ(detail.requested[9], 0);
  EXPECT_EQ(r.peak_requested, 300);  // at the update of b, while a's store is under way
  EXPECT_EQ(r.peak_event, EventId(23));
}

// A load starts where the visit before its own does. b's backward would start to load in b's
// forward: b stays in between, as a does between its backward and its update. a's next forward
// would start to load where b's update begins, while a's store is still under way: it stays too.
TEST(Streaming, AlwaysOneAhead) {
  TwoLayers t;
  const Lowering lowered = t.lowering(Stream::always, 1);
  const Schedule& s = lowered.schedule;
  EXPECT_EQ(text_of(t.trace, s),
            "load:b@1+ evict:a@4+ await:b@5+ load:a@10+ evict:b@13+ "
            "await:a@14+ load:b@19+ store:a@22+ await:b@23+ "
            "store:b@26+ evict:b@27-");
  int wrapping = 0;
  for (const Stay& stay : s.stays) wrapping += stay.wraps;
  EXPECT_EQ(wrapping, 1);
  ReplayDetail detail;
  const ReplayResult r = replay(t.index, s, &detail);
  // b 0..200 and a 2000..2100 are in time; b 4000..4200 is 100 late for its update, 4200..4300. Its
  // store runs 4300..4500, and the step ends with it.
  EXPECT_EQ(r.step_ns, 4500);
  EXPECT_EQ(r.stall_ns, 300);
  EXPECT_EQ(detail.requested[0], 100);  // a
  EXPECT_EQ(detail.requested[27], 300);
  EXPECT_EQ(r.peak_requested, 300);
  EXPECT_EQ(r.peak_event, EventId(1));
}

// Both go over the step's end: a from its backward to the next forward, b from its update to the
// next backward. Their stores are under way when the step ends: a's is done at 4200, b's at 4400.
TEST(Streaming, AlwaysTwoAhead) {
  TwoLayers t;
  const Lowering lowered = t.lowering(Stream::always, 2);
  const Schedule& s = lowered.schedule;
  EXPECT_EQ(text_of(t.trace, s),
            "evict:a@4+ load:a@5+ evict:b@13+ load:b@14+ await:a@14+ "
            "store:a@22+ await:b@23+ store:b@26+");
  const ReplayResult r = replay(t.index, s);
  EXPECT_EQ(r.step_ns, 4400);
  ASSERT_EQ(r.stalls.size(), 1u);
  EXPECT_EQ(r.stalls[0].event, EventId(27));
  EXPECT_EQ(r.stalls[0].start, 4200);
  EXPECT_EQ(r.stalls[0].duration, 200);
  EXPECT_TRUE(r.stalls[0].is_store);
  EXPECT_EQ(r.peak_requested, 300);
  EXPECT_EQ(r.peak_event, EventId(0));
}

// So far ahead that each would come back before it leaves: nothing streams, and a note says so.
TEST(Streaming, TooFarAheadIsResident) {
  TwoLayers t;
  const Lowering lowered = t.lowering(Stream::always, 6);
  EXPECT_TRUE(lowered.schedule.tenants.empty());
  EXPECT_TRUE(lowered.schedule.instructions.empty());
  ASSERT_EQ(lowered.notes.size(), 2u);
  EXPECT_EQ(subject_of(t.trace, lowered.notes[0]), "parameter of a (storage 0)");
  EXPECT_EQ(lowered.notes[0].text, "stays: it would come back where it leaves");
  EXPECT_EQ(replay(t.index, lowered.schedule).peak_requested, 300);
}

// After forward nothing is there; b comes back for its backward (200 late), a for its (100 late);
// both stay for the update and the next forward. Stores: a 4400..4500, b 4500..4700.
TEST(Streaming, ForwardOnDemand) {
  TwoLayers t;
  const Lowering lowered = t.lowering(Stream::forward, 0);
  EXPECT_EQ(text_of(t.trace, lowered.schedule),
            "evict:a@4+ evict:b@8+ load:b@10+ await:b@10+ load:a@14+ "
            "await:a@14+ store:a@22+ store:b@26+");
  ReplayDetail detail;
  const ReplayResult r = replay(t.index, lowered.schedule, &detail);
  EXPECT_EQ(r.step_ns, 4700);
  EXPECT_EQ(r.stall_ns, 500);
  EXPECT_EQ(r.h2d_bytes, 300);
  EXPECT_EQ(r.d2h_bytes, 300);
  EXPECT_EQ(detail.requested[0], 300);
  EXPECT_EQ(detail.requested[5], 200);
  EXPECT_EQ(detail.requested[9], 0);
  EXPECT_EQ(detail.requested[27], 300);
}

// Both stay from their forward to the end of their backward. Loads: 100 and 200 in forward, again
// for the updates, all waited for; b's store, 200, is waited for at the end.
TEST(Streaming, BackwardOnDemand) {
  TwoLayers t;
  const Lowering lowered = t.lowering(Stream::backward, 0);
  EXPECT_EQ(text_of(t.trace, lowered.schedule),
            "load:a@1+ await:a@1+ load:b@5+ await:b@5+ evict:b@13+ evict:a@17+ "
            "load:a@19+ await:a@19+ store:a@22+ load:b@23+ await:b@23+ store:b@26+ "
            "evict:a@26+ evict:b@27-");
  ReplayDetail detail;
  const ReplayResult r = replay(t.index, lowered.schedule, &detail);
  EXPECT_EQ(r.step_ns, 5000);
  EXPECT_EQ(r.stall_ns, 800);
  EXPECT_EQ(r.h2d_bytes, 600);
  EXPECT_EQ(r.d2h_bytes, 300);
  EXPECT_EQ(detail.requested[0], 0);
  EXPECT_EQ(detail.requested[9], 300);
  EXPECT_EQ(detail.requested[14], 100);
  EXPECT_EQ(detail.requested[18], 0);
}

// Each shard in its own mode: what it would do alone.
TEST(Streaming, EachShardInItsMode) {
  TwoLayers t;
  const auto of = [&](const std::string& text, const std::string& layer) {
    std::string own;
    std::istringstream words(text);
    for (std::string word; words >> word;) {
      if (word.find(":" + layer + "@") != std::string::npos) own += word + " ";
    }
    return own;
  };
  const auto text = [&](const StreamModes& modes) {
    return text_of(t.trace, t.lowering(modes, 0).schedule);
  };
  for (const Stream a : {Stream::off, Stream::forward, Stream::backward, Stream::always}) {
    for (const Stream b : {Stream::off, Stream::forward, Stream::backward, Stream::always}) {
      const std::string both = text(StreamModes({a, b}));
      EXPECT_EQ(of(both, "a"), of(text(a), "a"));
      EXPECT_EQ(of(both, "b"), of(text(b), "b"));
    }
  }
}

// Without an optimizer nothing is written, so nothing is stored.
TEST(Streaming, CleanParametersAreNotStored) {
  TwoLayers t(false);
  for (const Stream stream : {Stream::forward, Stream::always}) {
    for (const std::int32_t prefetch : {0, 1}) {
      const Schedule s = t.lowering(stream, prefetch).schedule;
      ASSERT_FALSE(s.stays.empty());
      for (const Stay& stay : s.stays) EXPECT_FALSE(stay.is_stored);
      EXPECT_EQ(replay(t.index, s).d2h_bytes, 0);
    }
  }
}

// Everything in time but the last store (4200..4400). b's backward and a's update follow too soon
// upon the use before, and a's next forward too soon upon its update: they stay in between.
TEST(Streaming, Automatic) {
  TwoLayers t;
  const Lowering lowered = t.lowering(Stream::always, std::nullopt);
  EXPECT_EQ(text_of(t.trace, lowered.schedule),
            "load:b@1+ evict:a@4+ await:b@5+ load:a@10+ evict:b@13+ "
            "load:b@14+ await:a@14+ store:a@22+ await:b@23+ "
            "store:b@26+ evict:b@27-");
  const ReplayResult r = replay(t.index, lowered.schedule);
  EXPECT_EQ(r.step_ns, 4400);
  EXPECT_EQ(r.stall_ns, 200);
  EXPECT_EQ(r.peak_requested, 300);
}

// Never both: every load waits for the other parameter to be gone.
TEST(Streaming, AutomaticWithinABudget) {
  TwoLayers t;
  for (const Bytes budget : {200, 250, 299}) {
    const Lowering lowered = t.lowering(Stream::always, std::nullopt, budget);
    const ReplayResult r = replay(t.index, lowered.schedule);
    EXPECT_EQ(r.peak_requested, 200) << text_of(t.trace, lowered.schedule);
    EXPECT_GT(r.step_ns, 4400);
  }
  EXPECT_EQ(replay(t.index, t.lowering(Stream::always, std::nullopt, 300).schedule).step_ns, 4400);
}

// The head uses the embedding's weight and has no parameters of its own: the weight leaves between
// its two uses in forward, though both are in one phase.
TEST(Streaming, ATiedWeightLeavesInBetween) {
  MicroTrace t;
  const auto weight = t.existing(100);
  const auto middle = t.existing(200);
  const auto use = [&](const char* layer, StorageId parameter, bool in_forward) {
    in_forward ? t.begin_layer(layer) : t.begin_layer_backward(layer);
    t.begin_op();
    t.read(parameter);
    t.run(1000).end_op();
    in_forward ? t.end_layer(layer) : t.end_layer_backward(layer);
  };
  use("embed", weight, true);
  use("middle", middle, true);
  use("head", weight, true);
  t.set_layer(weight, "embed");
  t.set_layer(middle, "middle");
  t.backward();
  use("head", weight, false);
  use("middle", middle, false);
  use("embed", weight, false);
  const Trace trace = t.finish();
  const StepIndex index(trace);
  Plan plan;
  plan.parameters = ParameterPlan{{{"embed"}, {"middle"}}, Stream::always, 0};
  const auto lowered = lower(index, plan);
  ASSERT_TRUE(lowered.ok());
  EXPECT_TRUE(find_hazards(index, lowered->schedule).empty());
  // embed, head, head again, embed; middle twice.
  EXPECT_EQ(lowered->schedule.stays.size(), 6u);
  EXPECT_EQ(replay(index, lowered->schedule).peak_requested, 200);
  // "forward" keeps it through forward: it leaves behind the head and comes back once.
  plan.parameters->stream = Stream::forward;
  const auto forward = lower(index, plan);
  ASSERT_TRUE(forward.ok());
  EXPECT_EQ(forward->schedule.stays.size(), 2u);
}

TEST(Streaming, WhyParametersStay) {
  MicroTrace t;
  const auto unused = t.existing(40);
  const auto empty = t.existing(0);
  const auto written_early = t.existing(40);
  const auto unannounced = t.existing(40);
  const auto outlives = t.existing(40);
  const auto lone = t.existing(40);  // no forward uses it
  t.begin_op();
  t.write(written_early);
  t.read(unannounced);
  t.read(empty);
  t.end_op();
  const auto s = t.pack(outlives);
  t.backward();
  t.outlives_step(t.unpack(s));
  t.begin_op();
  t.read(lone);
  t.end_op();
  t.optimizer();
  t.begin_op();
  t.write(unannounced);
  t.end_op();
  const Trace trace = t.finish();
  const StepIndex index(trace);
  Decisions decisions = testing::offload_all(trace);
  decisions.parameters.shard_of.assign(trace.storages.size(), 0);
  decisions.parameters.stream = Stream::forward;
  const auto lowered = lower(index, decisions);
  ASSERT_TRUE(lowered.ok());
  const auto note = [&](StorageId storage) -> std::string {
    for (const LoweringNote& each : lowered->notes) {
      if (each.storage == storage) return each.text;
    }
    return "";
  };
  EXPECT_EQ(note(unused), "stays: the step does not use it");
  EXPECT_EQ(note(empty), "stays: it has no bytes");
  EXPECT_EQ(note(written_early), "stays: the step writes it outside the optimizer");
  EXPECT_EQ(note(unannounced), "stays: the recording does not say when the optimizer updates it");
  EXPECT_EQ(note(outlives), "stays: what is saved of it at step#0 outlives the step");
  EXPECT_EQ(note(lone), "stays: no forward uses it");
  EXPECT_TRUE(testing::parameters(lowered->schedule).empty());
}

// A rule that offloads what is saved of a parameter gives way to its streaming.
TEST(Streaming, SavedTensorsOfAStreamedParameterStay) {
  MicroTrace t;
  const auto parameter = t.existing(400);
  t.begin_layer("a");
  const auto s = t.pack(parameter);
  t.end_layer("a");
  t.run(5000).backward();
  t.begin_layer_backward("a");
  t.unpack(s);
  t.end_layer_backward("a");
  const Trace trace = t.finish();
  const StepIndex index(trace);
  Decisions decisions = testing::offload_all(trace);
  EXPECT_EQ(testing::made_stays(lower(index, decisions)->schedule).size(), 1u);
  decisions.parameters.shard_of = {0};
  decisions.parameters.stream = Stream::always;
  const auto lowered = lower(index, decisions);
  ASSERT_TRUE(lowered.ok());
  EXPECT_TRUE(testing::made_stays(lowered->schedule).empty());
  EXPECT_EQ(testing::parameters(lowered->schedule).size(), 1u);
  ASSERT_EQ(lowered->notes.size(), 1u);
  EXPECT_EQ(lowered->notes[0].text, "stays: its parameter streams");
}

TEST(Streaming, NeedsACalibratedLink) {
  TwoLayers t;
  t.trace.calibration.h2d = {};
  Plan plan;
  plan.parameters = ParameterPlan{{{"a"}}, Stream::always, 0};
  const auto lowered = lower(t.index, plan);
  ASSERT_FALSE(lowered.ok());
  EXPECT_EQ(lowered.error().pointer, "/calibration");
  plan.parameters->stream = Stream::off;
  EXPECT_TRUE(lower(t.index, plan).ok());
}

// Each kind of damage, by the name of what is wrong.
struct Damaged : TwoLayers {
  Schedule s = lowering(Stream::always, 0).schedule;

  std::size_t find(Action action, std::int32_t stay) {
    for (std::size_t i = 0; i < s.instructions.size(); ++i) {
      const Instruction& at = s.instructions[i];
      if (at.action == action && at.stay.value == stay) return i;
    }
    ADD_FAILURE() << "no such instruction";
    return 0;
  }
  void erase(Action action, std::int32_t stay) {
    s.instructions.erase(s.instructions.begin() + static_cast<long>(find(action, stay)));
  }
  void move(Action action, std::int32_t stay, int event, Side side) {
    Instruction i = s.instructions[find(action, stay)];
    erase(action, stay);
    i.anchor = index.anchor_at(EventId(event), side);
    auto at = s.instructions.begin();
    while (at != s.instructions.end() &&
           Place{at->anchor.event, at->anchor.side} <= Place{EventId(event), side}) {
      ++at;
    }
    s.instructions.insert(at, i);
  }
  bool has(HazardKind kind) {
    for (const Hazard& hazard : find_hazards(index, s)) {
      if (hazard.kind == kind && hazard.first.valid()) return true;
    }
    return false;
  }
};

TEST(StreamingHazards, EveryInstructionIsNeededOnce) {
  for (std::size_t i = 0; i < Damaged().s.instructions.size(); ++i) {
    Damaged missing;
    missing.s.instructions.erase(missing.s.instructions.begin() + static_cast<long>(i));
    EXPECT_TRUE(missing.has(HazardKind::malformed)) << i;
    Damaged twice;
    const Instruction copy = twice.s.instructions[i];
    twice.s.instructions.insert(twice.s.instructions.begin() + static_cast<long>(i), copy);
    EXPECT_TRUE(twice.has(HazardKind::malformed)) << i;
  }
}

// Stays by their waits: 0 a forward, 1 b forward, 2 b backward, 3 a backward, 4 a's update, 5
// b's update.
TEST(StreamingHazards, AUseOutsideAStay) {
  Damaged early;
  early.move(Action::evict, 0, 1, Side::after);
  EXPECT_TRUE(early.has(HazardKind::used_while_away));
  Damaged late;
  late.move(Action::await, 1, 8, Side::before);
  EXPECT_TRUE(late.has(HazardKind::used_while_away));
  Damaged no_wait;
  no_wait.erase(Action::await, 3);
  EXPECT_TRUE(no_wait.has(HazardKind::used_while_away));
}

TEST(StreamingHazards, AnUpdateThatIsLost) {
  Damaged early;
  early.move(Action::store, 4, 19, Side::after);
  EXPECT_TRUE(early.has(HazardKind::update_lost));
  Damaged none;
  none.erase(Action::store, 5);
  none.s.stays[5].is_stored = false;
  EXPECT_TRUE(none.has(HazardKind::update_lost));
}

TEST(StreamingHazards, CopiesUnderWay) {
  Damaged load;  // nothing waits for it before the buffer goes
  load.erase(Action::await, 0);
  EXPECT_TRUE(load.has(HazardKind::freed_while_copied));
  Damaged store;  // the evict does not know that there is one
  store.s.stays[5].is_stored = false;
  EXPECT_TRUE(store.has(HazardKind::freed_while_copied));
  EXPECT_TRUE(store.has(HazardKind::load_before_store_finished));
}

TEST(StreamingHazards, StaysThatOverlap) {
  Damaged t;
  t.move(Action::load, 2, 5, Side::after);
  EXPECT_TRUE(t.has(HazardKind::malformed));
  Damaged wraps;
  wraps.s.stays[1].wraps = true;
  EXPECT_TRUE(wraps.has(HazardKind::malformed));
}

// a's backward stay (3) is stored too, unchanged, and leaves behind its update's stay (4): two
// stays at once, whose copies meet at home.
struct StoredTwice : Damaged {
  // The store goes ahead of the first instruction at the place that is not a load.
  void store_of_3(int event) {
    s.stays[3].is_stored = true;
    move(Action::evict, 3, 26, Side::after);
    const Place place{EventId(event), Side::after};
    auto at = std::find_if(s.instructions.begin(), s.instructions.end(), [&](const auto& i) {
      return Place{i.anchor.event, i.anchor.side} >= place && i.action != Action::load;
    });
    s.instructions.insert(at, {Action::store, StayId(3), index.anchor_at(place.event, place.side)});
  }
};

TEST(StreamingHazards, AStoreBesideALoadOfTheSameHome) {
  StoredTwice beside;  // the update's load has started, and nothing has waited for it
  beside.store_of_3(19);
  EXPECT_TRUE(beside.has(HazardKind::host_slot_overwritten));
  EXPECT_FALSE(beside.has(HazardKind::update_lost));
  EXPECT_FALSE(testing::oracle_is_safe(beside.trace, beside.s));
}

TEST(StreamingHazards, AStoreOfOlderBytesBehindTheUpdate) {
  StoredTwice older;
  older.store_of_3(23);
  EXPECT_TRUE(older.has(HazardKind::update_lost));
  EXPECT_FALSE(testing::oracle_is_safe(older.trace, older.s));
}

TEST(StreamingHazards, SlotsAndTables) {
  Damaged same;
  same.s.tenants[1].host_offset = 0;
  EXPECT_TRUE(same.has(HazardKind::malformed));
  Damaged outside;
  outside.s.tenants[1].host_offset = 1024;
  EXPECT_TRUE(outside.has(HazardKind::malformed));
  Damaged size;
  size.s.tenants[0].bytes = 50;
  EXPECT_TRUE(size.has(HazardKind::malformed));
  Damaged unknown;
  unknown.s.stays[0].tenant = TenantId(7);
  EXPECT_FALSE(find_hazards(unknown.index, unknown.s).empty());
  Damaged nothing;
  nothing.s.instructions[0].stay = StayId(99);
  EXPECT_FALSE(find_hazards(nothing.index, nothing.s).empty());
  Damaged storage;
  storage.s.tenants[0].storage = StorageId(99);
  EXPECT_FALSE(find_hazards(storage.index, storage.s).empty());
}

}  // namespace
}  // namespace stowage::simulator
