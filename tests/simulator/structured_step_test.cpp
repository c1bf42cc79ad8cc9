#include "simulator/step/structured_step.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include "simulator/step/unroll.h"
#include "tests/support/micro_trace.h"
#include "traces/columns.h"
#include "traces/validate.h"

namespace stowage::simulator {
namespace {

using stowage::testing::MicroTrace;
using ::testing::HasSubstr;

// A made-up template of a random recording: some of its events, in runs, are those of an equal
// pass, and between them stands what the executor adds. With each pack come its unpacks and with
// each begin of an op its end, so that the pass's rows are complete.
class RandomTemplate {
 public:
  RandomTemplate(const std::shared_ptr<const Trace>& trace, std::uint64_t seed)
      : trace_(*trace), pass_(trace), random_(seed), in_(trace->events.size(), false) {}

  StepTemplate run(std::int32_t parts) {
    choose();
    while (close()) {
    }
    StepTemplate made;
    made.segment = kWholeStep;
    made.parts = parts;
    made.sources.push_back({"parts", pass_, shared_storages()});
    made.sources.push_back({kStowage, added(), {}});
    const std::size_t events = in_.size();
    for (std::size_t first = 0; first < events; ++first) {
      if (!in_[first]) continue;
      std::size_t end = first;
      while (in_[end]) ++end;
      made.replacements.push_back(replacement(EventId(first), EventId(end)));
      first = end;
    }
    return made;
  }

 private:
  std::size_t below(std::size_t count) { return random_() % count; }

  void choose() {
    const std::size_t events = in_.size();
    for (std::size_t runs = 1 + below(2); runs > 0; --runs) {
      const std::size_t first = 1 + below(events - 2);
      const std::size_t end = std::min(first + 1 + below(12), events - 1);
      std::fill(in_.begin() + static_cast<std::ptrdiff_t>(first),
                in_.begin() + static_cast<std::ptrdiff_t>(end), true);
    }
    // Nothing depends on these: they can go without anything in their place.
    for (std::size_t e = 1; e + 1 < events; ++e) {
      if (is_boundary(e) && below(6) == 0) in_[e] = true;
    }
  }

  [[nodiscard]] bool is_boundary(std::size_t event) const {
    const EventKind kind = trace_.events.kind[event];
    return kind == EventKind::layer_forward_begin || kind == EventKind::layer_forward_end ||
           kind == EventKind::layer_backward_begin;
  }

  bool close() {
    const std::vector<bool> before = in_;
    std::vector<std::size_t> begin(trace_.ops.size(), 0);
    for (std::size_t u = 0; u < trace_.unpacks.size(); ++u) {
      tie(trace_.unpacks.event[u].index(),
          trace_.saved.event[trace_.unpacks.saved[u].index()].index());
    }
    for (std::size_t e = 0; e < in_.size(); ++e) {
      const auto ref = static_cast<std::size_t>(std::max(trace_.events.ref[e], 0));
      if (trace_.events.kind[e] == EventKind::op_begin) begin[ref] = e;
      if (trace_.events.kind[e] == EventKind::op_end) tie(e, begin[ref]);
    }
    return in_ != before;
  }

  void tie(std::size_t a, std::size_t b) { in_[a] = in_[b] = in_[a] || in_[b]; }

  // All but some of those that nothing else touches: they are rows of their own.
  std::vector<std::pair<StorageId, StorageId>> shared_storages() {
    std::vector<bool> own(trace_.storages.size(), true);
    const PassRows rows(trace_);
    for (std::size_t t = 0; t < trace_.tensors.size(); ++t) {
      const StorageId of = trace_.tensors.storage[t];
      for (const EventId need : rows.needs_of(TensorId(t))) {
        if (!in_[need.index()] && of.valid()) own[of.index()] = false;
      }
    }
    for (std::size_t e = 0; e < in_.size(); ++e) {
      const EventKind kind = trace_.events.kind[e];
      if ((kind == EventKind::alloc || kind == EventKind::free) && !in_[e]) {
        own[static_cast<std::size_t>(trace_.events.ref[e])] = false;
      }
    }
    std::vector<std::pair<StorageId, StorageId>> shared;
    for (std::size_t s = 0; s < own.size(); ++s) {
      if (own[s] && trace_.storages.alloc_event[s].valid() && below(4) != 0) continue;
      shared.emplace_back(StorageId(s), StorageId(s));
    }
    return shared;
  }

  static std::shared_ptr<const Trace> added() {
    MicroTrace t;
    t.begin_layer("added");
    t.begin_op("stowage::slice");
    const auto slice = t.alloc(64);
    t.kernel(5);
    t.write(slice);
    const auto saved = t.pack(slice);
    t.run(3).end_op();
    t.sync(1);
    t.unpack(saved);
    t.free(slice);
    t.end_layer("added");
    return std::make_shared<const Trace>(t.finish());
  }

