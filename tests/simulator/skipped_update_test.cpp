// The period of a step that skips its update, on a step that is worked out by hand.
#include "simulator/lowering/skipped_update.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <optional>
#include <string>
#include <tuple>
#include <utility>

#include "simulator/hazards/skipped_update_check.h"
#include "simulator/lowering/lowering.h"
#include "simulator/replay/replay.h"
#include "simulator/schedule/tenant_kind.h"
#include "simulator/step/unroll.h"
#include "tests/simulator/oracle_hazards.h"
#include "tests/support/micro_trace.h"
#include "traces/validate.h"

namespace stowage::simulator {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using testing::MicroTrace;
using Stream = ParameterPlan::Stream;

// Layer a with 100 bytes of parameters, layer b with 200, as in streaming_test.cpp; the link moves
// a byte a nanosecond.
//    0 step_begin 0         1 forward a 0         2 op_begin 0       3 op_end 1000
//    4 forward end a        5 forward b 1000      6 op_begin         7 op_end 2000
//    8 forward end b        9 backward_begin     10 backward b 2000 11 op_begin
//   12 op_end 3000         13 backward end b     14 backward a 3000 15 op_begin
//   16 op_end 4000         17 backward end a     18 backward_end    19 update a 4000
//   20 op_begin            21 op_end 4100        22 update end a    23 update b 4100
//   24 op_begin            25 op_end 4200        26 update end b    27 step_end 4200
// Without the update step_end is event 19.
struct LayerOptions {
  // 7 alloc x, 8 pack x: 3100 bytes that no unpack asks for. What follows has numbers higher by
  // two.
  bool saves = false;
  // Behind the updates an op reads b. In layer c: 27 forward c, 28 op_begin, 29 op_end, 30 forward
  // end c, 31 step_end; 19 to 23 without the update. In no layer: 27 op_begin, 28 op_end, 29
  // step_end; 19 to 21.
  bool averages = false;
  bool in_layer = true;
};

struct UpdatedLayers {
  explicit UpdatedLayers(LayerOptions options = {}) : trace(make(options)) {}

  static Trace make(const LayerOptions& options) {
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
    t.begin_op();
    if (options.saves) {
      const auto x = t.alloc(3100);
      t.pack(x);
      t.let_go(x);
    }
    t.read(b);
    t.run(1000).end_op();
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
    t.update(a, 100);
    t.update(b, 100);
    if (options.averages) {
      if (options.in_layer) t.begin_layer("c");
      op(b);
      if (options.in_layer) t.end_layer("c");
    }
    return t.finish();
  }

  Schedule streamed(Stream stream, std::optional<std::int32_t> prefetch) const {
    Plan plan;
    plan.parameters = ParameterPlan{{{"a"}, {"b"}}, stream, prefetch};
    auto lowered = lower(index, plan);
    EXPECT_TRUE(lowered.ok()) << (lowered.ok() ? "" : lowered.error().text());
    return lowered ? lowered->schedule : Schedule{};
  }

  // A schedule under which a, or b, or both stream: its stays, a letter each, a and A of a, b and B
  // of b; which of them wrap and which are stored; its instructions.
  struct Row {
    Action action;
    char stay;
    int event;
    Side side;
  };
  Schedule written(const std::string& stays, const std::string& wrapping, const std::string& stored,
                   const std::vector<Row>& rows) const {
    Schedule s;
    s.has_hooks = true;
    const bool streams_a = stays.find('a') != std::string::npos;
    if (streams_a) s.tenants.push_back({&kParameter, StorageId(0), 0, 100, 0, true, {}});
    if (stays.find('b') != std::string::npos) {
      s.tenants.push_back({&kParameter, StorageId(1), 0, 200, 512, true, {}});
    }
    s.host_bytes = 1024;
    s.tenant_of.resize(trace.saved.size());
    s.stay_of.resize(trace.unpacks.size());
    for (const char c : stays) {
      Stay stay;
      stay.tenant = TenantId(c == 'a' || c == 'A' || !streams_a ? 0 : 1);
      stay.wraps = wrapping.find(c) != std::string::npos;
      stay.is_stored = stored.find(c) != std::string::npos;
      s.stays.push_back(stay);
    }
    for (const Row& row : rows) {
      s.instructions.push_back({row.action, StayId(stays.find(row.stay)),
                                index.anchor_at(EventId(row.event), row.side)});
    }
    return s;
  }

