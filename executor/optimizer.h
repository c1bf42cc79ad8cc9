// The optimizer of a training step: PyTorch's own, one parameter after the other (no foreach, no
// fused kernels), so that its temporaries are those of one parameter. The step's driver hears of
// each update, so that a parameter need be on the device during its own one only.
#pragma once

#include <cstddef>
#include <memory>
#include <string>
#include <vector>

#include "executor/model.h"
#include "executor/optimizer_spec.h"

namespace stowage::executor {

// What a parameter, its gradient and its state are on the host, each in its form; the state by its
// names in Optimizer::state().
struct HostTensors {
  at::Tensor weights;
  at::Tensor gradient;
  std::vector<NamedTensor> state;
};

class Optimizer {
 public:
  virtual ~Optimizer() = default;
  // Updates every parameter that has a gradient, in order, between the driver's
  // parameter_update() events, but for those that the driver says are updated elsewhere. The first
  // call makes the state.
  virtual void step() = 0;
  // Likewise one of them, whose gradient is there, by its row in make_optimizer().
  virtual void step_of(std::size_t parameter) = 0;
  // Of the updates from now on, on the device and on the host; until then the spec's. Not while one
  // runs.
  virtual void set_learning_rate(double rate) = 0;
  // The same arithmetic on these in their place, part by part (executor/host_parts.h), by the row
  // in make_optimizer(). The state has to exist (make_state()). May run on another thread than the
  // others, for one parameter at a time and beside nothing else of that parameter's.
  virtual void step_on_host(std::size_t parameter, const HostTensors& tensors) = 0;
  // From now on step() and step_of() update these with step_on_host(): gradient, weights and state
  // are copied to the host, updated there and copied back. What a plan that has the host update
  // them is compared with, bit by bit on any device.
  virtual void update_through_host(const std::vector<at::Tensor>& parameters) = 0;
  // "PARAMETER.exp_avg", "PARAMETER.exp_avg_sq", of sgd with momentum "PARAMETER.momentum_buffer",
  // with masters "PARAMETER.master" ahead of these; empty before the first step.
  [[nodiscard]] virtual std::vector<NamedTensor> state() const = 0;
  // Of it that of parameters which have been updated: where updates are skipped (an overflow)
  // others may have theirs ahead of that, or none yet, with the same results.
  [[nodiscard]] virtual std::vector<NamedTensor> written_state() const = 0;
  // Makes the state of these parameters, as far as there is none, as the first step would, but
  // without memory (executor/absent_storage.h): for a plan that gives it a home. If none has by
  // then, the next step() makes it as ever.
  virtual void make_state(const std::vector<NamedTensor>& parameters) = 0;
};

// Whose state that is, null: none of theirs. `name`: "PARAMETER.WHAT".
[[nodiscard]] const NamedTensor* owner_of_state(const std::string& name,
                                                const std::vector<NamedTensor>& parameters);

// As the spec has it, or as is usual for its kind; a schedule is the caller's (rate_factor()).
[[nodiscard]] double learning_rate(const OptimizerSpec& spec);

// Null for OptimizerKind::none. When it is called is the caller's: OptimizerSpec::in_backward.
[[nodiscard]] std::unique_ptr<Optimizer> make_optimizer(const OptimizerSpec& spec,
                                                        std::vector<NamedTensor> parameters);

}  // namespace stowage::executor
