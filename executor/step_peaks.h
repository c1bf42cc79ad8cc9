// StepPeaks: the most memory that a device had within one step, whatever other steps begin
// meanwhile. A device has one set of peaks, which a step that begins sets to what is there then;
// what they were is kept for the steps that go on. Thread-safe among each other.
#pragma once

#include "executor/device/device.h"

namespace stowage::executor {

class StepPeaks {
 public:
  // The device outlives it.
  explicit StepPeaks(Device& device) : device_(device) {}
  ~StepPeaks() { end(); }
  StepPeaks(const StepPeaks&) = delete;
  StepPeaks& operator=(const StepPeaks&) = delete;

  // Peaks are those from now on. Again: what was before counts no longer.
  void begin();
  // Between begin() and end(): what the device says, its peaks those of the step.
  [[nodiscard]] MemoryStats memory() const;
  // Nothing where it has ended.
  void end();

 private:
  Device& device_;
  MemoryStats kept_;  // its peaks alone; under the lock of all
};

}  // namespace stowage::executor
