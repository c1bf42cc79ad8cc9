// When the parameters that stream are on the device: their uses put together into stays, as shards
// and stream mode ask for.
//
// A *visit* is what one shard does in one phase. A storage that a layer of another shard uses too
// (a tied weight) takes part in that shard's visit with those uses, so that it can leave in
// between. In a visit each storage has one span, from its first touch to its last. Where no anchor
// lies between two spans they are one.
#pragma once

#include <vector>

#include "simulator/lowering/movement.h"
#include "simulator/plan/decisions.h"

namespace stowage::simulator {

class StepIndex;
struct LoweringNote;

// Of two neighbours in time, the first of the period following the last.
struct ParameterStays {
  std::vector<ParameterStay>
      stays;  // those of one storage together, in order; storages in order of rows
  std::vector<LoweringNote> notes;
};

// Notes: parameters of a shard that stay. Cost: O(touches log touches + layers * depth).
[[nodiscard]] ParameterStays parameter_stays(const StepIndex& index,
                                             const ParameterDecisions& decisions);

// Puts stays of one storage together where the next one starts before or where the last one ends,
// and removes those that never end, with a note. Stays without a start are left alone. True when
// something changed. Precondition: the order of ParameterStays::stays.
bool merge_touching(const StepIndex& index, ParameterStays& stays);

// The same for stays that a placement made of these, row by row: where those touch, these are put
// together, all else staying open to another placement.
bool merge_where_placed(const StepIndex& index, const std::vector<ParameterStay>& placed,
                        ParameterStays& stays);

}  // namespace stowage::simulator
