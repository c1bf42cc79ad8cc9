#include "simulator/step/kept_rows.h"

#include <cstddef>
#include <utility>

namespace stowage::simulator {

Result<KeptRows> KeptRows::find(const Trace& taken, const Trace& skipped) {
  Result<UpdateSection> section = update_section(taken);
  if (!section) return std::move(section).error();
  KeptRows rows;
  rows.section_ = std::move(section).value();
  if (rows.find_events(taken, skipped) && rows.find_storages(taken, skipped) &&
      rows.saves_the_same(taken, skipped)) {
    return rows;
  }
  return Error{ErrorCode::bad_input, "the step without its update is of another step", "", "", ""};
}

bool KeptRows::find_events(const Trace& taken, const Trace& skipped) {
  EventId next(std::size_t{0});
  for (std::size_t e = 0; e < taken.events.size(); ++e) {
    const bool is_kept = !section_.has(EventId(e));
    event_.push_back(is_kept ? next : EventId());
    if (!is_kept) continue;
    if (next.index() >= skipped.events.size() ||
        taken.events.kind[e] != skipped.events.kind[next.index()]) {
      return false;
    }
    ++next.value;
  }
  return next.index() == skipped.events.size();
}

// What exists before the step is in the order of rows in both.
bool KeptRows::find_storages(const Trace& taken, const Trace& skipped) {
  const Storages& from = taken.storages;
  const Storages& to = skipped.storages;
  std::size_t existing = 0;
  for (std::size_t s = 0; s < from.size(); ++s) {
    const EventId alloc = from.alloc_event[s];
    StorageId row;
    if (!alloc.valid()) {
      while (existing < to.size() && to.alloc_event[existing].valid()) ++existing;
      if (existing == to.size()) return false;
      row = StorageId(existing++);
    } else if (event(alloc).valid()) {
      row = StorageId(skipped.events.ref[event(alloc).index()]);
    }
    storage_.push_back(row);
    if (row.valid() &&
        (from.bytes[s] != to.bytes[row.index()] || from.device[s] != to.device[row.index()] ||
         from.storage_class[s] != to.storage_class[row.index()])) {
      return false;
    }
  }
  return true;
}

bool KeptRows::saves_the_same(const Trace& taken, const Trace& skipped) const {
  if (taken.saved.size() != skipped.saved.size() || taken.unpacks.saved != skipped.unpacks.saved) {
    return false;
  }
  for (std::size_t s = 0; s < taken.saved.size(); ++s) {
    const StorageId of = taken.saved.storage[s];
    if ((of.valid() ? storage(of) : of) != skipped.saved.storage[s]) return false;
  }
  return true;
}

}  // namespace stowage::simulator
