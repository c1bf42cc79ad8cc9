// BackwardUpdates: updates each parameter in backward, as soon as its gradient is there, and drops
// the gradient, so that few of them are there at once. Where a plan does an update elsewhere
// (StepDriver::updates_elsewhere()) it is left out, and the gradient is the plan's to drop. What a
// step computes is the same bit by bit as with all updates behind backward: autograd adds to a
// leaf's gradient once all that it needs the leaf for is done. A saved tensor that is used behind
// the update of what it lies in is noticed by its version.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstddef>
#include <unordered_map>
#include <vector>

#include "executor/gradient_hooks.h"
#include "executor/model.h"
#include "executor/optimizer.h"

namespace stowage::executor {

class BackwardUpdates {
 public:
  // `parameters` as the optimizer has them; it outlives this. From now on a gradient that arrives
  // outside of during() is c10::Error out of backward(): a step in micro-batches, or a
  // backward of somebody else's, would update a parameter by a part of its gradient.
  BackwardUpdates(Optimizer& optimizer, const std::vector<NamedTensor>& parameters);
  BackwardUpdates(const BackwardUpdates&) = delete;
  BackwardUpdates& operator=(const BackwardUpdates&) = delete;

  // Around the step's one backward; c10::Error where a step has another. Behind an exception some
  // parameters are updated and others are not: the next step is none of the same training.
  template <class Backward>
  void during(Backward&& backward) {
    open();
    try {
      backward();
    } catch (...) {
      is_open_ = false;
      throw;
    }
    close();
  }
  void begin_step() { has_run_ = is_open_ = false; }

 private:
  void open();
  // c10::Error for a gradient that nobody told of: a hook of somebody else's is in the place of
  // ours.
  void close();
  void arrived(const at::Tensor& gradient_of);

  struct Parameter {
    NamedTensor named;
    bool is_updated = false;    // in this step
    bool is_elsewhere = false;  // by its plan
  };
  Optimizer& optimizer_;
  std::vector<Parameter> parameters_;
  std::unordered_map<const at::TensorImpl*, std::size_t> row_of_;
  bool is_open_ = false;
  bool has_run_ = false;
  GradientHooks hooks_;
};

}  // namespace stowage::executor
