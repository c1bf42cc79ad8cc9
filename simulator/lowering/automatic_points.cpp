#include "simulator/lowering/automatic_points.h"

#include "simulator/lowering/automatic_evicts.h"
#include "simulator/lowering/automatic_loads.h"
#include "simulator/lowering/touching_stays.h"

namespace stowage::simulator {

void place_movement(const StepIndex& index, std::optional<Bytes> budget, Movement& movement) {
  constexpr int kMostRounds = 4;
  for (int round = 1;; ++round) {
    place_loads(index, budget, place_evicts(index, budget, movement), movement);
    if (round == kMostRounds) return merge_placed(index, movement);
    if (!merge_where_placed(index, movement)) return;
  }
}

}  // namespace stowage::simulator
