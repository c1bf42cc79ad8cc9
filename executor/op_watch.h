// OpWatch: lets the current StepDriver hear of primitive ops (StepDriver::primitive_op_begin()).
#pragma once

namespace stowage::executor {

// While one of them lives, every thread's current driver is told. What nobody watches costs
// nothing. Not to be made or ended within an op.
class OpWatch {
 public:
  OpWatch();
  ~OpWatch();
  OpWatch(const OpWatch&) = delete;
  OpWatch& operator=(const OpWatch&) = delete;
};

}  // namespace stowage::executor
