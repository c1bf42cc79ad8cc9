#include "report/alive.h"

#include <algorithm>
#include <array>

namespace stowage::report {
namespace {

constexpr std::size_t kAliveClasses = static_cast<std::size_t>(StorageClass::other) + 1;

template <class Row>
void largest_first(std::vector<Row>& rows) {
  std::erase_if(rows, [](const Row& row) { return row.storages == 0; });
  std::stable_sort(rows.begin(), rows.end(),
                   [](const Row& a, const Row& b) { return a.bytes > b.bytes; });
}

}  // namespace

std::vector<SavedId> first_packs(const Trace& trace) {
  std::vector<SavedId> first(trace.storages.size());
  for (std::size_t i = 0; i < trace.saved.size(); ++i) {
    const StorageId storage = trace.saved.storage[i];
    if (storage.valid() && !first[storage.index()].valid()) first[storage.index()] = SavedId(i);
  }
  return first;
}

EventId event_at(const std::vector<Nanoseconds>& event_time, Nanoseconds time) {
  const auto behind = std::upper_bound(event_time.begin(), event_time.end(), time);
  const auto count = static_cast<std::size_t>(behind - event_time.begin());
  return EventId(count > 0 ? count - 1 : 0);
}

AliveIndex::AliveIndex(const Trace& trace, const simulator::Schedule& schedule)
    : trace_(trace), spans_(trace, schedule), first_saved_(first_packs(trace)) {}

Alive AliveIndex::at(EventId event) const {
  return at_position(spans_.highest_at(event));
}

Alive AliveIndex::at_peak() const {
  return at_position(spans_.highest());
}

Alive AliveIndex::at_position(StepPosition position) const {
  Alive alive;
  alive.event = spans_.event_of(position);
  std::array<AliveClass, kAliveClasses> classes;
  // The last row: outside any layer.
  std::vector<AliveLayer> layers(trace_.layers.size() + 1);
  for (std::size_t c = 0; c < kAliveClasses; ++c) {
    classes[c].storage_class = static_cast<StorageClass>(c);
  }
  for (std::size_t l = 0; l + 1 < layers.size(); ++l) layers[l].layer = LayerId(l);
  for (const std::size_t row : spans_.alive(position)) {
    const AliveSpan& span = spans_.all()[row];
    const std::size_t s = span.storage.index();
    alive.storages.push_back({span.storage, span.saved.valid() ? span.saved : first_saved_[s],
                              span.bytes, span.holding});
    alive.bytes += span.bytes;
    AliveClass& of_class = classes[static_cast<std::size_t>(trace_.storages.storage_class[s])];
    ++of_class.storages;
    of_class.bytes += span.bytes;
    const LayerId layer = trace_.storages.layer[s];
    AliveLayer& of_layer = layer.valid() ? layers[layer.index()] : layers.back();
    ++of_layer.storages;
    of_layer.bytes += span.bytes;
  }
  std::sort(alive.storages.begin(), alive.storages.end(),
            [](const AliveStorage& a, const AliveStorage& b) {
              if (a.bytes != b.bytes) return a.bytes > b.bytes;
              return a.storage != b.storage ? a.storage < b.storage : a.saved < b.saved;
            });
  alive.classes.assign(classes.begin(), classes.end());
  alive.layers = std::move(layers);
  largest_first(alive.classes);
  largest_first(alive.layers);
  return alive;
}

}  // namespace stowage::report
