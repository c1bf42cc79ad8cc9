// Strings, lists and layers of several passes in one set of tables: the recording's as they are,
// behind them what only the others have. They are the same when their texts, values and paths are.
#pragma once

#include <map>
#include <string>
#include <unordered_map>
#include <vector>

#include "simulator/step/step_layout.h"
#include "traces/trace.h"

namespace stowage::simulator {

class StepNames {
 public:
  // Writes strings, lists and layers of `trace`, which is empty there. Cost: O(tables of all
  // sources).
  StepNames(const std::vector<StepSource>& sources, Trace& trace);

  [[nodiscard]] StringId string(std::int32_t source, StringId id) const {
    return maps_[static_cast<std::size_t>(source)].strings[id.index()];
  }
  [[nodiscard]] ListId list(std::int32_t source, ListId id) const {
    return maps_[static_cast<std::size_t>(source)].lists[id.index()];
  }
  // None for none.
  [[nodiscard]] LayerId layer(std::int32_t source, LayerId id) const {
    return id.valid() ? maps_[static_cast<std::size_t>(source)].layers[id.index()] : id;
  }

 private:
  struct Maps {
    std::vector<StringId> strings;
    std::vector<ListId> lists;
    std::vector<LayerId> layers;
  };
  Maps add(const Trace& source, Trace& trace);

  std::unordered_map<std::string, StringId> strings_;
  std::map<std::vector<std::int64_t>, ListId> lists_;
  std::unordered_map<StringId, LayerId> layers_;  // by name
  std::vector<Maps> maps_;                        // by source
};

}  // namespace stowage::simulator
