// What a plan can move, with the options for it. The footprint of an option is the device bytes
// that it holds over the step when it is tight (planner/option.h): bounds are made of footprints,
// and the plan with `pack` and `unpack` as its points, parameters loaded on demand, holds exactly
// these.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "planner/allowed.h"
#include "planner/option.h"
#include "simulator/lowering/model_state_stays.h"
#include "simulator/lowering/movement.h"
#include "simulator/plan/decisions.h"
#include "simulator/step/step_index.h"
#include "traces/units.h"

namespace stowage::planner {

// What is decided about together: a storage of this step with at least one saved tensor that can be
// offloaded, or the parameters of one layer that can stream, or the optimizer's state or the
// gradients of these.
struct Movable {
  Moves what = Moves::saved_tensor;
  std::vector<StorageId> storages;  // one, or those of a layer and the layers inside
  // Whose parameters, state or gradients they are (streaming_layers.h); none: saved tensors.
  LayerId layer;
  std::vector<Option> options;  // `keep` first
  // When it can leave: its first pack; the end of the parameters' last use in forward; the step's
  // begin for the optimizer's state and for gradients.
  EventId leaves;
  // A choice with at most as many bytes as every other one at every position, if there is one.
  std::int32_t dominant = -1;

  [[nodiscard]] bool is_layer() const { return layer.valid(); }
  [[nodiscard]] const Option* option(Choice choice) const { return find(options, choice); }
  [[nodiscard]] bool allows(Choice choice) const { return option(choice) != nullptr; }

  [[nodiscard]] Bytes bytes_at(Choice choice, std::int32_t position) const {
    const Option* const of = option(choice);
    return of != nullptr ? of->bytes_at(position) : 0;
  }
  // Positions at which any choice's bytes change, in order, each once.
  [[nodiscard]] std::vector<std::int32_t> breakpoints() const;
  // The copies back in the order of their uses, of the option with the most of them. Of a layer one
  // that stands for all, which only ranks them: each parameter and each piece of state has uses of
  // its own (Footprints::units()), and bounds go by those.
  [[nodiscard]] const std::vector<OptionCopy>& returns() const;
  // Bytes that go over the link each way where it is copied as a whole.
  [[nodiscard]] Bytes range() const;
};

// What a transfer moves at least: a storage with saved tensors, one parameter, one piece of
// optimizer state or one gradient, whatever else is decided about with it. Its options, `keep`
// first; of a gradient those hold also what the step before left, which goes with it.
struct MovedUnit {
  StorageId storage;
  std::vector<Option> options;
};

class Footprints {
 public:
  // Counts the bytes that estimate() counts for `kind`: requested, else the smallest blocks that
  // can hold them (active bytes are at least that, reserved ones at least the active ones). Cost:
  // O(events + saved log saved).
  explicit Footprints(const simulator::StepIndex& index,
                      simulator::PeakKind kind = simulator::PeakKind::requested)
      : Footprints(index, kind, {.recompute = false}) {}
  // Of a step some of whose parameters the host updates (Structure::host_updates), `keep` is what
  // that leaves on the device; nothing else is decided of the optimizer state of their layers.
  // Has options for what is allowed alone. What is pinned is no movable: with everything kept it is
  // as the pins say, with the fewest bytes that this can hold. With `recompute`, of a step as it
  // was recorded: also `again`, for all that a segment of it may save; such footprints are for
  // bounds, and hold for every structure.
  Footprints(const simulator::StepIndex& index, simulator::PeakKind kind, const Allowed& allowed);

  [[nodiscard]] const simulator::StepIndex& index() const { return *index_; }
  [[nodiscard]] const std::vector<Movable>& movable() const { return movable_; }
  // They have `again`: bounds of them hold for every structure.
  [[nodiscard]] bool counts_recompute() const { return counts_recompute_; }
  [[nodiscard]] std::int32_t positions() const { return positions_; }
  // Bytes at each position with everything kept that can move.
  [[nodiscard]] const std::vector<Bytes>& resident() const { return resident_; }
  // What a storage and a reload buffer count as.
  [[nodiscard]] Bytes storage_bytes(StorageId storage) const;
  // What it holds at a position where no option says otherwise.
  [[nodiscard]] Bytes natural_bytes_at(StorageId storage, std::int32_t position) const;
  [[nodiscard]] Bytes buffer_bytes(Bytes bytes) const;

