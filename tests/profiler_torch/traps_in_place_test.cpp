// In-place writes of saved tensors. Saved-tensor hooks switch PyTorch's own check off, so each of
// these would be silent: `a = p * 2; b = a * a; a.add_(1); b.sum().backward()` gives a wrong
// gradient with hooks that do not look.
#include <ATen/Functions.h>
#include <gtest/gtest.h>

#include <stdexcept>
#include <string>

#include "tests/profiler_torch/hand_step.h"
#include "tests/support/schedule_parts.h"

namespace stowage {
namespace {

using executor::OffPlan;
using testing::backward;
using testing::error_of;
using testing::expect_same;
using testing::HandStep;
using testing::offload_made;
using testing::Outcome;
using testing::parameter;
using testing::styles;

bool names_the_write(const std::string& text) {
  return text.find("modified by an inplace operation") != std::string::npos;
}

// Where the write happens that was not there when the step was recorded.
enum class Write { none, after_save, after_another_save, through_a_view, through_detach };

double square(const at::Tensor& p, Write write) {
  const at::Tensor a = p * 2;
  const at::Tensor b = a * a;
  if (write == Write::after_save) a.add_(1);
  if (write == Write::through_a_view) a.slice(0, 1, 3).zero_();
  if (write == Write::through_detach) a.detach().add_(1);
  const at::Tensor c = b * b;
  if (write == Write::after_another_save) a.add_(1);
  return backward(c.exp().sum());
}

class EachWrite : public ::testing::TestWithParam<Write> {};

// Kept or moved, in flight or long gone: the right gradient or an error, never silence.
TEST_P(EachWrite, GivesTheRightGradientOrAnError) {
  const at::Tensor p = parameter({64, 64});
  Write write = Write::none;
  HandStep step({p}, {}, [&] { return square(p, write); });
  int errors = 0;
  for (const testing::Style& style : styles()) {
    for (const OffPlan off_plan : {OffPlan::refuse, OffPlan::offload_all}) {
      SCOPED_TRACE(style.name);
      const auto lowering = step.lower(offload_made(step.trace(), style.decision));
      const auto plan = step.plan(lowering.schedule, off_plan);
      const Outcome reference = step.plain(0);
      write = GetParam();
      for (int repeat = 0; repeat < 5; ++repeat) {
        testing::change_delays();
        try {
          expect_same(step.planned(*plan, 0), reference);
        } catch (const c10::Error& error) {
          EXPECT_TRUE(names_the_write(error.what())) << error.what();
          ++errors;
        }
      }
      write = Write::none;
      expect_same(step.planned(*plan, 0), reference);  // the next step is clean
    }
  }
  EXPECT_GT(errors, 0);

  // Kept: always the error that PyTorch gives without hooks.
  const auto resident = step.plan(step.lower(offload_made(step.trace(), {})).schedule);
  write = GetParam();
  EXPECT_TRUE(names_the_write(error_of([&] { step.plain(0); })));
  EXPECT_TRUE(names_the_write(error_of([&] { step.planned(*resident, 0); })));
}

INSTANTIATE_TEST_SUITE_P(All, EachWrite,
                         ::testing::Values(Write::after_save, Write::after_another_save,
                                           Write::through_a_view, Write::through_detach));

// The copy is waited for and the version looked at when the storage is given up: a write while the
// copy may be in flight is always an error, whatever the timing.
TEST(WriteInFlight, IsAnErrorAtEveryTiming) {
  const at::Tensor p = parameter({128, 128});
  bool write = false;
  HandStep step({p}, {}, [&] { return square(p, write ? Write::after_save : Write::none); });
  const auto& late = styles()[2];
  const auto plan = step.plan(step.lower(offload_made(step.trace(), late.decision)).schedule);
  write = true;
  for (int repeat = 0; repeat < 20; ++repeat) {
    testing::change_delays();
    EXPECT_TRUE(names_the_write(error_of([&] { step.planned(*plan, 0); })));
  }
}

// Bytes that were given up ahead of the write are the saved ones: the gradient is right, where
// PyTorch itself would refuse.
TEST(WriteAfterRelease, DoesNotReachTheCopy) {
  const at::Tensor p = parameter({64, 64});
  bool write = false;
  HandStep step({p}, {}, [&] { return square(p, write ? Write::after_save : Write::none); });
  const auto& at_once = styles()[1];
  const auto plan = step.plan(step.lower(offload_made(step.trace(), at_once.decision)).schedule);
  const Outcome reference = step.plain(0);
  write = true;
  expect_same(step.planned(*plan, 0), reference);
}

// A step that breaks PyTorch's rule cannot be recorded at all.
TEST(Recording, OfAStepThatWritesWhatItSavedFails) {
  const at::Tensor p = parameter({8});
  EXPECT_TRUE(names_the_write(
      error_of([&] { HandStep step({p}, {}, [&] { return square(p, Write::after_save); }); })));
  // Nothing stays behind: the next recording and its plans are exact.
  p.mutable_grad().reset();
  HandStep step({p}, {}, [&] { return square(p, Write::none); });
  testing::expect_exact_in_every_style(step);
}

// Legal in-place ops: written before the save, and results of in-place ops that are saved.
TEST(LegalInPlace, IsExact) {
  const at::Tensor p = parameter({32, 32});
  HandStep step({p}, {}, [&] {
    at::Tensor a = p * 2;
    a.add_(1);
    a.exp_();  // saves its own result
    at::Tensor b = a + 1;
    b.relu_();  // likewise
    return backward((b * 3).sum());
  });
  testing::expect_exact_in_every_style(step);
}

// The storage is saved at two versions; only the part that stays whole is ever needed.
TEST(LegalInPlace, TwoVersionsOfOneStorageStay) {
  const at::Tensor p = parameter({32, 32});
  HandStep step({p}, {}, [&] {
    const at::Tensor a = p * 2;
    const at::Tensor unused = a * a;  // saved, never unpacked
    a.add_(1);
    return backward((a * a).sum());
  });
  const auto lowering =
      testing::expect_exact(step, offload_made(step.trace(), styles().front().decision));
  EXPECT_TRUE(testing::offloads_of(lowering.schedule).empty());
  ASSERT_FALSE(lowering.notes.empty());
  EXPECT_NE(lowering.notes.front().text.find("changed in place"), std::string::npos);
}

// One write more than recorded, ahead of the save: another graph, refused at the pack.
TEST(VersionAtPack, MustBeTheRecordedOne) {
  const at::Tensor p = parameter({32, 32});
  bool write = false;
  HandStep step({p}, {}, [&] {
    const at::Tensor a = p * 2;
    const at::Tensor b = a * 3.0 + (a * a).detach();
    at::Tensor c = b * b;
    if (write) b.detach().add_(1);
    return backward((c + b * b).sum());
  });
  const auto plan =
      step.plan(step.lower(offload_made(step.trace(), styles().front().decision)).schedule);
  write = true;
  EXPECT_THROW(step.planned(*plan, 0), c10::Error);
}

}  // namespace
}  // namespace stowage
