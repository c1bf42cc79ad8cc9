// What a plan moves, and what it must leave: views of parameters, storages saved several times,
// small views of big storages, sites that disagree, partial plans.
#include <ATen/Functions.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <set>
#include <string>
#include <vector>

#include "simulator/replay/replay.h"
#include "tests/profiler_torch/hand_step.h"
#include "tests/profiler_torch/test_device.h"
#include "tests/support/schedule_parts.h"

namespace stowage {
namespace {

using executor::CopyLane;
using simulator::Decision;
using simulator::Decisions;
using simulator::Lowering;
using simulator::SavedRule;
using testing::backward;
using testing::expect_exact;
using testing::hand_device;
using testing::HandStep;
using testing::input;
using testing::offload_made;
using testing::parameter;
using testing::styles;

SavedRule offload_rule() {
  SavedRule rule;
  rule.decision = Decision::offload;
  return rule;
}

// Rows of Trace::saved whose storage is of this class.
std::vector<SavedId> saved_of_class(const Trace& trace, StorageClass storage_class) {
  std::vector<SavedId> rows;
  for (std::size_t s = 0; s < trace.saved.size(); ++s) {
    const StorageId storage = trace.saved.storage[s];
    if (storage.valid() && trace.storages.storage_class[storage.index()] == storage_class) {
      rows.push_back(SavedId(s));
    }
  }
  return rows;
}

HandStep two_linears(const at::Tensor& w1, const at::Tensor& w2, const at::Tensor& bias,
                     const at::Tensor& x) {
  return HandStep({w1, w2, bias}, {x}, [=] {
    const at::Tensor hidden = at::linear(x * 2, w1, bias).tanh();
    return backward(at::linear(hidden, w2).pow(2).sum());
  });
}

TEST(ViewWeights, StayUnlessARuleNamesTheirClass) {
  const at::Tensor w1 = parameter({24, 16});
  const at::Tensor w2 = parameter({8, 24});
  HandStep step = two_linears(w1, w2, parameter({24}), input({32, 16}));
  const Trace& trace = step.trace();
  // The last linear needs the gradient of its input, so it saves w2.t(): a view, no leaf.
  const auto weights = saved_of_class(trace, StorageClass::parameter);
  ASSERT_EQ(weights.size(), 1U);
  const TensorId view = trace.saved.tensor[weights.front().index()];
  EXPECT_EQ(trace.list(trace.tensors.shape[view.index()]), (std::vector<std::int64_t>{24, 8}));

  const Lowering lowering = expect_exact(step, std::vector{offload_rule()});
  EXPECT_FALSE(lowering.schedule.tenant_of[weights.front().index()].valid());
  Bytes activations = 0;
  std::set<StorageId> counted;
  for (const SavedId saved : saved_of_class(trace, StorageClass::activation)) {
    const StorageId storage = trace.saved.storage[saved.index()];
    if (counted.insert(storage).second) activations += trace.storages.bytes[storage.index()];
  }
  const auto predicted = simulator::replay(step.index(), lowering.schedule);
  EXPECT_EQ(predicted.d2h_bytes, activations);
  // What the lane really copied.
  const Bytes before = testing::copied(hand_device(), CopyLane::d2h).bytes;
  expect_exact(step, std::vector{offload_rule()});
  EXPECT_EQ(testing::copied(hand_device(), CopyLane::d2h).bytes - before,
            testing::exact_steps() * activations);
}

TEST(ViewWeights, LeaveWhenARuleNamesTheirClass) {
  const at::Tensor w2 = parameter({8, 24});
  HandStep step = two_linears(parameter({24, 16}), w2, parameter({24}), input({32, 16}));
  SavedRule weights = offload_rule();
  weights.storage_class = StorageClass::parameter;
  const Lowering lowering = expect_exact(step, std::vector{weights});
  ASSERT_EQ(testing::offloads_of(lowering.schedule).size(), 1U);
  EXPECT_EQ(testing::offloads_of(lowering.schedule).front().bytes, static_cast<Bytes>(w2.nbytes()));
  // The original never goes away, and the plan says so.
  ASSERT_EQ(lowering.notes.size(), 1U);
  EXPECT_NE(lowering.notes.front().text.find("existed before the step"), std::string::npos);
}

TEST(SharedStorage, LeavesOnceAndComesBackInEveryShape) {
  const at::Tensor p = parameter({12, 12});
  const at::Tensor q = parameter({12, 12});
  HandStep step({p, q}, {}, [&] {
    const at::Tensor made = p * 3;
    at::Tensor sum = at::mm(made, q).sum();
    sum = sum + at::mm(q, made.t()).sum();
    sum = sum + (made.slice(0, 5, 9) * q.slice(0, 1, 5)).sum();
    sum = sum + (made.select(1, 7) * q.select(0, 2)).sum();
    return backward(sum + (made.slice(1, 2, 12, 3) * q.slice(1, 1, 11, 3)).sum());
  });
  const Trace& trace = step.trace();
  std::size_t views = 0;
  for (const StorageId storage : trace.saved.storage) {
    views += storage.valid() && trace.storages.alloc_event[storage.index()].valid() ? 1 : 0;
  }
  ASSERT_EQ(views, 5U);
  testing::expect_exact_in_every_style(step);

  const auto before = testing::copied(hand_device(), CopyLane::d2h);
  const Lowering lowering = expect_exact(step, offload_made(trace, styles().front().decision));
  ASSERT_EQ(testing::offloads_of(lowering.schedule).size(), 1U);
  EXPECT_EQ(testing::offloads_of(lowering.schedule).front().saved.size(), 5U);
  EXPECT_EQ(testing::offloads_of(lowering.schedule).front().bytes, 12 * 12 * 4);
  EXPECT_EQ(testing::reloads_of(lowering.schedule).size(), 1U);
  const auto after = testing::copied(hand_device(), CopyLane::d2h);
  EXPECT_EQ(after.copies - before.copies, static_cast<std::uint64_t>(testing::exact_steps()));

  // share=false: one copy a saved view, one reload an unpack.
  const Lowering apart = step.lower(offload_made(trace, styles()[3].decision));
  EXPECT_EQ(testing::offloads_of(apart.schedule).size(), 5U);
  EXPECT_EQ(testing::reloads_of(apart.schedule).size(), 5U);
}

// Storages that die get their address reused by the next one; they are still different storages.
TEST(SharedStorage, KeyDiesWithTheStorage) {
  const at::Tensor p = parameter({64, 64});
  std::vector<const void*> addresses;
  HandStep step({p}, {}, [&] {
    double loss = 0;
    addresses.clear();
    for (int i = 1; i <= 16; ++i) {
      const at::Tensor made = (p * (0.1 * i)).exp();
      addresses.push_back(made.const_data_ptr());
      loss += backward(made.sum());
    }
    return loss;
  });
#ifndef __SANITIZE_ADDRESS__  // which keeps freed addresses away for a long time
  EXPECT_LT(std::set<const void*>(addresses.begin(), addresses.end()).size(), addresses.size())
      << "no address was reused, so the test shows nothing";
#endif
  std::set<std::int32_t> indices;
  for (const std::int32_t index : step.trace().saved.storage_index) indices.insert(index);
  EXPECT_EQ(indices.size(), step.trace().saved.size());
  testing::expect_exact_in_every_style(step);
}

TEST(SmallView, OfABigBaseMovesOnlyTheBytesItCovers) {
  const at::Tensor p = parameter({4096});
  const at::Tensor q = parameter({16});
  HandStep step({p, q}, {}, [&] {
    const at::Tensor loss = ((p * 2).slice(0, 1000, 1016) * q).sum();  // nobody holds the base
    return backward(loss);
  });
  testing::expect_exact_in_every_style(step);
  const Lowering lowering = expect_exact(step, offload_made(step.trace(), styles()[1].decision));
  ASSERT_EQ(testing::offloads_of(lowering.schedule).size(), 1U);
  // Bytes [4000, 4064), rounded down to 256: [3840, 4064).
  EXPECT_EQ(testing::offloads_of(lowering.schedule).front().begin, 3840);
  EXPECT_EQ(testing::offloads_of(lowering.schedule).front().bytes, 224);
  EXPECT_TRUE(lowering.notes.empty());
}

TEST(SmallView, TwoOfThemMoveTheSpanBetweenThem) {
  const at::Tensor p = parameter({4096});
  const at::Tensor q = parameter({16});
  HandStep step({p, q}, {}, [&] {
    const at::Tensor base = p * 2;
    const at::Tensor sum = (base.slice(0, 1024, 1040) * q).sum();
    return backward(sum + (base.slice(0, 2048, 2064) * q).sum());
  });
  const Lowering lowering =
      expect_exact(step, offload_made(step.trace(), styles().front().decision));
  ASSERT_EQ(testing::offloads_of(lowering.schedule).size(), 1U);
  EXPECT_EQ(testing::offloads_of(lowering.schedule).front().begin, 4096);
  EXPECT_EQ(testing::offloads_of(lowering.schedule).front().bytes, (2064 - 1024) * 4);
  testing::expect_exact_in_every_style(step);
}

TEST(BytesThatFreeNothing, AreReported) {
  const at::Tensor p = parameter({64});
  const at::Tensor q = parameter({64});
  at::Tensor outlives;
  HandStep step({p, q}, {}, [&] {
    const at::Tensor held = p * 2;  // the model's own reference lives through backward
    outlives = p * 3;
    outlives.detach_();
    const at::Tensor loss = (held * q).sum() + (outlives * q).sum();
    return backward(loss);
  });
  const Lowering lowering =
      expect_exact(step, offload_made(step.trace(), styles().front().decision));
  EXPECT_EQ(testing::offloads_of(lowering.schedule).size(), 2U);
  std::set<std::string> texts;
  for (const auto& note : lowering.notes) texts.insert(note.text);
  EXPECT_EQ(texts, (std::set<std::string>{
                       "frees nothing: its storage outlives the step",
                       "frees nothing: the model itself holds its storage until it is unpacked"}));
}

TEST(DisagreeingSites, KeepTheStorageWithANote) {
  const at::Tensor p = parameter({32});
  const at::Tensor q = parameter({32});
  HandStep step({p, q}, {}, [&] {
    const at::Tensor made = p * 2;
    return backward((made * q).sum() + (made * q).pow(2).sum() + made.exp().sum());
  });
  const Trace& trace = step.trace();
  const Decisions all = offload_made(trace, styles().front().decision);
  const Lowering whole = expect_exact(step, all);
  const auto offloads = testing::offloads_of(whole.schedule);
  const auto twice =
      std::find_if(offloads.begin(), offloads.end(),
                   [](const simulator::Tenant& offload) { return offload.saved.size() == 2; });
  ASSERT_NE(twice, offloads.end());
  const std::vector<SavedId> sites = twice->saved;

  Decisions one_kept = all;
  one_kept.saved[sites[1].index()] = {};
  Decisions other_mode = all;
  other_mode.saved[sites[1].index()].copy_in = simulator::CopyMode::blocking;
  Decisions not_shared = all;
  not_shared.saved[sites[0].index()].share = false;
  for (const Decisions& decisions : {one_kept, other_mode, not_shared}) {
    const Lowering lowering = expect_exact(step, decisions);
    EXPECT_EQ(testing::offloads_of(lowering.schedule).size(),
              testing::offloads_of(whole.schedule).size() - 1);
    for (const SavedId saved : sites) {
      EXPECT_FALSE(lowering.schedule.tenant_of[saved.index()].valid());
    }
    EXPECT_TRUE(std::any_of(lowering.notes.begin(), lowering.notes.end(), [&](const auto& note) {
      return note.saved == sites[0] && note.text.starts_with("stays: its storage is");
    }));
  }
}

TEST(PartialPlans, PeakIsThePredictedOne) {
  std::vector<at::Tensor> weights;
  for (int i = 0; i < 8; ++i) weights.push_back(parameter({32, 32}));
  const at::Tensor x = input({256, 32});
  HandStep step(weights, {x}, [&] {
    at::Tensor hidden = x * 2;
    for (const at::Tensor& weight : weights) hidden = at::linear(hidden, weight).tanh();
    hidden = hidden.pow(2).sum();
    return backward(hidden);
  });
  const Trace& trace = step.trace();
  for (const testing::Style& style : styles()) {
    SCOPED_TRACE(style.name);
    const Decisions all = offload_made(trace, style.decision);
    std::vector<Bytes> peaks;
    for (const std::size_t quarters : {0U, 1U, 2U, 4U}) {
      SCOPED_TRACE(std::to_string(quarters) + " quarters");
      Decisions decisions = all;
      for (std::size_t s = trace.saved.size() * quarters / 4; s < trace.saved.size(); ++s) {
        decisions.saved[s] = {};
      }
      const Lowering lowering = expect_exact(step, decisions);
      EXPECT_EQ(testing::offloads_of(lowering.schedule).empty(), quarters == 0);
      peaks.push_back(simulator::replay(step.index(), lowering.schedule).peak_requested);
    }
    if (std::string(style.name) == "at once, on demand") {
      EXPECT_TRUE(std::is_sorted(peaks.rbegin(), peaks.rend()));
      // Beside what is there all the time (on a GPU cuBLAS's workspaces, 32 MiB of them).
      const Bytes begin = step.index().bytes_at_begin();
      EXPECT_LT(peaks.back() - begin, (peaks.front() - begin) * 2 / 3);
    }
  }
}

}  // namespace
}  // namespace stowage
