// Which layers of a chain run again within a budget, with the least work.
//
// A chain of layers runs forward 0..n-1 and backward n-1..0, each layer either keeps what it saves
// or runs again once. What a layer that runs again frees is away from behind its forward to its
// backward; so while a layer runs, forward or backward, exactly what earlier layers freed is away,
// and there is a least number of bytes that these must have freed. The set of the least work that
// frees enough ahead of every layer is a knapsack with one bound a layer: a dynamic programme over
// the layers in order, whose states are bytes freed, work, and whether the layer before runs again
// (what it returns is kept for a next one that does, too). Persistent schedules of Beaumont,
// Eyraud-Dubois, Herrmann, Joly, Shilova, "Optimal checkpointing for heterogeneous chains: how to
// train deep neural networks with limited memory" (2019; rotor), restricted to running again once.
//
// What layers free and need is measured, in the step in which one runs again alone and in that with
// the one before it. The set is then replayed: while its peak is above the budget, it is chosen for
// that much less.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "planner/policy.h"
#include "simulator/plan/plan.h"
#include "simulator/step/step_index.h"
#include "traces/result.h"
#include "traces/units.h"

namespace stowage::planner {

// One layer of a chain, in the numbers that its choice hangs on. Bytes are of the whole device.
struct ChainLayer {
  Nanoseconds work = 0;  // of its run
  Bytes freed = 0;       // while later layers run
  Bytes freed_with = 0;  // change of that when the layer before runs again too
  Bytes peak_kept = 0;   // while it runs, forward or backward, when it keeps, nothing else freed
  Bytes peak_again = 0;  // likewise when it runs again
};

// By layer: it runs again. None: no set keeps the peaks, and `peak_behind`, that behind the last
// layer, within the budget. Exact while no more than 2,000 states are kept a layer (bytes freed and
// work, neither of which is better), else within 1/2,000 of all bytes for each layer.
// Cost: O(layers * states).
[[nodiscard]] std::optional<std::vector<bool>> least_work(const std::vector<ChainLayer>& layers,
                                                          Bytes peak_behind, Bytes budget);

// The layers, in order of forward, that run again with the least work such that the peak of the
// step keeps the budget; all of them where none is found that does. Errors: those of unroll().
// Cost: an unroll() for each layer and each pair in a row, and up to 40 with a replay().
[[nodiscard]] Result<std::vector<std::string>> layers_that_run_again(
    const simulator::StepIndex& recorded, const std::vector<std::string>& layers,
    const PolicyBudget& budget);

}  // namespace stowage::planner
