// A user's own small step: recorded once, then run plainly and under plans, on one device (the CPU,
// or a GPU: test_device.h) whose copies start after random pauses and whose host slots and reload
// buffers are poisoned.
//
//   const at::Tensor p = parameter({4, 4});
//   HandStep step({p}, {}, [&] { return backward((p * 2).exp().sum()); });
//   expect_exact(step, offload_made(step.trace(), styles().front().decision));
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "executor/device/device.h"
#include "executor/planned_step.h"
#include "simulator/lowering/lowering.h"
#include "simulator/plan/decisions.h"
#include "simulator/step/step_index.h"
#include "traces/trace.h"

namespace stowage::testing {

using Bits = std::vector<std::vector<char>>;

// The device of all hand-made steps; one intra-op thread. Tensors come after its first call, which
// parameter() and input() make.
[[nodiscard]] executor::Device& hand_device();
// Another sequence of pauses for the copies from now on.
void change_delays();

// Uniform in [-1, 1), another draw at each call (integers: 0 to 9); a parameter needs a gradient.
[[nodiscard]] at::Tensor parameter(std::vector<std::int64_t> shape,
                                   at::ScalarType dtype = at::kFloat);
[[nodiscard]] at::Tensor input(std::vector<std::int64_t> shape, at::ScalarType dtype = at::kFloat);

// Runs backward; the loss's value.
double backward(const at::Tensor& loss);

struct Outcome {
  double loss = 0;
  Bits gradients;   // by parameter; empty where there is none
  Bytes begin = 0;  // device bytes when the step began, at its peak, and after it
  Bytes peak = 0;
  Bytes end = 0;
  executor::StepReport report;  // planned runs only
  std::string end_error;        // of end_step()
};

class HandStep {
 public:
  // `body` runs forward and backward and returns the loss; gradients are reset ahead of it, inside
  // the step. Inputs of floating point are drawn anew, in place, ahead of each step. Throws
  // std::runtime_error with the error's text when the step cannot be recorded.
  HandStep(std::vector<at::Tensor> parameters, std::vector<at::Tensor> inputs,
           std::function<double()> body);

  [[nodiscard]] const Trace& trace() const { return *trace_; }
  [[nodiscard]] const simulator::StepIndex& index() const { return *index_; }

  // Batch number k without a driver.
  Outcome plain(std::int64_t k);
  // The same under a plan. When the step throws, the plan's step is aborted and the exception
  // passes on.
  Outcome planned(executor::PlannedStep& plan, std::int64_t k);

  // Fail the test (throw) with the error's text.
  [[nodiscard]] simulator::Lowering lower(const simulator::Decisions& decisions) const;
  [[nodiscard]] simulator::Lowering lower(const std::vector<simulator::SavedRule>& rules) const;
  [[nodiscard]] std::unique_ptr<executor::PlannedStep> plan(
      const simulator::Schedule& schedule, executor::OffPlan off_plan = executor::OffPlan::refuse,
      bool poison_host = true) const;
  // In which that runs again; nothing moves.
  [[nodiscard]] std::unique_ptr<executor::PlannedStep> plan_in(
      const simulator::Structure& structure) const;

 private:
  void prepare(std::int64_t k);
  void collect(Outcome& outcome, executor::PlannedStep* plan) const;

  std::vector<at::Tensor> parameters_;
  std::vector<at::Tensor> inputs_;
  std::function<double()> body_;
  std::shared_ptr<const Trace> trace_;
  std::unique_ptr<simulator::StepIndex> index_;
};

// Ways to offload: automatic points, at once and back on demand, late, one copy a view, on the
// compute stream, blocking.
struct Style {
  const char* name;
  simulator::SavedDecision decision;
};
[[nodiscard]] const std::vector<Style>& styles();

// Every saved tensor whose storage the step made takes `decision`; the others stay.
[[nodiscard]] simulator::Decisions offload_made(const Trace& trace,
                                                const simulator::SavedDecision& decision);

// Three steps under the plan, and three more on its placement: loss and gradients
// bitwise those of the plain step, the requested peak that of replay(), moved bytes and host bytes
// the schedule's, nothing left behind. Returns the lowering, for more checks.
simulator::Lowering expect_exact(HandStep& step, const simulator::Decisions& decisions);
simulator::Lowering expect_exact(HandStep& step, const std::vector<simulator::SavedRule>& rules);
// How many steps under its plan each of them runs.
[[nodiscard]] int exact_steps();
// In every style, everything that the step made.
void expect_exact_in_every_style(HandStep& step);

// Loss and gradients bitwise.
void expect_same(const Outcome& outcome, const Outcome& reference);

// The text of the exception that `body` throws; fails the test when there is none.
[[nodiscard]] std::string error_of(const std::function<void()>& body);

}  // namespace stowage::testing
