// The options for parameters.
#include <algorithm>
#include <map>
#include <utility>

#include "planner/footprint.h"
#include "planner/streaming_layers.h"
#include "simulator/lowering/lowering.h"
#include "simulator/lowering/parameter_stays.h"
#include "simulator/lowering/touching_stays.h"
#include "simulator/step/parameter_uses.h"

namespace stowage::planner {
namespace {

simulator::StreamMode mode_of(Choice choice) {
  if (choice == Choice::forward) return simulator::StreamMode::forward;
  return choice == Choice::backward ? simulator::StreamMode::backward
                                    : simulator::StreamMode::always;
}

// Where parameters stay when all of them stream in this way and are loaded on demand.
simulator::Movement stays_on_demand(const simulator::StepIndex& index,
                                    const std::vector<LayerId>& layers, Choice choice) {
  simulator::ParameterDecisions streaming;
  streaming.stream = mode_of(choice);
  for (const LayerId layer : layers) streaming.shard_of.push_back(layer.valid() ? 0 : -1);
  simulator::Movement movement = simulator::parameter_stays(index, streaming);
  for (simulator::PlacedStay& stay : movement.stays) stay.wanted_load = stay.await;
  simulator::merge_touching(index, movement);
  return movement;
}

}  // namespace

void Footprints::find_parameters() {
  const Trace& trace = index_->trace();
  streaming_layer_ = streaming_layers(trace);
  std::map<LayerId, Movable> by_layer;
  for (std::size_t s = 0; s < trace.storages.size(); ++s) {
    const LayerId layer = streaming_layer_[s];
    if (!layer.valid()) continue;
    Movable& movable = by_layer[layer];
    movable.layer = layer;
    parameters_of_[layer].emplace_back(s);
    movable.leaves = EventId(std::size_t{0});
    if (!index_->parameter_uses().reason_to_stay(StorageId(s)).empty()) continue;
    movable.storages.push_back(StorageId(s));
    unit_of_[s] = static_cast<std::int32_t>(units_.size());
    MovedUnit unit{StorageId(s), std::vector<Option>(1)};
    unit.options.front().spans = {{0, positions_, storage_bytes(StorageId(s))}};
    units_.push_back(std::move(unit));
  }
  const std::size_t first = movable_.size();
  for (auto& [layer, movable] : by_layer) movable_.push_back(std::move(movable));
  for (std::size_t m = first; m < movable_.size(); ++m) {
    movable_[m].options.resize(1);
    for (const StorageId storage : movable_[m].storages) {
      auto& spans = movable_[m].options.front().spans;
      const auto& own = unit_of(storage).options.front().spans;
      spans.insert(spans.end(), own.begin(), own.end());
    }
  }
  for (const Choice choice : kStreamChoices) add_parameters(choice);
}

// Options of the parameters that leave in this way, and of their layers.
void Footprints::add_parameters(Choice choice) {
  const simulator::Movement movement = stays_on_demand(*index_, streaming_layer_, choice);
  for (const simulator::PlacedStay& stay : movement.stays) {
    const StorageId storage = movement.tenants[stay.tenant.index()].storage;
    const std::size_t s = storage.index();
    std::vector<Option>& options = units_[static_cast<std::size_t>(unit_of_[s])].options;
    if (options.back().choice != choice) {
      options.emplace_back();
      options.back().choice = choice;
    }
    const auto start = static_cast<std::int32_t>(stay.wanted_load);
    const auto evict = static_cast<std::int32_t>(stay.earliest_evict);
    const Bytes bytes = storage_bytes(storage);
    options.back().spans.push_back({start, std::min(evict, positions_), bytes});
    if (evict > positions_) options.back().spans.push_back({0, evict - positions_, bytes});
    options.back().back.push_back({start, index_->trace().storages.bytes[s]});
  }
  for (Movable& movable : movable_) {
    if (movable.is_layer()) add_layer_option(movable, choice, movement);
  }
}

// What its parameters hold together. Its one copy back, which only ranks it, stands for those of
// them that come back in this step, where the last of them does.
void Footprints::add_layer_option(Movable& movable, Choice choice,
                                  const simulator::Movement& movement) const {
  Option all;
  all.choice = choice;
  bool leaves = false;
  for (const StorageId storage : movable.storages) {
    const std::vector<Option>& options = unit_of(storage).options;
    const Option* const own = find(options, choice);
    leaves = leaves || own != nullptr;
    const auto& spans = (own != nullptr ? *own : options.front()).spans;
    all.spans.insert(all.spans.end(), spans.begin(), spans.end());
  }
  if (!leaves) return;
  for (const simulator::PlacedStay& stay : movement.stays) {
    const std::size_t s = movement.tenants[stay.tenant.index()].storage.index();
    if (choice != Choice::forward || streaming_layer_[s] != movable.layer) continue;
    const auto start = static_cast<std::int32_t>(stay.wanted_load);
    const std::int32_t left = static_cast<std::int32_t>(stay.earliest_evict) % positions_;
    movable.leaves = std::max(movable.leaves, EventId(left / 2));
    if (start < left) continue;  // back only for the next step's forward
    if (all.back.empty()) all.back.push_back({start, 0});
    all.back.front().position = std::max(all.back.front().position, start);
    all.back.front().bytes += index_->trace().storages.bytes[s];
  }
  movable.options.push_back(std::move(all));
}

}  // namespace stowage::planner
