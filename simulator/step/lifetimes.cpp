#include "simulator/step/lifetimes.h"

#include <algorithm>

namespace stowage::simulator {

Hold hold_of(const Trace& trace, StorageId storage) {
  const EventId natural = trace.storages.natural_free_event[storage.index()];
  return {natural, !natural.valid()};
}

Hold hold_of(const Trace& trace, std::span<const UnpackId> unpacks) {
  Hold hold;
  if (unpacks.empty()) return hold;
  hold.event = trace.unpacks.event[unpacks.back().index()];
  for (const UnpackId unpack : unpacks) {
    const EventId released = trace.unpacks.released_event[unpack.index()];
    if (!released.valid()) return {{}, true};
    hold.event = std::max(hold.event, released);
  }
  return hold;
}

}  // namespace stowage::simulator
