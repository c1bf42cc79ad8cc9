// Plans in which the host updates some layers' parameters and the device the others': a link that
// is busy with state has less of it then, and the host no more than it can do meanwhile.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "planner/best_plan.h"
#include "planner/climber.h"
#include "planner/planner.h"
#include "planner/structure_search.h"
#include "simulator/step/step_index.h"
#include "simulator/step/structure.h"
#include "traces/ids.h"
#include "traces/units.h"

namespace stowage::planner {

class MixedUpdates {
 public:
  // `updated`: all that the host would update (UpdatesOnHost). Null where that are not two layers
  // that nothing is pinned about. All must outlive it. Cost: O(trace).
  [[nodiscard]] static std::unique_ptr<MixedUpdates> make(const simulator::StepIndex& recorded,
                                                          const std::vector<StorageId>& updated,
                                                          const PlanRequest& request,
                                                          BestPlan& best);

  // The best that is known with all updates on the device, and with all on the host, for the budget
  // asked for; and what no such plan is shorter than.
  struct Ends {
    Climb device;
    Climb host;
    Nanoseconds least_on_device = 0;
    Nanoseconds least_on_host = 0;
    [[nodiscard]] const Climb& faster() const;
  };

  // Offers the best plans for that budget. In the structure of the
  // faster one: with so much on the host that link and host might be done at once, and with more
  // and less, of layers that take turns and of those whose gradients come first; from the best of
  // these to more and less of it. Each is searched from the host's choices for the layers that it
  // updates and the device's for the others. No plan is shorter than `least`, which ends it. Cost:
  // kMostLooks structures, and eight searches.
  void solve(const Ends& ends, Nanoseconds least);

  static constexpr std::size_t kMostLooks = 24;

 private:
  struct Layer {
    LayerId layer;
    std::vector<StorageId> parameters;
    Bytes bytes = 0;
    std::size_t arrival = 0;  // of its last gradient, an event
  };
  using OnHost = std::vector<bool>;  // by layer
  static constexpr std::int64_t kParts = 64;
  struct Share {
    std::int64_t parts = 0;  // of kParts, by bytes
    bool in_turns = false;   // else those whose gradients come first
  };
  struct Look {
    Share share;
    OnHost on_host;
    std::unique_ptr<StructureSearch> search{};  // null: it cannot be had
    std::optional<Solution> found{};
  };
  struct Looks {
    std::vector<OnHost> seen;
    std::vector<Look> found;  // the best first
  };

  MixedUpdates(std::vector<Layer> layers, std::vector<StorageId> always,
               const simulator::StepIndex& recorded, const PlanRequest& request, BestPlan& best);

  [[nodiscard]] OnHost on_host(const Share& share) const;
  [[nodiscard]] std::int64_t balanced(const Ends& ends) const;
  [[nodiscard]] simulator::Structure with(const OnHost& on_host, simulator::Structure as) const;
  [[nodiscard]] std::vector<Choice> choices(const StructureSearch& in, const OnHost& on_host,
                                            const Ends& ends) const;
  // At those that were not looked at yet.
  void look_at(const std::vector<Share>& shares, const Ends& ends, Nanoseconds least, Looks& all);
  void look(Look& look, const Ends& ends, Nanoseconds least) const;

  const std::vector<Layer> layers_;      // in order of arrival
  const std::vector<StorageId> always_;  // what is pinned to the host
  const simulator::StepIndex& recorded_;
  const PlanRequest& request_;
  BestPlan& best_;
  std::vector<std::unique_ptr<StructureSearch>> searches_;  // that offered something
};

}  // namespace stowage::planner
