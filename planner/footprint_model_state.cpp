// The options for parameters, the optimizer's state and gradients.
#include <algorithm>
#include <map>
#include <set>
#include <utility>

#include "planner/footprint.h"
#include "planner/pins.h"
#include "simulator/lowering/lowering.h"
#include "simulator/lowering/model_state_stays.h"
#include "simulator/lowering/touching_stays.h"
#include "simulator/step/model_state_uses.h"

namespace stowage::planner {
namespace {

simulator::StreamMode mode_of(Choice choice) {
  if (choice == Choice::forward) return simulator::StreamMode::forward;
  return choice == Choice::backward ? simulator::StreamMode::backward
                                    : simulator::StreamMode::always;
}

StorageClass class_of(Moves what) {
  switch (what) {
    case Moves::parameters:
      return StorageClass::parameter;
    case Moves::gradients:
      return StorageClass::gradient;
    default:
      return StorageClass::optimizer_state;
  }
}

simulator::Movement on_demand(const simulator::StepIndex& index, simulator::Movement movement) {
  for (simulator::PlacedStay& stay : movement.stays) {
    if (!stay.is_made) stay.wanted_load = stay.await;
  }
  simulator::merge_touching(index, movement);
  return movement;
}

}  // namespace

// Where all of it stays when it streams in this way and is loaded on demand.
simulator::Movement Footprints::stays_of(const std::vector<bool>& streams, Moves what,
                                         Choice choice) const {
  if (what == Moves::optimizer_state) {
    return on_demand(*index_, simulator::optimizer_state_stays(
                                  *index_, {.state_streams = streams, .updated_on_host = {}}));
  }
  if (what == Moves::gradients) {
    return on_demand(*index_, simulator::gradient_stays(*index_, {.at_home = streams}, updates_));
  }
  simulator::ParameterDecisions streaming;
  streaming.stream = mode_of(choice);
  for (const bool each : streams) streaming.shard_of.push_back(each ? 0 : -1);
  return on_demand(*index_, simulator::parameter_stays(*index_, streaming, updates_));
}

// Where the host updates parameters: these and their gradients leave for it, whatever else is
// decided, and their state is nowhere on the device.
void Footprints::find_host_updates() {
  const simulator::Step& step = index_->step();
  const std::vector<StorageId>& recorded = step.host_updates();
  if (recorded.empty()) return;
  const Storages& storages = index_->trace().storages;
  updated_on_host_.assign(storages.size(), false);
  for (std::size_t s = 0; s < storages.size(); ++s) {
    if (storages.storage_class[s] != StorageClass::parameter) continue;
    const StorageId row = step.origin(StorageId(s)).row;
    updated_on_host_[s] = std::find(recorded.begin(), recorded.end(), row) != recorded.end();
  }
  for (std::size_t s = 0; s < storages.size(); ++s) {
    const StorageId owner = storages.parameter[s];
    if (is_on_host(owner.valid() ? owner : StorageId(s))) left_by_host_[StorageId(s)] = {};
  }
  updates_ = simulator::HostUpdatePlaces(*index_, updated_on_host_);
  for (const Moves what : {Moves::parameters, Moves::gradients}) {
    const simulator::Movement movement =
        stays_of(std::vector<bool>(storages.size(), false), what, Choice::always);
    for (const simulator::PlacedStay& stay : movement.stays) {
      const StorageId storage = movement.tenants[stay.tenant.index()].storage;
      for (const FootprintSpan& span : spans_of(stay, storage)) {
        left_by_host_[storage].push_back(span);
      }
    }
  }
}

void Footprints::find_model_state(Moves what, bool is_allowed) {
  if (!is_allowed && (pinned_ == nullptr || !pinned_->decides(what))) return;
  const Trace& trace = index_->trace();
  // Of one layer rules say one thing about the state.
  std::set<LayerId> layers_on_host;
  for (std::size_t s = 0; s < streaming_layer_.size() && what == Moves::optimizer_state; ++s) {
    const LayerId layer = streaming_layer_[s];
    const bool is_pinned = pinned_ != nullptr && pinned_->updates_on_host(layer);
    if (is_pinned || is_on_host(StorageId(s))) layers_on_host.insert(layer);
  }
  std::map<LayerId, Movable> by_layer;
  for (std::size_t s = 0; s < trace.storages.size(); ++s) {
    const LayerId layer = streaming_layer_[s];
    if (!layer.valid() || trace.storages.storage_class[s] != class_of(what)) continue;
    if (layers_on_host.count(layer) > 0) continue;
    const std::optional<Choice> pinned = pinned_choice(what, layer);
    if (!pinned && !is_allowed) continue;
    state_of_[{what, layer}].emplace_back(s);
    if (pinned) continue;  // its spans are those of its stays (add_streaming())
    Movable& movable = by_layer[layer];
    movable.what = what;
    movable.layer = layer;
    movable.leaves = EventId(std::size_t{0});
    if (!index_->model_state_uses().reason_to_stay(StorageId(s)).empty()) continue;
    const StorageId owner = trace.storages.parameter[s];
    if (owner.valid() && is_on_host(owner)) continue;
    movable.storages.push_back(StorageId(s));
    unit_of_[s] = static_cast<std::int32_t>(units_.size());
    MovedUnit unit{StorageId(s), std::vector<Option>(1)};
    unit.options.front().spans = kept_spans(StorageId(s));
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
  if (what != Moves::parameters) return add_streaming(what, Choice::always);
  for (const Choice choice : kStreamChoices) add_streaming(what, choice);
}

// One more of what is pinned to leave.
void Footprints::pin_stay(const simulator::PlacedStay& stay, StorageId storage) {
  if (!index_->model_state_uses().reason_to_stay(storage).empty()) return;
  const StorageId owner = index_->trace().storages.parameter[storage.index()];
  if (owner.valid() && is_on_host(owner)) return;
  std::vector<FootprintSpan>& spans = pinned_spans_[storage];
  for (const FootprintSpan& span : spans_of(stay, storage)) spans.push_back(span);
  const StorageId previous = index_->model_state_uses().previous_of(storage);
  if (previous.valid()) pinned_spans_[previous] = {};
}

// With what of a gradient the step before left.
std::vector<FootprintSpan> Footprints::kept_spans(StorageId storage) {
  if (const auto left = left_by_host_.find(storage); left != left_by_host_.end()) {
    return left->second;
  }
  const Storages& storages = index_->trace().storages;
  const StorageId previous = index_->model_state_uses().previous_of(storage);
  if (!previous.valid()) return {{0, positions_, storage_bytes(storage)}};
  is_previous_[previous.index()] = true;
  const std::int32_t made = 2 * storages.alloc_event[storage.index()].value + 1;
  return {{0, 2 * storages.free_event[previous.index()].value + 1, storage_bytes(previous)},
          {made, positions_, storage_bytes(storage)}};
}

// Of one that is loaded on demand.
std::vector<FootprintSpan> Footprints::spans_of(const simulator::PlacedStay& stay,
                                                StorageId storage) const {
  const Bytes bytes = storage_bytes(storage);
  const auto evict = static_cast<std::int32_t>(stay.earliest_evict);
  if (stay.is_made) {
    return {{2 * index_->trace().storages.alloc_event[storage.index()].value + 1, evict, bytes}};
  }
  std::vector<FootprintSpan> spans = {
      {static_cast<std::int32_t>(stay.wanted_load), std::min(evict, positions_), bytes}};
  if (evict > positions_) spans.push_back({0, evict - positions_, bytes});
  return spans;
}

// Options of what leaves in this way, and of their layers.
void Footprints::add_streaming(Moves what, Choice choice) {
  std::vector<bool> streams;
  for (std::size_t s = 0; s < streaming_layer_.size(); ++s) {
    streams.push_back(streaming_layer_[s].valid() &&
                      index_->trace().storages.storage_class[s] == class_of(what));
  }
  const simulator::Movement movement = stays_of(streams, what, choice);
  for (const simulator::PlacedStay& stay : movement.stays) {
    const StorageId storage = movement.tenants[stay.tenant.index()].storage;
    const std::size_t s = storage.index();
    if (pinned_choice(what, streaming_layer_[s]) == choice) pin_stay(stay, storage);
    if (unit_of_[s] < 0) continue;  // the host updates it, or with it, and nothing is decided
    std::vector<Option>& options = units_[static_cast<std::size_t>(unit_of_[s])].options;
    if (options.back().choice != choice) {
      options.emplace_back();
      options.back().choice = choice;
    }
    if (what != Moves::parameters && stay.has_store()) {
      const auto stored = static_cast<std::int32_t>(stay.store);
      options.back().out.push_back({stored, index_->trace().storages.bytes[s]});
    }
    for (const FootprintSpan& span : spans_of(stay, storage)) {
      options.back().spans.push_back(span);
    }
    if (stay.is_made) {
      options.back().made = options.back().spans.back().first;
      continue;
    }
    const auto start = static_cast<std::int32_t>(stay.wanted_load);
    options.back().back.push_back({start, index_->trace().storages.bytes[s]});
  }
  for (Movable& movable : movable_) {
    if (movable.what == what) add_layer_option(movable, choice, movement);
  }
}

// What its storages hold together. Its one copy back, which only ranks it, stands for those of them
// that come back in this step, where the last of them does.
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
    if (streaming_layer_[s] != movable.layer || stay.is_made) continue;
    const auto start = static_cast<std::int32_t>(stay.wanted_load);
    if (movable.what == Moves::parameters) {
      if (choice != Choice::forward) continue;
      const std::int32_t left = static_cast<std::int32_t>(stay.earliest_evict) % positions_;
      movable.leaves = std::max(movable.leaves, EventId(left / 2));
      if (start < left) continue;  // back only for the next step's forward
    }
    if (all.back.empty()) all.back.push_back({start, 0});
    all.back.front().position = std::max(all.back.front().position, start);
    all.back.front().bytes += index_->trace().storages.bytes[s];
  }
  movable.options.push_back(std::move(all));
}

}  // namespace stowage::planner
