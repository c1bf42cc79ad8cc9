// When what is selected is made, used, idle, away and freed: for the lanes and the memory curve.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "gui/model/explained.h"
#include "gui/model/view_state.h"

namespace stowage::gui {

struct Lifetime {
  StorageId storage;  // of the step that is shown
  std::string name;   // "layers.3.mlp#2 (58.7 MB)"
  Bytes bytes = 0;
  StorageClass storage_class = StorageClass::other;
  // On the device, in order: one stretch where nothing moves, with gaps where a plan has it away.
  // From 0 on: it is older than the step; to the step's end: it outlives the step.
  std::vector<TimeRange> there;
  std::vector<TimeRange> uses;       // in order; may overlap, and be of no length
  std::optional<Nanoseconds> made;   // none: older than the step
  std::optional<Nanoseconds> freed;  // none: outlives the step
  // Where nothing uses it any more until it is freed.
  std::optional<TimeRange> dead;
  bool operator==(const Lifetime&) const = default;
};

// Of a saved tensor, a storage, what a transfer, a stall or an update is about, and the largest
// that an op, or a kernel's op, makes and leaves; none for what is not of one storage. `recorded`:
// in the recorded step, else in the planned one. `end`: of the step that is shown. Cost: O(spans
// that are ever alive), of an op O(trace).
[[nodiscard]] std::optional<Lifetime> lifetime_of(const Explained& explained,
                                                  const Selection& selection, bool recorded,
                                                  Nanoseconds end);

// "made at 52.1 ms, used 3 times, idle at most 1.21 s from .., dead from .., freed at .."
[[nodiscard]] std::string lifetime_text(const Lifetime& lifetime);

}  // namespace stowage::gui