  Replacement replacement(EventId first, EventId end) {
    Replacement made{first, end, {}};
    if (is_boundary(first.index()) && first.index() + 1 == end.index() && below(2) == 0) {
      return made;
    }
    for (EventId at = first; at < end;) {
      if (below(3) == 0) made.pieces.push_back(addition());
      Piece piece;
      piece.source = 0;
      piece.first = at;
      piece.end = std::min(EventId(at.index() + 1 + below(8)), end);
      if (below(4) == 0) piece.pass = Pass::recompute;
      if (below(4) == 0) piece.micro_batch = 1;
      made.pieces.push_back(piece);
      at = piece.end;
    }
    if (below(3) == 0) made.pieces.push_back(addition());
    return made;
  }

  Piece addition() {
    Piece piece;
    piece.source = 1;
    piece.first = EventId(std::size_t{1});
    piece.end = EventId(std::size_t{9});  // up to its step_end
    piece.instance = instances_++;
    return piece;
  }

  const Trace& trace_;
  std::shared_ptr<const Trace> pass_;
  std::mt19937_64 random_;
  std::vector<bool> in_;
  std::int32_t instances_ = 0;
};

void expect_equal_tables(const Trace& a, const Trace& b) {
  EXPECT_EQ(a.strings, b.strings);
  EXPECT_EQ(a.lists, b.lists);
  std::vector<std::string> different;
  visit_tables(a, [&](const char* table, const auto& rows_a) {
    visit_tables(b, [&](const char* other, const auto& rows_b) {
      if constexpr (std::is_same_v<decltype(rows_a), decltype(rows_b)>) {
        if (std::string(table) != other) return;
        visit_columns(rows_a, [&](const char* key, const auto& column_a, Rule) {
          visit_columns(rows_b, [&](const char* key_b, const auto& column_b, Rule) {
            if constexpr (std::is_same_v<decltype(column_a), decltype(column_b)>) {
              if (std::string(key) != key_b || column_a == column_b) return;
              different.push_back(std::string(table) + "/" + key);
            }
          });
        });
      }
    });
  });
  EXPECT_THAT(different, ::testing::IsEmpty());
}

void expect_equal_steps(const StructuredStep& flipped, const Step& fresh) {
  const Step& step = flipped.step();
  expect_equal_tables(step.trace(), fresh.trace());
  EXPECT_EQ(flipped.fingerprint(), fresh.trace().fingerprint);
  const StepIndex& index = flipped.index();
  const StepIndex of_fresh(fresh);
  EXPECT_EQ(&index.trace(), &step.trace());
  EXPECT_EQ(index.anchors(), of_fresh.anchors());
  EXPECT_EQ(index.resident_bytes(), of_fresh.resident_bytes());
  EXPECT_EQ(index.resident_time(), of_fresh.resident_time());
  EXPECT_EQ(index.hooked_launch_ns(), of_fresh.hooked_launch_ns());
  ASSERT_EQ(step.trace().events.size(), fresh.trace().events.size());
  ASSERT_EQ(step.source_count(), fresh.source_count());
  for (std::size_t e = 0; e < step.trace().events.size(); ++e) {
    ASSERT_EQ(step.origin(EventId(e)), fresh.origin(EventId(e)));
    ASSERT_EQ(step.pass(EventId(e)), fresh.pass(EventId(e)));
    ASSERT_EQ(step.micro_batch(EventId(e)), fresh.micro_batch(EventId(e)));
  }
  for (std::size_t s = 0; s < step.trace().storages.size(); ++s) {
    ASSERT_EQ(step.origin(StorageId(s)), fresh.origin(StorageId(s)));
  }
}

TEST(StructuredStep, FlippedIsAsUnrolled) {
  int compared = 0;
  int refused = 0;
  for (std::uint64_t seed = 0; seed < 60; ++seed) {
    stowage::testing::RandomTraceOptions options;
    options.device_times = seed % 2 == 1;
    options.setup = seed % 4 == 3;
    options.parameters = seed % 3 == 1;
    options.several_weights = seed % 5 == 1;
    const auto trace = std::make_shared<const Trace>(stowage::testing::random_trace(seed, options));
    std::vector<StepTemplate> templates;
    for (std::int32_t t = 0; t < 6; ++t) {
      templates.push_back(
          RandomTemplate(trace, seed * 100 + static_cast<std::uint64_t>(t)).run(2 + t));
    }
    const auto flipped = StructuredStep::make(*trace, templates);
    ASSERT_TRUE(flipped.ok()) << flipped.error().text();
    std::mt19937_64 random(seed);
    for (int flip = 0; flip < 25; ++flip) {
      const std::size_t row = random() % templates.size();
      const bool on = !(*flipped)->is_on(row);
      SCOPED_TRACE("seed " + std::to_string(seed) + " flip " + std::to_string(flip) + " of " +
                   std::to_string(row) + (on ? " on" : " off"));
      const Status done = (*flipped)->set(row, on);
      if (!done) {
        EXPECT_THAT(done.error().text(), HasSubstr("replace the same events"));
        EXPECT_NE((*flipped)->is_on(row), on);
        ++refused;
      }
      Structure structure;
      for (std::size_t t = 0; t < templates.size(); ++t) {
        if ((*flipped)->is_on(t)) structure.parts.push_back({kWholeStep, templates[t].parts});
      }
      if (structure.empty()) continue;  // the recording itself, with its own order of rows
      const auto fresh = unroll(*trace, structure, templates);
      ASSERT_TRUE(fresh.ok()) << fresh.error().text();
      expect_equal_steps(**flipped, *fresh);
      if (::testing::Test::HasFailure()) return;
      ++compared;
    }
  }
  EXPECT_GT(compared, 500);
  EXPECT_GT(refused, 50);
}

// A layer that makes what the next one frees, and a template that makes another in its place.
struct Handed {
  Trace trace;
  StepTemplate of;
};

Handed handed_on() {
  MicroTrace t;
  Handed made;
  Piece piece;
  piece.first = EventId(t.last_event().index() + 1);
  t.begin_layer("a");
  const auto storage = t.run(5).alloc(100);
  t.end_layer("a");
  piece.end = EventId(t.last_event().index() + 1);
  t.begin_layer("b");
  t.free(storage);
  t.end_layer("b");
  made.trace = t.finish();
  made.of.segment = "a";
  piece.source = 0;
  made.of.replacements.push_back({piece.first, piece.end, {piece}});
  made.of.sources.push_back({"recompute_all", std::make_shared<const Trace>(made.trace), {}});
  return made;
}

TEST(StructuredStep, IsAsBeforeWhenATemplateMakesNoStep) {
  const Handed handed = handed_on();
  StepTemplate good = handed.of;
  good.sources[0].storages.emplace_back(StorageId(0), StorageId(0));
  const auto step = StructuredStep::make(handed.trace, {handed.of, good});
  ASSERT_TRUE(step.ok()) << step.error().text();
  const std::vector<EventKind> kinds = (*step)->step().trace().events.kind;
  const Status done = (*step)->set(0, true);
  ASSERT_FALSE(done.ok());
  EXPECT_THAT(done.error().text(), HasSubstr("storage 0 of pass 'step', which its event 5 needs"));
  EXPECT_FALSE((*step)->is_on(0));
  EXPECT_EQ((*step)->step().trace().events.kind, kinds);
  EXPECT_TRUE(validate((*step)->step().trace(), "").ok());
  ASSERT_TRUE((*step)->set(1, true).ok());
  EXPECT_EQ((*step)->step().origin(EventId(std::size_t{2})).source, 1);
  const Status again = (*step)->set(0, true);
  ASSERT_FALSE(again.ok());
  EXPECT_EQ(again.error().text(), "the templates of segments 'a' and 'a' replace the same events");
  EXPECT_TRUE((*step)->is_on(1));
}

TEST(StructuredStep, RefusesPiecesOfTheRecordedStepItself) {
  Handed handed = handed_on();
  handed.of.replacements[0].pieces[0].source = Piece::kRecording;
  const auto step = StructuredStep::make(handed.trace, {handed.of});
  ASSERT_FALSE(step.ok());
  EXPECT_THAT(step.error().text(), HasSubstr("has pieces of the recorded step itself"));
  handed.of.replacements[0].end = EventId(std::size_t{99});
  EXPECT_FALSE(StructuredStep::make(handed.trace, {handed.of}).ok());
}

// The layer's begin goes and comes back; the kernel and the sync behind it stand behind another
// event meanwhile.
TEST(StructuredStep, GapBehindNothing) {
  MicroTrace t;
  t.begin_layer("a");
  t.kernel(50);
  t.sync(7);
  t.begin_op();
  t.run(3).end_op();
  t.end_layer("a");
  const Trace trace = t.finish();
  StepTemplate of;
  of.segment = "a";
  of.replacements.push_back({EventId(std::size_t{1}), EventId(std::size_t{2}), {}});
  const auto step = StructuredStep::make(trace, {of});
  ASSERT_TRUE(step.ok());
  for (const std::int32_t event : {0, 1, 0}) {
    ASSERT_TRUE((*step)->set(0, event == 0).ok());
    EXPECT_EQ((*step)->step().trace().gpu.event.front(), EventId(event));
    EXPECT_EQ((*step)->step().trace().syncs.event.front(), EventId(event));
  }
}

}  // namespace
}  // namespace stowage::simulator
