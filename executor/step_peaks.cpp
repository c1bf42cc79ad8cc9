#include "executor/step_peaks.h"

#include <algorithm>
#include <mutex>
#include <vector>

namespace stowage::executor {
namespace {

std::mutex open_mutex;
std::vector<StepPeaks*> open_steps;  // of all devices

void raise_peaks(MemoryStats& stats, const MemoryStats& to) {
  stats.peak_requested = std::max(stats.peak_requested, to.peak_requested);
  stats.peak_active = std::max(stats.peak_active, to.peak_active);
  stats.peak_reserved = std::max(stats.peak_reserved, to.peak_reserved);
}

}  // namespace

void StepPeaks::begin() {
  const std::lock_guard lock(open_mutex);
  std::erase(open_steps, this);
  for (StepPeaks* each : open_steps) {
    if (&each->device_ == &device_) raise_peaks(each->kept_, device_.memory());
  }
  device_.reset_peak();
  kept_ = {};
  open_steps.push_back(this);
}

MemoryStats StepPeaks::memory() const {
  MemoryStats stats = device_.memory();
  const std::lock_guard lock(open_mutex);
  raise_peaks(stats, kept_);
  return stats;
}

void StepPeaks::end() {
  const std::lock_guard lock(open_mutex);
  std::erase(open_steps, this);
}

}  // namespace stowage::executor
