// OptimizerSpec: which optimizer a run trains with, and its options; a property of the run, in its
// recording and in its plans.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "executor/rate_schedule.h"
#include "traces/result.h"

namespace stowage::executor {

enum class OptimizerKind : std::uint8_t { none, sgd, adam, adamw };

struct OptimizerSpec {
  // Not explicit: a kind alone is the optimizer as PyTorch has it.
  OptimizerSpec(OptimizerKind its_kind = OptimizerKind::none, bool has_master = false,  // NOLINT
                bool is_in_backward = false)
      : kind(its_kind), master(has_master), in_backward(is_in_backward) {}

  OptimizerKind kind;
  // It updates a copy of each parameter in fp32, the master, with state in fp32, and rounds it to
  // the parameter: what mixed precision is as a rule.
  bool master;
  // A parameter is updated in backward, as soon as its gradient is there, and the gradient is
  // dropped (executor/backward_updates.h). What the step computes is the same.
  bool in_backward;
  // zero_grad(set_to_none=False): a gradient stays from step to step, is set to zero, and backward
  // adds to it. Not with in_backward, which drops it.
  bool keeps_gradients = false;
  // 0 = PyTorch's default for adam and adamw, 0.01 for sgd. Of the whole run without a schedule.
  double learning_rate = 0;
  RateSchedule schedule{};
  // The global norm that gradients are clipped to ahead of the update; 0 = as they are. It needs
  // all gradients, so it does not go with in_backward.
  double clip = 0;
  // Absent = PyTorch's default: 0.01 for adamw, 0 for the others.
  std::optional<double> weight_decay{};
  // Of sgd, as PyTorch has them. `nesterov` needs a momentum and no dampening.
  double momentum = 0;
  double dampening = 0;
  bool nesterov = false;
  bool operator==(const OptimizerSpec&) const = default;
};

// "none", "sgd", "adam" or "adamw", as "adamw:master=fp32,update=backward,lr=0.0003" with options;
// anything else is a usage error with the nearest name, and so are options that do not go together.
[[nodiscard]] Result<OptimizerSpec> parse_optimizer(const std::string& text);
// In one form: options in the order above.
[[nodiscard]] std::string to_string(const OptimizerSpec& spec);

}  // namespace stowage::executor
