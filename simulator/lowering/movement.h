// What moves and where it leaves and returns, while a lowering works it out: build_schedule() makes
// tenants and stays of it.
#pragma once

#include <cstdint>
#include <limits>
#include <vector>

#include "simulator/plan/plan.h"
#include "simulator/step/anchor.h"
#include "traces/ids.h"
#include "traces/units.h"

namespace stowage::simulator {

// One copy out of one storage's byte range.
struct Offload {
  StorageId storage;
  std::vector<SavedId> saved;  // the saved tensors that this copy serves, in pack order
  Bytes begin = 0;             // first byte of the storage that is copied
  Bytes bytes = 0;             // length; 0 only for saved views without elements
  CopyMode copy_out = CopyMode::lane;
};

// One copy back, for these unpacks, in order.
struct Reload {
  std::size_t offload = 0;  // row of Movement::offloads
  std::vector<UnpackId> unpacks;
  CopyMode copy_in = CopyMode::lane;
};

// Places counted through the period and on over its ends: twice the event, plus one for `after`;
// the period before has negative positions.
using PeriodPosition = std::int64_t;
inline constexpr PeriodPosition kNoPosition = std::numeric_limits<PeriodPosition>::min();

[[nodiscard]] constexpr PeriodPosition position_of(Place place) {
  return PeriodPosition{2} * place.event.value + (place.side == Side::after ? 1 : 0);
}
[[nodiscard]] constexpr PeriodPosition period_of(std::size_t events) {
  return 2 * static_cast<PeriodPosition>(events);
}
[[nodiscard]] Place place_at(PeriodPosition position, PeriodPosition period);

// One stay of a parameter. `await` is in [0, period); start <= await < evict < start + period;
// `store` is behind the last write and not behind `evict`.
struct ParameterStay {
  StorageId storage;
  Bytes bytes = 0;
  PeriodPosition start = kNoPosition;  // none: left to the automatic placement
  PeriodPosition await = 0;
  PeriodPosition store = kNoPosition;  // none: nothing is written
  PeriodPosition evict = 0;            // behind the last touch; a placement may put it later
};

// Offloads in order of their first pack with `release[i]` of offloads[i], reloads in order of their
// first unpack with `start_reload[i]` of reloads[i]; the stays of streamed parameters on the device
// in any order, those of one parameter apart from each other.
struct Movement {
  std::vector<Offload> offloads;
  std::vector<Reload> reloads;
  std::vector<Place> release;
  std::vector<Place> start_reload;
  std::vector<ParameterStay> stays;
};

}  // namespace stowage::simulator
