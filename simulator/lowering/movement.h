// What moves, while a lowering works it out: the tenants and stays of a schedule, and where the
// actions of each stay stand or may stand. Who makes it says what is fixed; place_movement()
// chooses the rest; build_schedule() makes a Schedule of it.
#pragma once

#include <cstdint>
#include <limits>
#include <vector>

#include "simulator/lowering/lowering.h"
#include "simulator/schedule/schedule.h"
#include "simulator/step/anchor.h"

namespace stowage::simulator {

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
// Of a position in this period, the one before or the one behind.
[[nodiscard]] constexpr PeriodPosition inside(PeriodPosition position, PeriodPosition period) {
  if (position < 0) return position + period;
  return position < period ? position : position - period;
}
[[nodiscard]] constexpr Place place_at(PeriodPosition position, PeriodPosition period) {
  const auto at = static_cast<std::uint64_t>(inside(position, period));
  return {EventId(std::size_t{at / 2}), at % 2 == 0 ? Side::before : Side::after};
}

// A stay and the places of its actions. A made one has neither load nor await, and its store is in
// [0, period). Of a loaded one `await` is in [0, period), and load <= await < store <= evict <
// load + period. `is_stored` and `wraps` are not filled in: the places say it.
struct PlacedStay : Stay {
  // none: open. One that serves unpacks and lies ahead of the made stay's evict is moved behind it.
  PeriodPosition wanted_load = kNoPosition;
  PeriodPosition await = kNoPosition;
  PeriodPosition store = kNoPosition;  // none: nothing is stored, and the evict is fixed
  PeriodPosition earliest_evict = 0;
  PeriodPosition latest_evict = 0;  // the same: fixed
  // Of a gradient's stay, behind its store: where the host's update of the parameter may start.
  // Of the parameter's last stay, not ahead of its evict: the same place; its home has other bytes
  // behind it, so that the next stay begins there at the earliest and is another one.
  PeriodPosition update = kNoPosition;
  // What a placement chose.
  PeriodPosition load = kNoPosition;
  PeriodPosition evict = 0;

  [[nodiscard]] bool has_store() const { return store != kNoPosition; }
  // Stays of one tenant that serve unpacks may overlap; they follow the made one. Those that serve
  // none follow each other, the first one of the next period the last.
  [[nodiscard]] bool serves_unpacks() const { return !unpacks.empty(); }
  // Its load stands where it is wanted wherever the stay ahead may end: it bounds that one.
  [[nodiscard]] bool has_fixed_load() const {
    return wanted_load != kNoPosition && !serves_unpacks();
  }
};

// Tenants of one kind are neighbours. So are the stays of one tenant that serve no unpacks, in
// order of time, a made one first.
struct Movement {
  std::vector<Tenant> tenants;  // without `host_offset`
  std::vector<PlacedStay> stays;
  std::vector<LoweringNote> notes;
};

// Of stays that serve no unpacks. Whether the one in `row` follows the one in the row ahead of it:
// both are of one tenant.
[[nodiscard]] inline bool follows(const std::vector<PlacedStay>& stays, std::size_t row) {
  return row > 0 && stays[row].tenant == stays[row - 1].tenant && !stays[row].serves_unpacks() &&
         !stays[row - 1].serves_unpacks();
}

// The one behind a stay, `later` (0 or a period) in time; itself when its tenant has no other one.
struct NextStay {
  std::size_t row = 0;
  PeriodPosition later = 0;
};
[[nodiscard]] inline NextStay next_stay(const std::vector<PlacedStay>& stays, std::size_t row,
                                        PeriodPosition period) {
  if (row + 1 < stays.size() && follows(stays, row + 1)) return {row + 1, 0};
  while (follows(stays, row)) --row;
  return {row, period};
}

}  // namespace stowage::simulator
