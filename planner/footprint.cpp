#include "planner/footprint.h"

#include <algorithm>
#include <cstddef>
#include <utility>

#include "planner/pins.h"
#include "planner/streaming_layers.h"
#include "simulator/step/block_bytes.h"

namespace stowage::planner {
namespace {

using simulator::Decision;
using simulator::Decisions;
using simulator::StreamMode;

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

}  // namespace

std::vector<std::int32_t> Movable::breakpoints() const {
  std::vector<std::int32_t> points;
  for (const Option& option : options) {
    for (const FootprintSpan& span : option.spans) {
      points.push_back(span.first);
      points.push_back(span.last);
    }
  }
  std::sort(points.begin(), points.end());
  points.erase(std::unique(points.begin(), points.end()), points.end());
  return points;
}

const std::vector<OptionCopy>& Movable::returns() const {
  const Option* most = &options.front();
  for (const Choice choice :
       {Choice::always, Choice::forward, Choice::backward, Choice::shared, Choice::separate}) {
    const Option* const of = option(choice);
    if (of != nullptr && of->back.size() >= most->back.size()) most = of;
  }
  return most->back;
}

Bytes Movable::range() const {
  if (is_layer()) return returns().empty() ? 0 : returns().front().bytes;
  const Option* const whole = option(Choice::shared);
  return whole != nullptr ? whole->out.front().bytes : 0;
}

Bytes Footprints::storage_bytes(StorageId storage) const {
  return by_block_ ? index_->rounded_bytes()[storage.index()]
                   : index_->trace().storages.bytes[storage.index()];
}

std::vector<FootprintSpan> Footprints::natural_spans(StorageId storage) const {
  const auto left = left_by_host_.find(storage);
  if (left != left_by_host_.end()) return left->second;
  const EventId alloc = index_->trace().storages.alloc_event[storage.index()];
  const EventId free = index_->trace().storages.free_event[storage.index()];
  // Bytes go with the action of the `free` event, so they are there ahead of it.
  return {{alloc.valid() ? 2 * alloc.value + 1 : 0, free.valid() ? 2 * free.value + 1 : positions_,
           storage_bytes(storage)}};
}

std::vector<FootprintSpan> Footprints::settled_spans(StorageId storage) const {
  const auto pinned = pinned_spans_.find(storage);
  return pinned != pinned_spans_.end() ? pinned->second : natural_spans(storage);
}

Bytes Footprints::natural_bytes_at(StorageId storage, std::int32_t position) const {
  Bytes bytes = 0;
  for (const FootprintSpan& span : settled_spans(storage)) {
    if (span.first <= position && position < span.last) bytes += span.bytes;
  }
  return bytes;
}

Bytes Footprints::buffer_bytes(Bytes bytes) const {
  return by_block_ ? simulator::block_bytes(bytes) : bytes;
}

Footprints::Footprints(const simulator::StepIndex& index, simulator::PeakKind kind,
                       const Allowed& allowed)
    : index_(&index),
      pinned_(allowed.pinned),
      by_block_(kind != simulator::PeakKind::requested && index.rounds()),
      counts_recompute_(allowed.recompute && index.trace().layer_tensors.size() > 0),
      positions_(static_cast<std::int32_t>(2 * index.event_count())) {
  unit_of_.assign(index.trace().storages.size(), -1);
  is_previous_.assign(index.trace().storages.size(), false);
  find_saved(allowed);
  if (pinned_ != nullptr) pinned_offloads_ = pinned_->offloads_in(index);
  streaming_layer_ = streaming_layers(index.trace());
  for (const std::vector<LayerId>& others :
       {streaming_layers_of_state(index.trace()), streaming_layers_of_gradients(index.trace())}) {
    for (std::size_t s = 0; s < others.size(); ++s) {
      if (others[s].valid()) streaming_layer_[s] = others[s];
    }
  }
  find_host_updates();
  find_model_state(Moves::parameters, allowed.parameters);
  find_model_state(Moves::optimizer_state, allowed.optimizer);
  find_model_state(Moves::gradients, allowed.gradients);
  for (Movable& movable : movable_) find_dominant(movable);
  const Trace& trace = index.trace();
  std::vector<Bytes> all(static_cast<std::size_t>(positions_) + 1, 0);
  std::vector<Bytes> fixed = all;
  std::vector<bool> is_movable = is_previous_;
  for (const Movable& movable : movable_) {
    for (const StorageId storage : movable.storages) is_movable[storage.index()] = true;
  }
  for (std::size_t s = 0; s < trace.storages.size(); ++s) {
    if (trace.storages.device[s] != 0) continue;
    for (const FootprintSpan& span : settled_spans(StorageId(s))) {
      add(all, span);
      if (!is_movable[s]) add(fixed, span);
    }
  }
  resident_ = summed(std::move(all));
  immovable_ = summed(std::move(fixed));
}

void Footprints::find_dominant(Movable& movable) {
  const std::vector<std::int32_t> points = movable.breakpoints();
  // In the order of options, which is that of Choice: of equals the simplest.
  for (const Option& option : movable.options) {
    const bool dominates =
        std::all_of(movable.options.begin(), movable.options.end(), [&](const Option& other) {
          return std::all_of(points.begin(), points.end(), [&](std::int32_t at) {
            return option.bytes_at(at) <= other.bytes_at(at);
          });
        });
    if (!dominates) continue;
    movable.dominant = static_cast<std::int32_t>(option.choice);
    return;
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
    // What cannot be treated so stays.
    const Option* option = movable_[m].option(choices[m]);
    if (option == nullptr) option = &movable_[m].options.front();
    for (const FootprintSpan& span : option->spans) add(delta, span);
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
      for (const Option& option : movable.options) {
        lowest = std::min(lowest, option.bytes_at(points[i]));
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
  static const simulator::StreamModes kModes(
      {StreamMode::forward, StreamMode::backward, StreamMode::always});  // as kStreamChoices
  const std::vector<StorageId>& all = state_of_.at({movable.what, movable.layer});
  if (movable.what == Moves::optimizer_state) {
    out.optimizer.state_streams.resize(index_->trace().storages.size(), false);
    for (const StorageId s : all) out.optimizer.state_streams[s.index()] = true;
    return;
  }
  if (movable.what == Moves::gradients) {
    out.gradients.at_home.resize(index_->trace().storages.size(), false);
    for (const StorageId s : all) out.gradients.at_home[s.index()] = true;
    return;
  }
  simulator::ParameterDecisions& parameters = out.parameters;
  parameters.stream = kModes;
  parameters.shard_of.resize(index_->trace().storages.size(), -1);
  const auto shard = static_cast<std::int32_t>(
      std::find(kStreamChoices.begin(), kStreamChoices.end(), choice) - kStreamChoices.begin());
  for (const StorageId s : all) parameters.shard_of[s.index()] = shard;
}

Decisions Footprints::decisions(const std::vector<Choice>& choices, simulator::ReleasePoint release,
                                simulator::ReloadPoint reload) const {
  Decisions out;
  out.saved.resize(index_->trace().saved.size());
  out.optimizer.updated_on_host = updated_on_host_;
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
  if (pinned_ == nullptr) return out;
  pin_layers(out);
  for (const auto& [saved, decision] : pinned_offloads_) out.saved[saved.index()] = decision;
  for (simulator::SavedDecision& decision : out.saved) {
    if (decision.decision != Decision::offload) continue;
    if (decision.release.kind == simulator::ReleasePoint::Kind::automatic) {
      decision.release = release;
    }
    if (decision.reload.kind == simulator::ReloadPoint::Kind::automatic) decision.reload = reload;
  }
  return out;
}

void Footprints::pin_layers(Decisions& out) const {
  for (const Moves what : {Moves::parameters, Moves::optimizer_state, Moves::gradients}) {
    for (const auto& [layer, storages] : state_of_) {
      const std::optional<Choice> pinned = pinned_choice(what, layer.second);
      if (layer.first != what || !pinned || *pinned == Choice::keep) continue;
      Movable of;
      of.what = what;
      of.layer = layer.second;
      add_layer(of, *pinned, out);
    }
  }
}

std::optional<Choice> Footprints::pinned_choice(Moves what, LayerId layer) const {
  return pinned_ != nullptr ? pinned_->of(what, layer) : std::nullopt;
}

Decisions Footprints::tight(const std::vector<Choice>& choices) const {
  simulator::ReleasePoint release;
  release.kind = simulator::ReleasePoint::Kind::pack;
  simulator::ReloadPoint reload;
  reload.kind = simulator::ReloadPoint::Kind::unpack;
  Decisions out = decisions(choices, release, reload);
  if (!out.parameters.stream.off() || !out.optimizer.state_streams.empty() ||
      !out.optimizer.updated_on_host.empty() || !out.gradients.at_home.empty()) {
    out.budget = 0;
  }
  return out;
}

}  // namespace stowage::planner