  // Positions at which any footprint changes, in order, 0 among them. Up to the next one choices
  // differ by the same bytes everywhere.
  [[nodiscard]] std::vector<std::int32_t> segment_starts() const;

  // Bytes at each position with these choices, one per movable; O(positions + spans).
  [[nodiscard]] std::vector<Bytes> curve(const std::vector<Choice>& choices) const;
  // The smallest bytes of any choice, storage by storage, at each position.
  [[nodiscard]] std::vector<Bytes> lowest_curve() const;

  // Of everything that can move, in order of movables.
  [[nodiscard]] const std::vector<MovedUnit>& units() const { return units_; }
  // Of a parameter, piece of optimizer state or gradient that can leave.
  [[nodiscard]] const MovedUnit& unit_of(StorageId storage) const {
    return units_[static_cast<std::size_t>(unit_of_[storage.index()])];
  }

  // It is the gradient that the step before left of one that can leave: part of that one's unit.
  [[nodiscard]] bool is_previous(StorageId storage) const { return is_previous_[storage.index()]; }

  // As decisions: offloaded storages with these points, copies on the lanes. What streams is loaded
  // automatically; parameters of one mode are one shard.
  [[nodiscard]] simulator::Decisions decisions(const std::vector<Choice>& choices,
                                               simulator::ReleasePoint release,
                                               simulator::ReloadPoint reload) const;
  // `pack` and `unpack`, and a budget of 0 for the automatic loads, which are on demand then: holds
  // curve(choices).
  [[nodiscard]] simulator::Decisions tight(const std::vector<Choice>& choices) const;

 private:
  void find_saved(const Allowed& allowed);
  void find_host_updates();
  void pin_layers(simulator::Decisions& out) const;
  [[nodiscard]] std::optional<Choice> pinned_choice(Moves what, LayerId layer) const;
  [[nodiscard]] bool is_on_host(StorageId storage) const {
    return !updated_on_host_.empty() && updated_on_host_[storage.index()];
  }
  // While it is there, without what the host's updates keep away.
  [[nodiscard]] std::vector<FootprintSpan> natural_spans(StorageId storage) const;
  // Where no option says otherwise.
  [[nodiscard]] std::vector<FootprintSpan> settled_spans(StorageId storage) const;
  void find_model_state(Moves what, bool is_allowed);
  void pin_stay(const simulator::PlacedStay& stay, StorageId storage);
  std::vector<FootprintSpan> kept_spans(StorageId storage);
  void find_dominant(Movable& movable);
  void add_layer(const Movable& movable, Choice choice, simulator::Decisions& out) const;
  void add_streaming(Moves what, Choice choice);
  [[nodiscard]] simulator::Movement stays_of(const std::vector<bool>& streams, Moves what,
                                             Choice choice) const;
  [[nodiscard]] std::vector<FootprintSpan> spans_of(const simulator::PlacedStay& stay,
                                                    StorageId storage) const;
  void add_layer_option(Movable& movable, Choice choice, const simulator::Movement& movement) const;

  const simulator::StepIndex* index_;
  std::shared_ptr<const Pins> pinned_;
  // Of what is pinned to leave, by storage.
  std::map<StorageId, std::vector<FootprintSpan>> pinned_spans_;
  std::vector<std::pair<SavedId, simulator::SavedDecision>> pinned_offloads_;
  bool by_block_;
  bool counts_recompute_;
  std::int32_t positions_;
  std::vector<Movable> movable_;
  std::vector<LayerId> streaming_layer_;  // by storage, of parameters, state and gradients
  std::vector<bool> is_previous_;         // by storage
  std::vector<bool> updated_on_host_;     // by storage, parameters; empty: none
  simulator::HostUpdatePlaces updates_;
  // What the host's updates leave of such a parameter, its gradients and its state.
  std::map<StorageId, std::vector<FootprintSpan>> left_by_host_;
  // All of each such layer, what has to stay included.
  std::map<std::pair<Moves, LayerId>, std::vector<StorageId>> state_of_;
  std::vector<MovedUnit> units_;
  std::vector<std::int32_t> unit_of_;  // by storage, -1 = none
  std::vector<Bytes> resident_;
  std::vector<Bytes> immovable_;
};

}  // namespace stowage::planner
