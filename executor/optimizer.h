// The optimizer of a training step: PyTorch's own, one parameter after the other (no foreach, no
// fused kernels), so that its temporaries are those of one parameter. The step's driver hears of
// each update, so that a parameter need be on the device during its own one only.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "executor/model.h"
#include "traces/result.h"

namespace stowage::executor {

// The last two update a copy of each parameter in fp32, the master, with moments in fp32, and round
// it to the parameter: what mixed precision is as a rule.
enum class OptimizerKind : std::uint8_t { none, sgd, adam, adamw, adam_master, adamw_master };

// "none", "sgd", "adam", "adamw", "adam:master=fp32" or "adamw:master=fp32"; anything else is a
// usage error with the nearest name.
[[nodiscard]] Result<OptimizerKind> parse_optimizer(const std::string& name);
[[nodiscard]] std::string to_string(OptimizerKind kind);

class Optimizer {
 public:
  virtual ~Optimizer() = default;
  // Updates every parameter that has a gradient, in order, between the driver's
  // parameter_update() events. The first call makes the state.
  virtual void step() = 0;
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
// sgd (without momentum).
[[nodiscard]] std::unique_ptr<Optimizer> make_optimizer(OptimizerKind kind, double learning_rate,
                                                        std::vector<NamedTensor> parameters);

}  // namespace stowage::executor
