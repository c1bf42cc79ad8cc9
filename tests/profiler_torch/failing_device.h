// A device that fails when it is told to, as a GPU does after a fault, and says whether it is in a
// step.
#pragma once

#include <c10/util/Exception.h>

#include "tests/profiler_torch/forwarding_device.h"

namespace stowage::testing {

class FailingDevice final : public ForwardingDevice {
 public:
  using ForwardingDevice::ForwardingDevice;

  void set_fails(bool fails) { fails_ = fails; }
  [[nodiscard]] bool in_step() const { return in_step_; }

  void begin_step() override {
    in_step_ = true;
    ForwardingDevice::begin_step();
  }
  void end_step() override {
    in_step_ = false;
    ForwardingDevice::end_step();
  }
  void synchronize() override {
    TORCH_CHECK(!fails_, "the device fails");
    ForwardingDevice::synchronize();
  }

 private:
  bool fails_ = false;
  bool in_step_ = false;
};

}  // namespace stowage::testing
