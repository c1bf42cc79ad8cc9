// Casts of parameters, and how long autocast keeps them for further uses. That cache is cleared
// where the outermost autocast is left, and what runs again has one of its own.
#pragma once

#include <vector>

#include "traces/trace.h"

namespace stowage::simulator {

class ParameterCasts {
 public:
  // Keeps nothing of the trace. Cost: O(storages + ops + uses).
  explicit ParameterCasts(const Trace& trace);

  // It is made of a parameter by a cast.
  [[nodiscard]] bool has(StorageId storage) const { return casts_[storage.index()].is_one; }
  // The event behind which autocast lets go of it; -1 = it is no cast, or one that nobody keeps
  // behind the op that it is made in.
  [[nodiscard]] EventId held_until(StorageId storage) const {
    return casts_[storage.index()].held_until;
  }

 private:
  struct Cast {
    bool is_one = false;
    EventId held_until{};
  };
  std::vector<Cast> casts_;  // by storage
};

}  // namespace stowage::simulator
