// Decisions that a search leaves alone: of a plan the ones that its rules name, resolved against
// one recording. What no rule names is searched for. They are the same in every structure of the
// step, so that saved tensors go by their site, and model state by the layer that it is decided
// about with (planner/streaming_layers.h).
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "planner/option.h"
#include "simulator/plan/decisions.h"
#include "simulator/plan/plan.h"
#include "simulator/step/step_index.h"
#include "simulator/step/structure.h"
#include "traces/result.h"

namespace stowage::planner {

class Pins {
 public:
  // Of the rules of `plan`, but for its micro-batches, which say which recording it is. Null where
  // they name nothing. Errors (bad_input, pointer into the plan): those of reading it against the
  // recording (simulator/step/plan_structure.h, resolve()); what cannot leave, or not be made
  // again; what the search never decides (copies off the lanes, `prefetch`, saved parameters that
  // leave); two decisions about one storage, or about what is decided about together. Cost: an
  // unroll(), a StepIndex, footprints, a lower().
  [[nodiscard]] static Result<std::shared_ptr<const Pins>> make(
      const simulator::StepIndex& recorded, const simulator::Plan& plan);

  // Saved storages, sites and segments that run again, and layers' parameters, state and gradients.
  [[nodiscard]] std::int64_t count() const;

  // What runs again and what the host updates; every structure has at least that.
  [[nodiscard]] const simulator::Structure& structure() const { return structure_; }
  // With all of that, each once.
  [[nodiscard]] simulator::Structure with_structure(simulator::Structure structure) const;
  [[nodiscard]] bool is_part_of(const simulator::Structure& structure) const;

  // Of a storage with saved tensors in any step of the recording, keep or offload; null: none. An
  // offload's automatic points are the search's to choose, others are kept.
  [[nodiscard]] const simulator::SavedDecision* of(const simulator::StepIndex& index,
                                                   StorageId storage) const;
  [[nodiscard]] bool names(const std::string& site) const { return saved_.count(site) > 0; }
  // Of the parameters, state or gradients that are decided about with this layer.
  [[nodiscard]] std::optional<Choice> of(Moves what, LayerId layer) const;
  [[nodiscard]] bool decides(Moves what) const;
  // Some saved tensor leaves.
  [[nodiscard]] bool offloads() const;
  // All that they name stays.
  [[nodiscard]] bool moves_nothing() const;
  // The host updates the parameters that are decided about with this layer.
  [[nodiscard]] bool updates_on_host(LayerId layer) const { return on_host_.count(layer) > 0; }
  // The device has to. Parameters outside of all layers (none) no pin is about.
  [[nodiscard]] bool updates_on_device(LayerId layer) const {
    return of(Moves::optimizer_state, layer).has_value();
  }

  // Every saved tensor that they name is there to be kept or offloaded.
  [[nodiscard]] bool can_hold_in(const simulator::StepIndex& index) const;
  // Of all saved tensors of the storages that are pinned to leave. Cost: O(saved log saved).
  [[nodiscard]] std::vector<std::pair<SavedId, simulator::SavedDecision>> offloads_in(
      const simulator::StepIndex& index) const;
  // Makes the decisions about saved tensors what they are here. False where that, or what else is
  // decided, cannot be as they say.
  [[nodiscard]] bool hold_in(const simulator::StepIndex& index,
                             simulator::Decisions& decisions) const;

  // Those alone that something stays: a bound for all plans with these holds for all with all.
  [[nodiscard]] std::shared_ptr<const Pins> that_keep() const;

  // One tensor or layer that both decide about, differently: its name; empty: none.
  [[nodiscard]] std::string conflict_with(const Pins& other, const Trace& recording) const;

 private:
  class Maker;
  // With a saved tensor that is named.
  [[nodiscard]] std::set<StorageId> storages_in(const simulator::StepIndex& index) const;
  using Layer = std::pair<Moves, LayerId>;

  std::map<std::string, simulator::SavedDecision> saved_;  // by site, keep or offload
  std::set<std::string> made_again_;                       // sites that the structure gives up
  std::map<Layer, Choice> layers_;
  std::map<LayerId, bool> on_host_;  // layers whose updates are on the host
  simulator::Structure structure_;
  std::int64_t storages_ = 0;  // that saved_ is about
};

// The rules of all of these, in order.
[[nodiscard]] simulator::Plan joined_rules(const std::vector<simulator::Plan>& plans);

}  // namespace stowage::planner
