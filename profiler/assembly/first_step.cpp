#include "profiler/assembly/first_step.h"

#include <algorithm>
#include <unordered_map>

namespace stowage::profiler {

namespace {

class Alignment {
 public:
  explicit Alignment(const RawPass& structure) : lasting_(lasting_serials(structure)) {
    for (const RawStorage& storage : structure.live_at_begin) {
      if (storage.storage_class == StorageClass::gradient) gradients_.insert(storage.serial);
    }
    for (std::size_t e = 0; e < structure.events.size(); ++e) {
      const RawEvent& event = structure.events[e];
      if (event.kind == RawKind::alloc) allocations_.push_back({event.id, event.bytes, index(e)});
      if (event.kind == RawKind::free) freed_[event.id] = index(e);
    }
  }

  std::optional<std::vector<FirstStepExtra>> run(const std::vector<RawSetup>& setup) && {
    for (std::size_t row = 0; row < setup.size(); ++row) {
      if (!setup[row].in_first_step) continue;
      const EventId event(behind_);
      if (setup[row].is_free ? !is_common_free(setup[row]) : !is_common_allocation(setup[row])) {
        extras_.push_back({row, event});
      }
    }
    if (next_ < allocations_.size()) return std::nullopt;
    return std::move(extras_);
  }

 private:
  struct Allocation {
    std::int64_t serial = -1;
    Bytes bytes = 0;
    std::int32_t event = 0;
  };

  static std::int32_t index(std::size_t e) { return static_cast<std::int32_t>(e); }

  bool is_common_allocation(const RawSetup& made) {
    const bool is_gradient = gradients_.contains(made.serial);
    if (lasting_.contains(made.serial)) {
      // In its place later steps make what they add to it.
      const bool is_first_of_it =
          is_gradient && next_ < allocations_.size() && allocations_[next_].bytes == made.bytes;
      if (is_first_of_it) behind_ = allocations_[next_++].event;
      return false;
    }
    if (next_ == allocations_.size() || allocations_[next_].bytes != made.bytes) {
      if (is_gradient) counterpart_[made.serial] = -1;
      return is_gradient;
    }
    counterpart_[made.serial] = allocations_[next_].serial;
    behind_ = allocations_[next_++].event;
    return true;
  }

  bool is_common_free(const RawSetup& gone) {
    const auto counterpart = counterpart_.find(gone.serial);
    if (counterpart == counterpart_.end()) return false;
    const auto freed = freed_.find(counterpart->second);
    // The recorded step may free it at another place, where other things hold it.
    if (freed != freed_.end() &&
        (next_ == allocations_.size() || freed->second < allocations_[next_].event)) {
      behind_ = std::max(behind_, freed->second);
    }
    return true;
  }

  std::unordered_set<std::int64_t> lasting_;
  std::unordered_set<std::int64_t> gradients_;
  std::vector<Allocation> allocations_;                   // of the recorded step
  std::unordered_map<std::int64_t, std::int32_t> freed_;  // event of the recorded step, by serial
  std::unordered_map<std::int64_t, std::int64_t> counterpart_;  // first step's serial to recorded's
  std::size_t next_ = 0;     // of the allocations: the next one without a counterpart
  std::int32_t behind_ = 0;  // the last event that both steps had
  std::vector<FirstStepExtra> extras_;
};

}  // namespace

std::unordered_set<std::int64_t> lasting_serials(const RawPass& structure) {
  std::unordered_set<std::int64_t> lasting;
  for (const RawStorage& storage : structure.live_at_begin) lasting.insert(storage.serial);
  for (const RawEvent& event : structure.events) {
    if (event.kind == RawKind::free) lasting.erase(event.id);
  }
  return lasting;
}

std::optional<std::vector<FirstStepExtra>> first_step_extras(const std::vector<RawSetup>& setup,
                                                             const RawPass& structure) {
  return Alignment(structure).run(setup);
}

}  // namespace stowage::profiler
