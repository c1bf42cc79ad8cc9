// Which row of a step a storage of a piece is.
#pragma once

#include <span>
#include <vector>

#include "simulator/step/step_layout.h"
#include "traces/result.h"

namespace stowage::simulator {

class StepStorages {
 public:
  // The layout must be laid out and outlive this.
  explicit StepStorages(const StepLayout& layout) : layout_(layout) {}
  // Error (bad_input): two pieces make the same recorded storage, or one makes it that exists
  // before the step. Cost: O(storages that stand for others, in all groups).
  [[nodiscard]] Status find();

  // None: no piece makes it, it does not exist before the step and stands for none that is there.
  [[nodiscard]] StorageId row(std::int32_t group, StorageId storage) const;
  // The same for one of the recording.
  [[nodiscard]] StorageId recorded(StorageId storage) const;
  // Groups and their storages that stand for a recorded one: (recorded row, group, storage), in
  // order.
  struct Alias {
    StorageId recorded;
    std::int32_t group = 0;
    StorageId storage;
    friend auto operator<=>(const Alias&, const Alias&) = default;
  };
  [[nodiscard]] std::span<const Alias> aliases_of(StorageId recorded) const;
  // The recorded storage that one of a group is; none: it is none.
  [[nodiscard]] StorageId recorded_of(std::int32_t group, StorageId storage) const;

 private:
  const StepLayout& layout_;
  std::vector<Alias> aliases_;
  std::vector<StorageId> remade_;  // by recorded row: made by a piece of another group
};

}  // namespace stowage::simulator
