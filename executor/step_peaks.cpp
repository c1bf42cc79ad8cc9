#include "executor/step_peaks.h"

#include <algorithm>
#include <mutex>
#include <vector>

namespace stowage::executor {
namespace {

std::mutex open_mutex;
std::vector<StepPeaks*> open_steps;  // of all devices

}  // namespace

void StepPeaks::keep(const MemoryStats& stats) {
  kept_.peak_requested = std::max(kept_.peak_requested, stats.peak_requested);
  kept_.peak_active = std::max(kept_.peak_active, stats.peak_active);
  kept_.peak_reserved = std::max(kept_.peak_reserved, stats.peak_reserved);
}

void StepPeaks::begin() {
  const std::lock_guard lock(open_mutex);
  std::erase(open_steps, this);
  for (StepPeaks* each : open_steps) {
    if (&each->device_ == &device_) each->keep(device_.memory());
  }
  device_.reset_peak();
  kept_ = {};
  open_steps.push_back(this);
}

MemoryStats StepPeaks::memory() const {
  MemoryStats stats = device_.memory();
  const std::lock_guard lock(open_mutex);
  stats.peak_requested = std::max(stats.peak_requested, kept_.peak_requested);
  stats.peak_active = std::max(stats.peak_active, kept_.peak_active);
  stats.peak_reserved = std::max(stats.peak_reserved, kept_.peak_reserved);
  return stats;
}

void StepPeaks::end() {
  const std::lock_guard lock(open_mutex);
  std::erase(open_steps, this);
}

}  // namespace stowage::executor
