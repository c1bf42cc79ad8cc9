// ForwardState: what a layer's forward depends on besides its inputs and parameters: generators,
// autocast, and LibTorch's state of the thread. Taken where it runs first, put back where it runs
// again. What is set for the whole process must be as it was.
#pragma once

#include <ATen/CPUGeneratorImpl.h>
#include <ATen/ThreadLocalState.h>
#include <c10/core/Device.h>

#include <cstdint>
#include <optional>

#include "executor/numeric_settings.h"

namespace stowage::executor {

// The default generators of the CPU and of a device. Allocates no tensor.
class RandomState {
 public:
  // As they are now.
  explicit RandomState(c10::Device device);
  void put_back() const;

 private:
  c10::Device device_;
  at::mt19937 engine_;
  std::optional<float> next_float_;
  std::optional<double> next_double_;
  std::uint64_t seed_ = 0;  // of the device's, if it is not the CPU
  std::uint64_t offset_ = 0;
};

class ForwardState {
 public:
  explicit ForwardState(c10::Device device);

  // While it lives, the calling thread computes as the one did that took the state, under grad
  // mode and seen by observers; behind it everything is as before. Both throw c10::Error where
  // NumericSettings are others than then.
  class Restored {
   public:
    explicit Restored(const ForwardState& state);
    ~Restored();
    // The next of several layers, whose forward may have been under another autocast. What was cast
    // for the ones before it is there as long as it was in forward.
    void go_on(const ForwardState& state);
    // Casts of parameters that autocast cached for the run. Where backward itself runs under
    // autocast, the cache is the caller's and stays.
    void drop_casts() const;
    Restored(const Restored&) = delete;
    Restored& operator=(const Restored&) = delete;

   private:
    void set(const ForwardState& state);
    void leave_autocast();
    RandomState random_;  // of backward
    std::optional<at::ThreadLocalStateGuard> thread_;
    struct Autocast {
      bool enabled = false;
      at::ScalarType dtype = at::kFloat;
    };
    static Autocast autocast_of(c10::DeviceType device);
    static void set(c10::DeviceType device, const Autocast& autocast);
    c10::DeviceType type_;
    Autocast cpu_;
    Autocast device_autocast_;
    bool cache_ = true;
    bool is_in_autocast_ = false;  // it has entered one for the run
    bool is_outermost_ = false;    // and no other is entered around that
    friend class ForwardState;
  };

 private:
  c10::Device device_;
  at::ThreadLocalState thread_;
  RandomState random_;
  NumericSettings settings_;
  Restored::Autocast cpu_;
  Restored::Autocast device_autocast_;
  bool cache_ = true;
  bool is_in_autocast_ = false;  // one is entered, enabled or not; where the last is left, its
                                 // cache is cleared
};

}  // namespace stowage::executor
