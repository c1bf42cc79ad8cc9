#include "planner/footprint.h"

#include <algorithm>
#include <cstddef>
#include <map>
#include <utility>

#include "planner/streaming_layers.h"
#include "simulator/lowering/offload_groups.h"
#include "simulator/lowering/parameter_stays.h"
#include "simulator/plan/rule_match.h"
#include "simulator/step/block_bytes.h"
#include "simulator/step/lifetimes.h"
#include "simulator/step/parameter_uses.h"

namespace stowage::planner {
namespace {

using simulator::Decision;
using simulator::Decisions;
using simulator::OffloadGroups;

std::int32_t ahead_of(EventId event) {
  return 2 * event.value;
}
std::int32_t behind(EventId event) {
  return 2 * event.value + 2;
}

OffloadGroups all_offloaded(const simulator::StepIndex& index, bool share) {
  Decisions decisions;
  decisions.saved.resize(index.trace().saved.size());
  for (auto& decision : decisions.saved) {
    decision.decision = Decision::offload;
    decision.share = share;
  }
  return simulator::group_offloads(index, decisions);
}

void add(std::vector<Bytes>& delta, const FootprintSpan& span) {
  delta[static_cast<std::size_t>(span.first)] += span.bytes;
  delta[static_cast<std::size_t>(span.last)] -= span.bytes;
}

std::vector<Bytes> summed(std::vector<Bytes> delta) {
  Bytes now = 0;
  for (Bytes& bytes : delta) bytes = now += bytes;
  delta.pop_back();
  return delta;
}

// Row of Footprints::parameter_spans_.
std::size_t row_of(Choice choice) {
  if (choice == Choice::keep) return 0;
  return choice == Choice::forward ? 1 : 2;
}

}  // namespace

Bytes Movable::bytes_at(Choice choice, std::int32_t position) const {
  Bytes bytes = 0;
  for (const FootprintSpan& span : spans[static_cast<std::size_t>(choice)]) {
    if (span.first <= position && position < span.last) bytes += span.bytes;
  }
  return bytes;
}

std::vector<std::int32_t> Movable::breakpoints() const {
  std::vector<std::int32_t> points;
  for (const auto& list : spans) {
    for (const FootprintSpan& span : list) {
      points.push_back(span.first);
      points.push_back(span.last);
    }
  }
  std::sort(points.begin(), points.end());
  points.erase(std::unique(points.begin(), points.end()), points.end());
  return points;
}

Bytes Footprints::storage_bytes(StorageId storage) const {
  return by_block_ ? index_->rounded_bytes()[storage.index()]
                   : index_->trace().storages.bytes[storage.index()];
}

Bytes Footprints::buffer_bytes(Bytes bytes) const {
  return by_block_ ? simulator::block_bytes(bytes) : bytes;
}

Footprints::Footprints(const simulator::StepIndex& index, simulator::PeakKind kind)
    : index_(&index),
      by_block_(kind != simulator::PeakKind::requested && index.rounds()),
      positions_(static_cast<std::int32_t>(2 * index.event_count())) {
  find_saved();
  find_parameters();
  for (Movable& movable : movable_) find_dominant(movable);
  const Trace& trace = index.trace();
  std::vector<Bytes> all(static_cast<std::size_t>(positions_) + 1, 0);
  std::vector<Bytes> fixed = all;
  std::vector<bool> is_movable(trace.storages.size(), false);
  for (const Movable& movable : movable_) {
    for (const StorageId storage : movable.storages) is_movable[storage.index()] = true;
  }
  for (std::size_t s = 0; s < trace.storages.size(); ++s) {
    if (trace.storages.device[s] != 0) continue;
    const EventId alloc = trace.storages.alloc_event[s];
    const EventId free = trace.storages.free_event[s];
    // Bytes go with the action of the `free` event, so they are there ahead of it.
    const FootprintSpan span{alloc.valid() ? ahead_of(alloc) + 1 : 0,
                             free.valid() ? ahead_of(free) + 1 : positions_,
                             storage_bytes(StorageId(s))};
    add(all, span);
    if (!is_movable[s]) add(fixed, span);
  }
  resident_ = summed(std::move(all));
  immovable_ = summed(std::move(fixed));
}

void Footprints::find_saved() {
  const Trace& trace = index_->trace();
  const OffloadGroups shared = all_offloaded(*index_, true);
  const OffloadGroups separate = all_offloaded(*index_, false);
  std::vector<std::int32_t> row_of(trace.storages.size(), -1);

  // When the original is gone at the earliest: behind its natural free, at `pack` when that is
  // earlier.
  const auto original = [&](StorageId storage, EventId pack) {
    const simulator::Hold hold = simulator::hold_of(trace, storage);
    std::int32_t end = positions_;
    switch (simulator::leaving(hold, pack)) {
      case simulator::Leaving::behind_hold:
        end = behind(hold.event);
        break;
      case simulator::Leaving::at_eviction:
        end = ahead_of(pack) + 1;
        break;
      case simulator::Leaving::never:
        break;
    }
    return FootprintSpan{ahead_of(trace.storages.alloc_event[storage.index()]) + 1, end,
                         storage_bytes(storage)};
  };
  const auto buffer = [&](const simulator::Reload& reload, Bytes bytes) {
    const simulator::Hold hold = simulator::hold_of(trace, reload.unpacks);
    const std::int32_t end = hold.outlives ? positions_ : behind(hold.event);
    return FootprintSpan{ahead_of(trace.unpacks.event[reload.unpacks.front().index()]), end,
                         buffer_bytes(bytes)};
  };
  const auto movable_of = [&](StorageId storage) -> Movable* {
    if (simulator::pre_existing(trace, storage)) return nullptr;
    auto& row = row_of[storage.index()];
    if (row < 0) {
      row = static_cast<std::int32_t>(movable_.size());
      Movable movable;
      movable.storages = {storage};
      movable.first_pack = trace.saved.event[index_->saved_of(storage).front().index()];
      const EventId alloc = trace.storages.alloc_event[storage.index()];
      const EventId free = trace.storages.free_event[storage.index()];
      movable.spans[0].push_back({ahead_of(alloc) + 1,
                                  free.valid() ? ahead_of(free) + 1 : positions_,
                                  storage_bytes(storage)});
      movable_.push_back(std::move(movable));
    }
    return &movable_[static_cast<std::size_t>(row)];
  };
  constexpr auto kShared = static_cast<std::size_t>(Choice::shared);
  constexpr auto kSeparate = static_cast<std::size_t>(Choice::separate);

  for (const simulator::Offload& offload : shared.offloads) {
    Movable* movable = movable_of(offload.storage);
    if (movable == nullptr) continue;
    movable->allowed[kShared] = true;
    movable->shared_range = offload.bytes;
    movable->spans[kShared].push_back(original(offload.storage, movable->first_pack));
  }
  for (const simulator::Reload& reload : shared.reloads) {
    const simulator::Offload& offload = shared.offloads[reload.offload];
    if (Movable* movable = movable_of(offload.storage)) {
      movable->spans[kShared].push_back(buffer(reload, offload.bytes));
    }
  }
  for (const simulator::Offload& offload : separate.offloads) {
    Movable* movable = movable_of(offload.storage);
    if (movable == nullptr) continue;
    movable->views.push_back(offload.bytes);
    auto& spans = movable->spans[kSeparate];
    // Offloads come in pack order: the last one decides.
    spans.assign(1, original(offload.storage, trace.saved.event[offload.saved.back().index()]));
    // One view and at most one unpack: the same as shared, which says it shorter.
    movable->allowed[kSeparate] = true;
  }
  for (const simulator::Reload& reload : separate.reloads) {
    const simulator::Offload& offload = separate.offloads[reload.offload];
    if (Movable* movable = movable_of(offload.storage)) {
      movable->spans[kSeparate].push_back(buffer(reload, offload.bytes));
      movable->unpack_events.push_back(trace.unpacks.event[reload.unpacks.front().index()]);
      movable->unpack_bytes.push_back(offload.bytes);
    }
  }

  for (Movable& movable : movable_) {
    if (movable.views.size() == 1 && movable.unpack_events.size() <= 1) {
      movable.allowed[kSeparate] = !movable.allowed[kShared];
    }
  }
}

void Footprints::find_parameters() {
  const Trace& trace = index_->trace();
  parameter_spans_.resize(trace.storages.size());
  streaming_layer_ = streaming_layers(trace);
  std::map<LayerId, Movable> by_layer;
  for (std::size_t s = 0; s < trace.storages.size(); ++s) {
    const LayerId layer = streaming_layer_[s];
    if (!layer.valid()) continue;
    Movable& movable = by_layer[layer];
    movable.layer = layer;
    parameters_of_[layer].emplace_back(s);
    movable.first_pack = EventId(std::size_t{0});
    if (!index_->parameter_uses().reason_to_stay(StorageId(s)).empty()) continue;
    movable.storages.push_back(StorageId(s));
    parameter_spans_[s].fill({{0, positions_, storage_bytes(StorageId(s))}});
  }
  const auto first = static_cast<std::ptrdiff_t>(movable_.size());
  for (auto& [layer, movable] : by_layer) movable_.push_back(std::move(movable));
  for (const Choice choice : {Choice::forward, Choice::always}) add_parameters(choice);
  for (auto movable = movable_.begin() + first; movable != movable_.end(); ++movable) {
    for (const Choice choice : {Choice::keep, Choice::forward, Choice::always}) {
      auto& spans = movable->spans[static_cast<std::size_t>(choice)];
      for (const StorageId storage : movable->storages) {
        const auto& own = parameter_spans(storage, choice);
        spans.insert(spans.end(), own.begin(), own.end());
      }
    }
  }
}

// Where parameters stay when they stream in this way and are loaded on demand.
void Footprints::add_parameters(Choice choice) {
  simulator::ParameterDecisions streaming;
  streaming.stream = choice == Choice::forward ? simulator::ParameterPlan::Stream::forward
                                               : simulator::ParameterPlan::Stream::always;
  for (const LayerId layer : streaming_layer_) streaming.shard_of.push_back(layer.valid() ? 0 : -1);
  std::map<LayerId, std::size_t> row_of_layer;
  for (std::size_t m = 0; m < movable_.size(); ++m) {
    if (movable_[m].is_layer()) row_of_layer[movable_[m].layer] = m;
  }
  simulator::ParameterStays stays = simulator::parameter_stays(*index_, streaming);
  for (simulator::ParameterStay& stay : stays.stays) stay.start = stay.await;
  simulator::merge_touching(*index_, stays);
  std::vector<bool> seen(index_->trace().storages.size(), false);
  for (const simulator::ParameterStay& stay : stays.stays) {
    const std::size_t s = stay.storage.index();
    auto& spans = parameter_spans_[s][row_of(choice)];
    if (!seen[s]) spans.clear();
    seen[s] = true;
    const auto start = static_cast<std::int32_t>(stay.start);
    const auto evict = static_cast<std::int32_t>(stay.evict);
    const Bytes bytes = storage_bytes(stay.storage);
    spans.push_back({start, std::min(evict, positions_), bytes});
    if (evict > positions_) spans.push_back({0, evict - positions_, bytes});

    Movable& movable = movable_[row_of_layer.at(streaming_layer_[s])];
    movable.allowed[static_cast<std::size_t>(choice)] = true;
    if (choice != Choice::forward) continue;
    const std::int32_t leaves = evict % positions_;
    movable.first_pack = std::max(movable.first_pack, EventId(leaves / 2));
    if (start < leaves) continue;  // back only for the next step's forward
    if (movable.unpack_events.empty()) {
      movable.unpack_events.push_back(EventId(start / 2));
      movable.unpack_bytes.push_back(0);
    }
    movable.unpack_events.front() = std::max(movable.unpack_events.front(), EventId(start / 2));
    movable.unpack_bytes.front() += index_->trace().storages.bytes[s];
  }
}

const std::vector<FootprintSpan>& Footprints::parameter_spans(StorageId parameter,
                                                              Choice choice) const {
  return parameter_spans_[parameter.index()][row_of(choice)];
}

void Footprints::find_dominant(Movable& movable) {
  const std::vector<std::int32_t> points = movable.breakpoints();
  // In the order of Choice: of equals the simplest.
  for (std::size_t c = 0; c < kChoices && movable.dominant < 0; ++c) {
    if (!movable.allowed[c]) continue;
    bool dominates = true;
    for (std::size_t other = 0; other < kChoices && dominates; ++other) {
      if (other == c || !movable.allowed[other]) continue;
      dominates = std::all_of(points.begin(), points.end(), [&](std::int32_t at) {
        return movable.bytes_at(static_cast<Choice>(c), at) <=
               movable.bytes_at(static_cast<Choice>(other), at);
      });
    }
    if (dominates) movable.dominant = static_cast<std::int32_t>(c);
  }
}

std::vector<std::int32_t> Footprints::segment_starts() const {
  std::vector<std::int32_t> starts = {0};
  for (const Movable& movable : movable_) {
    const std::vector<std::int32_t> points = movable.breakpoints();
    starts.insert(starts.end(), points.begin(), points.end());
  }
  std::sort(starts.begin(), starts.end());
  starts.erase(std::unique(starts.begin(), starts.end()), starts.end());
  while (starts.size() > 1 && starts.back() >= positions_) starts.pop_back();
  return starts;
}

std::vector<Bytes> Footprints::curve(const std::vector<Choice>& choices) const {
  std::vector<Bytes> delta(static_cast<std::size_t>(positions_) + 1, 0);
  for (std::size_t m = 0; m < movable_.size(); ++m) {
    for (const auto& span : movable_[m].spans[static_cast<std::size_t>(choices[m])]) {
      add(delta, span);
    }
  }
  std::vector<Bytes> out = summed(std::move(delta));
  for (std::size_t p = 0; p < out.size(); ++p) out[p] += immovable_[p];
  return out;
}

std::vector<Bytes> Footprints::lowest_curve() const {
  std::vector<Bytes> delta(static_cast<std::size_t>(positions_) + 1, 0);
  for (const Movable& movable : movable_) {
    const std::vector<std::int32_t> points = movable.breakpoints();
    for (std::size_t i = 0; i + 1 < points.size(); ++i) {
      Bytes lowest = movable.bytes_at(Choice::keep, points[i]);
      for (std::size_t c = 1; c < kChoices; ++c) {
        if (!movable.allowed[c]) continue;
        lowest = std::min(lowest, movable.bytes_at(static_cast<Choice>(c), points[i]));
      }
      add(delta, {points[i], points[i + 1], lowest});
    }
  }
  std::vector<Bytes> out = summed(std::move(delta));
  for (std::size_t p = 0; p < out.size(); ++p) out[p] += immovable_[p];
  return out;
}

// Also those that have to stay: a plan names layers, and its lowering says why they do.
void Footprints::add_layer(const Movable& movable, Choice choice, Decisions& out) const {
  using Stream = simulator::ParameterPlan::Stream;
  simulator::ParameterDecisions& parameters = out.parameters;
  if (choice == Choice::always) parameters.stream = Stream::always;
  if (parameters.stream == Stream::off) parameters.stream = Stream::forward;
  parameters.shard_of.resize(index_->trace().storages.size(), -1);
  for (const StorageId s : parameters_of_.at(movable.layer)) parameters.shard_of[s.index()] = 0;
}

Decisions Footprints::decisions(const std::vector<Choice>& choices, simulator::ReleasePoint release,
                                simulator::ReloadPoint reload) const {
  Decisions out;
  out.saved.resize(index_->trace().saved.size());
  for (std::size_t m = 0; m < movable_.size(); ++m) {
    if (choices[m] == Choice::keep) continue;
    if (movable_[m].is_layer()) {
      add_layer(movable_[m], choices[m], out);
      continue;
    }
    for (const SavedId saved : index_->saved_of(movable_[m].storages.front())) {
      simulator::SavedDecision& decision = out.saved[saved.index()];
      decision.decision = Decision::offload;
      decision.share = choices[m] == Choice::shared;
      decision.release = release;
      decision.reload = reload;
    }
  }
  return out;
}

Decisions Footprints::tight(const std::vector<Choice>& choices) const {
  simulator::ReleasePoint release;
  release.kind = simulator::ReleasePoint::Kind::pack;
  simulator::ReloadPoint reload;
  reload.kind = simulator::ReloadPoint::Kind::unpack;
  Decisions out = decisions(choices, release, reload);
  if (out.parameters.stream != simulator::ParameterPlan::Stream::off) out.budget = 0;
  return out;
}

}  // namespace stowage::planner
