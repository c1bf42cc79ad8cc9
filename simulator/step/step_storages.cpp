#include "simulator/step/step_storages.h"

#include <algorithm>

namespace stowage::simulator {

Status StepStorages::find() {
  remade_.assign(layout_.sources().front().trace->storages.size(), {});
  aliases_.clear();
  for (std::size_t g = 1; g < layout_.groups().size(); ++g) {
    if (layout_.groups()[g].placements.empty()) continue;
    const auto group = static_cast<std::int32_t>(g);
    for (const auto& [storage, recorded] : layout_.groups()[g].same) {
      aliases_.push_back({recorded, group, storage});
      const std::int32_t row = layout_.row(RowTable::storages, group, storage.index());
      if (row < 0) continue;
      const bool is_there = this->recorded(recorded).valid();
      remade_[recorded.index()] = StorageId(row);
      if (!is_there) continue;
      Error error;
      error.code = ErrorCode::bad_input;
      error.message = "storage " + std::to_string(recorded.value) +
                      " of the recording is made twice in the step";
      return error;
    }
  }
  std::sort(aliases_.begin(), aliases_.end());
  return Unit{};
}

StorageId StepStorages::recorded(StorageId storage) const {
  if (const StorageId existing = layout_.existing_row(storage); existing.valid()) return existing;
  const std::int32_t own = layout_.row(RowTable::storages, 0, storage.index());
  return own >= 0 ? StorageId(own) : remade_[storage.index()];
}

std::span<const StepStorages::Alias> StepStorages::aliases_of(StorageId recorded) const {
  if (!recorded.valid()) return {};
  const auto less = [](const Alias& alias, StorageId wanted) { return alias.recorded < wanted; };
  const auto more = [](StorageId wanted, const Alias& alias) { return wanted < alias.recorded; };
  const auto first = std::lower_bound(aliases_.begin(), aliases_.end(), recorded, less);
  const auto end = std::upper_bound(first, aliases_.end(), recorded, more);
  return {first, end};
}

StorageId StepStorages::recorded_of(std::int32_t group, StorageId storage) const {
  if (group == 0) return storage;
  const PieceGroup& of = layout_.groups()[static_cast<std::size_t>(group)];
  const auto same =
      std::lower_bound(of.same.begin(), of.same.end(), storage,
                       [](const auto& pair, StorageId wanted) { return pair.first < wanted; });
  return same != of.same.end() && same->first == storage ? same->second : StorageId();
}

StorageId StepStorages::row(std::int32_t group, StorageId storage) const {
  if (const StorageId same = recorded_of(group, storage); same.valid()) return recorded(same);
  const std::int32_t own = layout_.row(RowTable::storages, group, storage.index());
  if (own >= 0) return StorageId(own);
  const bool is_recording = layout_.source_of_group(group).trace == layout_.sources().front().trace;
  return is_recording ? recorded(storage) : StorageId();
}

}  // namespace stowage::simulator