  Trace trace;
  StepIndex index{trace};
};

constexpr Side kAfter = Side::after;
constexpr Side kBefore = Side::before;

std::string row_texts(const Trace& trace, const Schedule& s) {
  std::string out;
  for (const Instruction& i : s.instructions) {
    const std::size_t storage = s.tenant(i.stay).storage.index();
    const LayerId layer = trace.storages.layer[storage];
    const bool is_parameter = trace.storages.storage_class[storage] == StorageClass::parameter;
    out += (out.empty() ? "" : " ") + std::string(name_of(i.action)) + ":" +
           (is_parameter ? trace.string(trace.layers.name[layer.index()]) : "x") + "@" +
           std::to_string(i.anchor.event.value) + (i.anchor.side == Side::after ? "+" : "-");
  }
  return out;
}

// BothPeriods periods, checked in every way; the text of the one that skips.
struct BothPeriods {
  BothPeriods(const UpdatedLayers& t, Schedule schedule) : of(&t), taken(std::move(schedule)) {
    const StepIndex& index = t.index;
    const auto hazards = find_hazards(index, taken);
    EXPECT_THAT(hazards, IsEmpty()) << hazards.front().text;
    auto made = skip_update(index, taken);
    EXPECT_TRUE(made.ok()) << (made.ok() ? "" : made.error().text());
    if (!made) return;
    EXPECT_TRUE(validate(made->step.trace(), "").ok());
    without = made->schedule;
    shared = made->shared;
    step = made->step;
    skipped = StepIndex(step);
    EXPECT_EQ(refusal(), "");
    for (int kinds = 0; kinds < 16; ++kinds) EXPECT_TRUE(is_safe(kinds)) << kinds;
    EXPECT_EQ(stays_at_end(index, taken), stays_at_end(skipped, without));
  }

  [[nodiscard]] std::string text() const { return row_texts(skipped.trace(), without); }
  // Four periods; a bit that is set: the period skips its update.
  [[nodiscard]] bool is_safe(int kinds) const {
    std::vector<testing::OraclePeriod> periods;
    for (int i = 0; i < 4; ++i) {
      const bool skips = (kinds >> i & 1) != 0;
      periods.push_back({skips ? skipped.trace() : of->trace, skips ? without : taken});
    }
    return testing::oracle_is_safe(periods);
  }
  // All findings of the check, "" = none.
  [[nodiscard]] std::string refusal() const {
    std::string out;
    for (const Hazard& each : check_skipped_update(of->index, taken, skipped, without)) {
      out += each.text + "\n";
    }
    return out;
  }
  [[nodiscard]] int row_of(Action action, StayId stay) const {
    const auto& list = without.instructions;
    for (std::size_t i = 0; i < list.size(); ++i) {
      if (list[i].action == action && list[i].stay == stay) return static_cast<int>(i);
    }
    return -1;
  }
  void erase(Action action, StayId stay) {
    const int row = row_of(action, stay);
    ASSERT_GE(row, 0);
    without.instructions.erase(without.instructions.begin() + row);
  }

