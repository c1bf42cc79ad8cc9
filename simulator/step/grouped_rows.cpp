#include "simulator/step/grouped_rows.h"

#include <cstddef>
#include <utility>
#include <vector>

namespace stowage::simulator {

Grouped<UnpackId> unpacks_by_saved(const Trace& trace) {
  std::vector<std::pair<std::size_t, UnpackId>> rows;
  rows.reserve(trace.unpacks.size());
  for (std::size_t u = 0; u < trace.unpacks.size(); ++u) {
    rows.emplace_back(trace.unpacks.saved[u].index(), UnpackId(u));
  }
  return {trace.saved.size(), rows};
}

Grouped<SavedId> saved_by_storage(const Trace& trace) {
  std::vector<std::pair<std::size_t, SavedId>> rows;
  rows.reserve(trace.saved.size());
  for (std::size_t s = 0; s < trace.saved.size(); ++s) {
    const StorageId of = trace.saved.storage[s];
    if (of.valid()) rows.emplace_back(of.index(), SavedId(s));
  }
  return {trace.storages.size(), rows};
}

Grouped<std::uint32_t> uses_by_op(const Trace& trace) {
  std::vector<std::pair<std::size_t, std::uint32_t>> rows;
  rows.reserve(trace.uses.size());
  for (std::size_t u = 0; u < trace.uses.size(); ++u) {
    rows.emplace_back(trace.uses.op[u].index(), static_cast<std::uint32_t>(u));
  }
  return {trace.ops.size(), rows};
}

Grouped<std::uint32_t> uses_by_storage(const Trace& trace) {
  std::vector<std::pair<std::size_t, std::uint32_t>> rows;
  rows.reserve(trace.uses.size());
  for (std::size_t u = 0; u < trace.uses.size(); ++u) {
    const StorageId of = trace.tensors.storage[trace.uses.tensor[u].index()];
    if (of.valid()) rows.emplace_back(of.index(), static_cast<std::uint32_t>(u));
  }
  return {trace.storages.size(), rows};
}

}  // namespace stowage::simulator
