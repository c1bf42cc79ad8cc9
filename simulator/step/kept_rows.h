// Which rows of a step are in the same step without its update, and where.
#pragma once

#include <vector>

#include "simulator/step/update_section.h"
#include "traces/result.h"
#include "traces/trace.h"

namespace stowage::simulator {

// Saved tensors, unpacks and everything at events ahead of the section have the same rows in both,
// but for storages, which the step without the update numbers as unroll() does. Refers to nothing.
class KeptRows {
 public:
  // Errors (bad_input): those of update_section(); `skipped` is not `taken` without its update:
  // other events, other storages, other saved tensors. Cost: O(events + storages + saved).
  [[nodiscard]] static Result<KeptRows> find(const Trace& taken, const Trace& skipped);

  // Of `taken`.
  [[nodiscard]] const UpdateSection& section() const { return section_; }
  // The first event behind the section in `skipped`; the section begins there.
  [[nodiscard]] EventId behind() const { return section_.first; }
  // None: the update's.
  [[nodiscard]] EventId event(EventId taken) const { return event_[taken.index()]; }
  [[nodiscard]] StorageId storage(StorageId taken) const { return storage_[taken.index()]; }

 private:
  [[nodiscard]] bool find_events(const Trace& taken, const Trace& skipped);
  [[nodiscard]] bool find_storages(const Trace& taken, const Trace& skipped);
  [[nodiscard]] bool saves_the_same(const Trace& taken, const Trace& skipped) const;

  UpdateSection section_;
  std::vector<EventId> event_;      // by event of `taken`
  std::vector<StorageId> storage_;  // by storage of `taken`
};

}  // namespace stowage::simulator