  const UpdatedLayers* of;
  Schedule taken;
  std::size_t shared = 0;
  Step step{of->trace};
  StepIndex skipped{step};
  Schedule without;
};

constexpr StayId stay_id(int row) {
  return StayId(row);
}

// Two stays are for the updates alone: none is there where they are skipped. Compute 4000; four
// loads that are waited for, 600.
TEST(SkippedUpdate, StaysOfTheUpdateAloneAreLeftOut) {
  const UpdatedLayers t;
  const Schedule schedule = t.streamed(Stream::always, 0);
  ASSERT_EQ(row_texts(t.trace, schedule),
            "load:a@1+ await:a@1+ evict:a@4+ load:b@5+ await:b@5+ evict:b@8+ "
            "load:b@10+ await:b@10+ evict:b@13+ "
            "load:a@14+ await:a@14+ evict:a@17+ "
            "load:a@19+ await:a@19+ store:a@22+ "
            "load:b@23+ await:b@23+ store:b@26+ evict:a@26+ evict:b@27-");
  const BothPeriods both(t, schedule);
  EXPECT_EQ(both.text(),
            "load:a@1+ await:a@1+ evict:a@4+ load:b@5+ await:b@5+ evict:b@8+ "
            "load:b@10+ await:b@10+ evict:b@13+ "
            "load:a@14+ await:a@14+ evict:a@17+");
  EXPECT_EQ(both.shared, 12U);
  ASSERT_EQ(both.without.stays.size(), 6U);
  for (std::size_t i = 0; i < 6; ++i) EXPECT_EQ(both.without.stays[i].is_left_out, i >= 4) << i;
  EXPECT_THAT(stays_at_end(both.skipped, both.without), IsEmpty());
  const ReplayResult r = replay(both.skipped, both.without);
  EXPECT_EQ(r.compute_ns, 4000);
  EXPECT_EQ(r.stall_ns, 600);
  EXPECT_EQ(r.h2d_bytes, 600);
  EXPECT_EQ(r.d2h_bytes, 0);
  EXPECT_EQ(r.peak_requested, 200);
}

// Loaded for backward, kept through the update and on to the next forward: it stays, and what the
// update would have written is not stored. Loads that are waited for: b 200, a 100.
TEST(SkippedUpdate, StoresOfTheUpdateAreLeftOut) {
  const UpdatedLayers t;
  const Schedule schedule = t.streamed(Stream::forward, 0);
  ASSERT_EQ(row_texts(t.trace, schedule),
            "evict:a@4+ evict:b@8+ load:b@10+ await:b@10+ load:a@14+ "
            "await:a@14+ store:a@22+ store:b@26+");
  const BothPeriods both(t, schedule);
  EXPECT_EQ(both.text(), "evict:a@4+ evict:b@8+ load:b@10+ await:b@10+ load:a@14+ await:a@14+");
  for (const Stay& each : both.without.stays) {
    EXPECT_FALSE(each.is_stored);
    EXPECT_FALSE(each.is_left_out);
  }
  EXPECT_THAT(stays_at_end(both.skipped, both.without),
              ElementsAre(StayAtEnd{stay_id(0), true}, StayAtEnd{stay_id(1), true}));
  const ReplayResult r = replay(both.skipped, both.without);
  EXPECT_EQ(r.step_ns, 4300);
  EXPECT_EQ(r.stall_ns, 300);
  EXPECT_EQ(r.h2d_bytes, 300);
  EXPECT_EQ(r.d2h_bytes, 0);
  EXPECT_EQ(r.peak_requested, 300);
}

// b's load begins in backward and is awaited for the update: where that is skipped, at the step's
// end. It ran 3000..3200, so nothing waits.
TEST(SkippedUpdate, WhatIsUnderWayIsAwaitedAtTheEnd) {
  const UpdatedLayers t;
  const Schedule schedule = t.streamed(Stream::always, 2);
  ASSERT_EQ(row_texts(t.trace, schedule),
            "evict:a@4+ load:a@5+ evict:b@13+ load:b@14+ await:a@14+ "
            "store:a@22+ await:b@23+ store:b@26+");
  const BothPeriods both(t, schedule);
  EXPECT_EQ(both.text(), "evict:a@4+ load:a@5+ evict:b@13+ load:b@14+ await:a@14+ await:b@19-");
  EXPECT_EQ(both.shared, 5U);
  const ReplayResult r = replay(both.skipped, both.without);
  EXPECT_EQ(r.step_ns, 4000);
  EXPECT_EQ(r.stall_ns, 0);
  EXPECT_EQ(r.peak_requested, 300);
}

// a's load for the next forward stands behind its update, b's in it; b is awaited there.
Schedule loaded_in_the_section(const UpdatedLayers& t) {
  return t.written("aAbB", "ab", "AB",
                   {{Action::await, 'a', 1, kAfter},
                    {Action::evict, 'a', 4, kAfter},
                    {Action::evict, 'b', 8, kAfter},
                    {Action::load, 'B', 10, kAfter},
                    {Action::await, 'B', 10, kAfter},
                    {Action::load, 'A', 14, kAfter},
                    {Action::await, 'A', 14, kAfter},
                    {Action::store, 'A', 22, kAfter},
                    {Action::evict, 'A', 23, kAfter},
                    {Action::load, 'a', 26, kBefore},
                    {Action::store, 'B', 26, kAfter},
                    {Action::evict, 'B', 26, kAfter},
                    {Action::load, 'b', 26, kAfter},
                    {Action::await, 'b', 27, kBefore}});
}

// What would end in the section ends in the tail, then what wraps is loaded; what is awaited behind
// the section is awaited there. Compute 4000, B's and A's loads 300, then a and b, 4300..4600.
TEST(SkippedUpdate, StaysThatWrapAreLoadedInTheTail) {
  const UpdatedLayers t;
  const BothPeriods both(t, loaded_in_the_section(t));
  EXPECT_EQ(both.text(),
            "await:a@1+ evict:a@4+ evict:b@8+ load:b@10+ await:b@10+ load:a@14+ await:a@14+ "
            "evict:a@19- evict:b@19- load:a@19- load:b@19- await:b@19-");
  EXPECT_EQ(both.shared, 7U);
  EXPECT_THAT(stays_at_end(both.skipped, both.without),
              ElementsAre(StayAtEnd{stay_id(0), false}, StayAtEnd{stay_id(2), true}));
  ReplayDetail detail;
  const ReplayResult r = replay(both.skipped, both.without, &detail);
  EXPECT_EQ(r.step_ns, 4600);
  EXPECT_EQ(r.compute_ns, 4000);
  EXPECT_EQ(r.peak_requested, 300);
  EXPECT_EQ(detail.requested.front(), 300);
  EXPECT_EQ(detail.requested.back(), 300);
}

// The loads of the updates' own stays are under way when the update is skipped: they are waited for
// and their buffers given up. a 0..100, b 1100..1300; compute ends at 4300, A 4300..4400, B ..4600.
TEST(SkippedUpdate, WhatIsLoadedForTheUpdateGoes) {
  const UpdatedLayers t;
  const BothPeriods both(t, t.written("abAB", "", "AB",
                                      {{Action::load, 'a', 1, kAfter},
                                       {Action::await, 'a', 1, kAfter},
                                       {Action::load, 'b', 5, kAfter},
                                       {Action::await, 'b', 5, kAfter},
                                       {Action::evict, 'b', 13, kAfter},
                                       {Action::evict, 'a', 17, kAfter},
                                       {Action::load, 'A', 17, kAfter},
                                       {Action::load, 'B', 17, kAfter},
                                       {Action::await, 'A', 19, kAfter},
                                       {Action::store, 'A', 22, kAfter},
                                       {Action::evict, 'A', 23, kAfter},
                                       {Action::await, 'B', 23, kAfter},
                                       {Action::store, 'B', 26, kAfter},
                                       {Action::evict, 'B', 27, kBefore}}));
  EXPECT_EQ(both.text(),
            "load:a@1+ await:a@1+ load:b@5+ await:b@5+ evict:b@13+ evict:a@17+ load:a@17+ "
            "load:b@17+ await:a@19- await:b@19- evict:a@19- evict:b@19-");
  EXPECT_THAT(stays_at_end(both.skipped, both.without), IsEmpty());
  const ReplayResult r = replay(both.skipped, both.without);
  EXPECT_EQ(r.step_ns, 4600);
  EXPECT_EQ(r.d2h_bytes, 0);
  EXPECT_EQ(r.peak_requested, 300);
}

// On the device all the time but for a moment in the section: it goes and comes back in the tail.
TEST(SkippedUpdate, AStayFromOneUpdateToTheNext) {
  const UpdatedLayers t;
  const BothPeriods both(t, t.written("a", "a", "a",
                                      {{Action::await, 'a', 1, kAfter},
                                       {Action::store, 'a', 22, kAfter},
                                       {Action::evict, 'a', 22, kAfter},
                                       {Action::load, 'a', 26, kAfter}}));
  EXPECT_EQ(both.text(), "await:a@1+ evict:a@19- load:a@19-");
  EXPECT_THAT(stays_at_end(both.skipped, both.without), ElementsAre(StayAtEnd{stay_id(0), false}));
}

// The store takes the update of the step before, so it is there without an update, too.
TEST(SkippedUpdate, TheUpdateOfTheStepBeforeIsStored) {
  const UpdatedLayers t;
  BothPeriods both(t, t.written("a", "a", "a",
                                {{Action::store, 'a', 19, kBefore},
                                 {Action::evict, 'a', 19, kBefore},
                                 {Action::load, 'a', 19, kBefore},
                                 {Action::await, 'a', 19, kAfter}}));
  EXPECT_EQ(both.text(), "store:a@19- evict:a@19- load:a@19- await:a@19-");
  both.erase(Action::store, stay_id(0));
  both.without.stays[0].is_stored = false;
  EXPECT_THAT(find_hazards(both.skipped, both.without), IsEmpty());
  EXPECT_FALSE(both.is_safe(0b0010));  // it updates, then it does not
  EXPECT_THAT(both.refusal(), HasSubstr("the update of the step before is lost"));
}

// b is used behind the section: it is loaded ahead of that use, at the first anchor.
TEST(SkippedUpdate, WhatIsUsedBehindTheUpdateIsLoaded) {
  const UpdatedLayers t({.averages = true});
  const BothPeriods both(t, t.written("abAB", "", "AB",
                                      {{Action::load, 'a', 1, kAfter},
                                       {Action::await, 'a', 1, kAfter},
                                       {Action::load, 'b', 5, kAfter},
                                       {Action::await, 'b', 5, kAfter},
                                       {Action::evict, 'b', 13, kAfter},
                                       {Action::evict, 'a', 17, kAfter},
                                       {Action::load, 'A', 19, kAfter},
                                       {Action::await, 'A', 19, kAfter},
                                       {Action::store, 'A', 22, kAfter},
                                       {Action::load, 'B', 23, kAfter},
                                       {Action::await, 'B', 23, kAfter},
                                       {Action::store, 'B', 26, kAfter},
                                       {Action::evict, 'B', 30, kAfter},
                                       {Action::evict, 'A', 31, kBefore}}));
  EXPECT_EQ(both.text(),
            "load:a@1+ await:a@1+ load:b@5+ await:b@5+ evict:b@13+ evict:a@17+ "
            "load:b@19- await:b@19- evict:b@22+");
  EXPECT_TRUE(both.without.stays[2].is_left_out);
  EXPECT_FALSE(both.without.stays[3].is_left_out);
}

// The same in no layer: there is no anchor between the updates and the use, so no such step can
// skip its update under this schedule. The check says so.
TEST(SkippedUpdate, AUseBehindTheUpdateThatNoAnchorPrecedes) {
  const UpdatedLayers t({.averages = true, .in_layer = false});
  const Schedule schedule = t.written("bB", "", "B",
                                      {{Action::load, 'b', 5, kAfter},
                                       {Action::await, 'b', 5, kAfter},
                                       {Action::evict, 'b', 13, kAfter},
                                       {Action::load, 'B', 23, kAfter},
                                       {Action::await, 'B', 23, kAfter},
                                       {Action::store, 'B', 26, kAfter},
                                       {Action::evict, 'B', 29, kBefore}});
  ASSERT_THAT(find_hazards(t.index, schedule), IsEmpty());
  const auto made = skip_update(t.index, schedule);
  ASSERT_TRUE(made.ok());
  const auto hazards =
      check_skipped_update(t.index, schedule, StepIndex(made->step), made->schedule);
  ASSERT_FALSE(hazards.empty());
  EXPECT_THAT(hazards.front().text, HasSubstr("is used at event 19 without being on the device"));
}

// x leaves when its copy is done, 1000..4100: at the end of the update of a, or at the step's end,
// which waits for it.
TEST(SkippedUpdate, ASavedTensorLeavesInTheTail) {
  const UpdatedLayers t({.saves = true});
  auto lowered = lower(t.index, testing::offload_all(t.trace));
  ASSERT_TRUE(lowered.ok());
  ASSERT_EQ(row_texts(t.trace, lowered->schedule), "store:x@8+ evict:x@24+");
  const BothPeriods both(t, lowered->schedule);
  EXPECT_EQ(both.text(), "store:x@8+ evict:x@21-");
  EXPECT_TRUE(both.without.stays[0].is_stored);
  const ReplayResult r = replay(both.skipped, both.without);
  EXPECT_EQ(r.step_ns, 4100);
  EXPECT_EQ(r.stall_ns, 100);
  EXPECT_EQ(r.peak_requested, 3400);
}

// On a step with another structure, made of the same structure without its update.
TEST(SkippedUpdate, OfAStructure) {
  const UpdatedLayers t;
  StepTemplate part;
  part.segment = "a";
  Piece piece;
  piece.first = EventId(1);
  piece.end = EventId(5);
  part.replacements.push_back({piece.first, piece.end, {piece}});
  const Structure structure{{"a"}, {}};
  const auto step = unroll(t.trace, structure, {part});
  ASSERT_TRUE(step.ok());
  const StepIndex index(*step);
  Decisions decisions = testing::keep_all(step->trace());
  decisions.parameters.shard_of = {0, 1};
  decisions.parameters.stream = Stream::always;
  decisions.parameters.prefetch = 0;
  const auto lowered = lower(index, decisions);
  ASSERT_TRUE(lowered.ok());
  const auto made = skip_update(index, lowered->schedule, structure, {part});
  ASSERT_TRUE(made.ok()) << made.error().text();
  const StepIndex skipped(made->step);
  EXPECT_EQ(made->shared, 12U);
  EXPECT_THAT(check_skipped_update(index, lowered->schedule, skipped, made->schedule), IsEmpty());
}

TEST(SkippedUpdate, ThatCannotBe) {
  MicroTrace none;
  none.run(10);
  const Trace trace = none.finish();
  const StepIndex index(trace);
  const auto made = skip_update(index, resident_schedule(index));
  ASSERT_FALSE(made.ok());
  EXPECT_THAT(made.error().message, HasSubstr("no update that a step could skip"));

  const UpdatedLayers t;
  const auto other = leave_out_update(t.index, t.streamed(Stream::always, 0), t.index);
  ASSERT_FALSE(other.ok());
  EXPECT_THAT(other.error().message, HasSubstr("of another step"));

  MicroTrace makes;
  const auto w = makes.existing(8);
  makes.optimizer();
  makes.update(w);
  const auto made_there = makes.alloc(8, StorageClass::parameter);
  makes.update(w);
  const Trace making = makes.finish();
  Schedule schedule;
  schedule.tenants = {{&kParameter, made_there, 0, 8, 0, true, {}}};
  const auto tenant = skip_update(StepIndex(making), schedule);
  ASSERT_FALSE(tenant.ok());
  EXPECT_THAT(tenant.error().message, HasSubstr("parameter 0 (step) is made in the update"));
}

// A wrong tail, and what else does not fit, is refused.
struct WrongTail : BothPeriods {
  explicit WrongTail(const UpdatedLayers& t) : BothPeriods(t, loaded_in_the_section(t)) {}
  static constexpr StayId a{0};
  static constexpr StayId A{1};
  static constexpr StayId b{2};
  static constexpr StayId B{3};
};

TEST(SkippedUpdateCheck, NeedsAllOfTheTail) {
  const UpdatedLayers t;
  const WrongTail good(t);
  for (const auto& [action, stay, text] :
       {std::tuple(Action::load, WrongTail::a, "has no load"),
        std::tuple(Action::load, WrongTail::b, "has no load"),
        std::tuple(Action::await, WrongTail::b, "has no await"),
        std::tuple(Action::evict, WrongTail::A, "has no evict"),
        std::tuple(Action::evict, WrongTail::B, "has no evict")}) {
    WrongTail bad(t);
    bad.erase(action, stay);
    EXPECT_THAT(bad.refusal(), HasSubstr(text));
  }
}

TEST(SkippedUpdateCheck, NeedsTheTailInOrder) {
  const UpdatedLayers t;
  WrongTail bad(t);
  auto& list = bad.without.instructions;
  std::swap(list[static_cast<std::size_t>(bad.row_of(Action::load, WrongTail::b))],
            list[static_cast<std::size_t>(bad.row_of(Action::await, WrongTail::b))]);
  EXPECT_THAT(bad.refusal(), HasSubstr("has its instructions out of order"));
}

TEST(SkippedUpdateCheck, AStayIsLeftOutAsAWhole) {
  const UpdatedLayers t;
  const BothPeriods both(t, t.streamed(Stream::always, 0));
  ASSERT_TRUE(both.without.stays[4].is_left_out);
  BothPeriods bad = both;
  const Anchor end = bad.skipped.anchor_at(EventId(19), kBefore);
  bad.without.instructions.push_back({Action::load, stay_id(4), end});
  EXPECT_THAT(bad.refusal(), HasSubstr("is left out, but has a load"));
  bad.without = both.without;
  bad.without.stays[4].is_stored = true;
  EXPECT_THAT(bad.refusal(), HasSubstr("is left out, but made, stored"));
}

// A parameter c that the updates alone use, on the device from one to the next: it wraps for
// nothing but them. A period without it has no hazard of its own, but another end.
//    0 step_begin   1 update w   2 op_begin   3 op_end   4 update end w
//    5 update c     6 op_begin   7 op_end     8 update end c    9 step_end
TEST(SkippedUpdateCheck, NeedsTheSameEnd) {
  MicroTrace t;
  const auto w = t.existing(100);
  const auto c = t.existing(50);
  t.optimizer();
  t.update(w);
  t.update(c);
  const Trace trace = t.finish();
  const StepIndex index(trace);
  Schedule taken;
  taken.tenants = {{&kParameter, c, 0, 50, 0, true, {}}};
  taken.host_bytes = 512;
  taken.stays.resize(1);
  taken.stays[0].tenant = TenantId(0);
  taken.stays[0].wraps = taken.stays[0].is_stored = true;
  for (const auto& [action, event] : {std::pair(Action::await, 5), std::pair(Action::store, 8),
                                      std::pair(Action::evict, 8), std::pair(Action::load, 8)}) {
    taken.instructions.push_back({action, stay_id(0), index.anchor_at(EventId(event), kAfter)});
  }
  ASSERT_THAT(find_hazards(index, taken), IsEmpty());
  const auto made = skip_update(index, taken);
  ASSERT_TRUE(made.ok());
  const StepIndex skipped(made->step);
  EXPECT_THAT(check_skipped_update(index, taken, skipped, made->schedule), IsEmpty());
  Schedule none = made->schedule;
  none.instructions.clear();
  none.stays[0].wraps = none.stays[0].is_stored = false;
  none.stays[0].is_left_out = true;
  EXPECT_THAT(find_hazards(skipped, none), IsEmpty());
  const auto hazards = check_skipped_update(index, taken, skipped, none);
  ASSERT_EQ(hazards.size(), 1U);
  EXPECT_EQ(hazards.front().text,
            "the two periods end in different states: stay 0 of parameter 0 (step)");
}

// What forward needs would be gone.
TEST(SkippedUpdateCheck, AStayThatWrapsIsNotLeftOut) {
  const UpdatedLayers t;
  WrongTail bad(t);
  for (const Action action : {Action::load, Action::await, Action::evict}) {
    bad.erase(action, WrongTail::a);
  }
  bad.without.stays[0].wraps = false;
  bad.without.stays[0].is_left_out = true;
  EXPECT_THAT(bad.refusal(), HasSubstr("is used at event 2 without being on the device"));
  // Where forward does not need it, the other schedule does.
  WrongTail other(t);
  const auto stays = stays_at_end(other.skipped, other.without);
  EXPECT_NE(stays, stays_at_end(bad.skipped, bad.without));
}

TEST(SkippedUpdateCheck, NeedsTheSameInstructionsAheadOfTheUpdate) {
  const UpdatedLayers t;
  WrongTail bad(t);
  const int row = bad.row_of(Action::evict, WrongTail::a);
  bad.without.instructions[static_cast<std::size_t>(row)].anchor =
      bad.skipped.anchor_at(EventId(5), kAfter);
  EXPECT_THAT(
      bad.refusal(),
      HasSubstr("ahead of the update the periods differ: a evict of stay 0 of parameter 0"));
  bad = WrongTail(t);
  bad.without.instructions[static_cast<std::size_t>(bad.row_of(Action::evict, WrongTail::A))]
      .anchor = bad.skipped.anchor_at(EventId(17), kAfter);
  EXPECT_THAT(bad.refusal(),
              HasSubstr("ahead of the update the periods differ: a evict of stay 1"));
}

TEST(SkippedUpdateCheck, NeedsTheSameTenantsAndStays) {
  const UpdatedLayers t;
  WrongTail bad(t);
  bad.without.tenants[1].host_offset = 1024;
  bad.without.host_bytes = 1536;
  EXPECT_THAT(bad.refusal(), HasSubstr("has other tenants, or other homes"));
  bad = WrongTail(t);
  bad.without.stays[0].load_mode = CopyMode::blocking;
  EXPECT_THAT(bad.refusal(), HasSubstr("stay 0 of parameter 0 (a) is another one"));
}

TEST(SkippedUpdateCheck, NeedsTheSameStep) {
  const UpdatedLayers t;
  const UpdatedLayers other({.averages = true});
  const WrongTail good(t);
  const auto hazards = check_skipped_update(other.index, good.taken, good.skipped, good.without);
  ASSERT_EQ(hazards.size(), 1U);
  EXPECT_THAT(hazards.front().text, HasSubstr("of another step"));
}

}  // namespace
}  // namespace stowage::simulator
