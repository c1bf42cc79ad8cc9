// The optimizer of a training step: PyTorch's own, one parameter after the other (no foreach, no
// fused kernels), so that its temporaries are those of one parameter. The step's driver hears of
// each update, so that a parameter need be on the device during its own one only.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "executor/model.h"
#include "traces/result.h"

namespace stowage::executor {

enum class OptimizerKind : std::uint8_t { none, sgd, adam, adamw };

struct OptimizerSpec {
  // Not explicit: a kind alone is the optimizer as PyTorch has it.
  OptimizerSpec(OptimizerKind its_kind = OptimizerKind::none, bool has_master = false,  // NOLINT
                bool is_in_backward = false)
      : kind(its_kind), master(has_master), in_backward(is_in_backward) {}

  OptimizerKind kind;
  // Of adam and adamw: it updates a copy of each parameter in fp32, the master, with moments in
  // fp32, and rounds it to the parameter: what mixed precision is as a rule.
  bool master;
  // A parameter is updated in backward, as soon as its gradient is there, and the gradient is
  // dropped (executor/backward_updates.h). What the step computes is the same.
  bool in_backward;
  bool operator==(const OptimizerSpec&) const = default;
};

// "none", "sgd", "adam" or "adamw", as "adamw:master=fp32,update=backward" with options; anything
// else is a usage error with the nearest name.
[[nodiscard]] Result<OptimizerSpec> parse_optimizer(const std::string& text);
// In one form: options in the order above.
[[nodiscard]] std::string to_string(const OptimizerSpec& spec);

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
  // The same arithmetic on these in their place, by the row in make_optimizer(). The state has to
  // exist (make_state()). May run on another thread than the others, for one parameter at a time
  // and beside nothing else of that parameter's.
  virtual void step_on_host(std::size_t parameter, const HostTensors& tensors) = 0;
  // From now on step() and step_of() update these with step_on_host(): gradient, weights and state
  // are copied to the host, updated there and copied back. What a plan that has the host update
  // them is compared with, bit by bit on any device.
  virtual void update_through_host(const std::vector<at::Tensor>& parameters) = 0;
  // "PARAMETER.exp_avg", "PARAMETER.exp_avg_sq", with masters "PARAMETER.master" ahead of these;
  // empty before the first step and for sgd.
  [[nodiscard]] virtual std::vector<NamedTensor> state() const = 0;
  // Makes the state of these parameters, as far as there is none, as the first step would, but
  // without memory (executor/absent_storage.h): for a plan that gives it a home. If none has by
  // then, the next step() makes it as ever.
  virtual void make_state(const std::vector<NamedTensor>& parameters) = 0;
};

// Whose state that is, null: none of theirs. `name`: "PARAMETER.WHAT".
[[nodiscard]] const NamedTensor* owner_of_state(const std::string& name,
                                                const std::vector<NamedTensor>& parameters);

// Null for OptimizerKind::none. `learning_rate` 0 = PyTorch's default for adam and adamw, 0.01 for
// sgd (without momentum). When it is called is the caller's: OptimizerSpec::in_backward.
[[nodiscard]] std::unique_ptr<Optimizer> make_optimizer(const OptimizerSpec& spec,
                                                        double learning_rate,
                                                        std::vector<NamedTensor> parameters);

}  // namespace stowage::executor
