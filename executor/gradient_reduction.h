// What becomes of a step's gradients besides: the ranks of a data-parallel run reduce them
// (executor/distributed/). The step says where it is.
#pragma once

namespace stowage::executor {

class GradientReduction {
 public:
  virtual ~GradientReduction() = default;
  // Ahead of each step, outside of it.
  virtual void between_steps() = 0;
  virtual void begin_step() = 0;
  // Ahead of the step's last backward, once a step: behind end_backward() each gradient is what
  // all ranks have. What earlier backwards of the step have accumulated is part of it. Throws what
  // its collectives throw; so does that backward.
  virtual void begin_last_backward() = 0;
  // Behind it.
  virtual void end_backward() = 0;
};

// The last backward of a step, declared for the calling thread ahead of its forward: a tail that
// runs in parts (executor/tail.h) has its backwards inside of forward, and the last part's begins
// it. Scopes do not nest.
class LastBackward {
 public:
  // Null declares nothing.
  explicit LastBackward(GradientReduction* reduction);
  ~LastBackward();
  LastBackward(const LastBackward&) = delete;
  LastBackward& operator=(const LastBackward&) = delete;

  // The thread's; null where none is declared.
  [[nodiscard]] static LastBackward* declared();
  // The first call reaches the reduction.
  void begin();

 private:
  GradientReduction* reduction_;
  bool has_begun_ = false;
};

}  // namespace stowage::executor
