// When the parameters that stream are on the device: their uses put together into stays, as shards
// and stream mode ask for.
//
// A *visit* is what one shard does in one phase. A storage that a layer of another shard uses too
// (a tied weight) takes part in that shard's visit with those uses, so that it can leave in
// between. In a visit each storage has one span, from its first touch to its last. Where no anchor
// lies between two spans they are one.
#pragma once

#include <cstdint>
#include <limits>
#include <vector>

#include "simulator/plan/decisions.h"
#include "simulator/schedule/schedule.h"

namespace stowage::simulator {

class StepIndex;
struct LoweringNote;

// Places counted through the period and on over its ends: twice the event, plus one for `after`;
// the period before has negative positions.
using Position = std::int64_t;
inline constexpr Position kNoPosition = std::numeric_limits<Position>::min();

[[nodiscard]] constexpr Position position_of(Place place) {
  return Position{2} * place.event.value + (place.side == Side::after ? 1 : 0);
}
[[nodiscard]] constexpr Position period_of(std::size_t events) {
  return 2 * static_cast<Position>(events);
}
[[nodiscard]] Place place_at(Position position, Position period);

// One stay on the device. `await` is in [0, period); start <= await < evict < start + period;
// `store` is behind the last write and not behind `evict`.
struct Stay {
  StorageId storage;
  Bytes bytes = 0;
  Position start = kNoPosition;  // none: left to the automatic placement
  Position await = 0;
  Position store = kNoPosition;  // none: nothing is written
  Position evict = 0;            // behind the last touch; a placement may put it later
};

// Of two neighbours in time, the first of the period following the last.
struct Stays {
  std::vector<Stay> stays;  // those of one storage together, in order; storages in order of rows
  std::vector<LoweringNote> notes;
};

// Notes: parameters of a shard that stay. Cost: O(touches log touches + layers * depth).
[[nodiscard]] Stays parameter_stays(const StepIndex& index, const ParameterDecisions& decisions);

// Puts stays of one storage together where the next one starts before or where the last one ends,
// and removes those that never end, with a note. Stays without a start are left alone. True when
// something changed. Precondition: the order of Stays::stays.
bool merge_touching(const StepIndex& index, Stays& stays);

// The same for stays that a placement made of these, row by row: where those touch, these are put
// together, all else staying open to another placement.
bool merge_where_placed(const StepIndex& index, const std::vector<Stay>& placed, Stays& stays);

}  // namespace stowage::simulator
