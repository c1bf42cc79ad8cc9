#include "tests/support/schedule_damage.h"

#include <algorithm>
#include <utility>

#include "tests/support/schedule_parts.h"

namespace stowage::testing {

using simulator::CopyMode;
using simulator::Instruction;
using simulator::Place;
using simulator::Schedule;
using simulator::Side;
using simulator::Stay;

ScheduleDamage::ScheduleDamage(const simulator::StepIndex& index, Schedule schedule,
                               std::uint64_t seed)
    : index_(index), s_(std::move(schedule)), engine_(seed * 31 + 5) {}

Schedule ScheduleDamage::run() && {
  const int times = below(3) + 1;
  for (int i = 0; i < times; ++i) once(5);
  return std::move(s_);
}

Schedule ScheduleDamage::run_on_all() && {
  const int times = below(3) + 1;
  for (int i = 0; i < times; ++i) once(9);
  return std::move(s_);
}

void ScheduleDamage::once(int kinds) {
  if (s_.instructions.empty()) return;
  const auto at = static_cast<std::size_t>(below(s_.instructions.size()));
  const int what = below(static_cast<std::size_t>(kinds));
  if (what < 3) {
    leave_out_or_change(what, at);
  } else if (kinds > 5 && what < 7) {
    change_any(what);
  } else {
    move(at);
  }
}

void ScheduleDamage::leave_out_or_change(int what, std::size_t at) {
  if (what == 0) {
    s_.instructions.erase(s_.instructions.begin() + static_cast<long>(at));
  } else if (what == 1) {
    const auto made = made_stays(s_);
    if (made.empty()) return;
    const StayId stay = made[static_cast<std::size_t>(below(made.size()))];
    s_.tenants[s_.stays[stay.index()].tenant.index()].host_offset =
        below(static_cast<std::size_t>(s_.host_bytes / 512 + 1)) * 512;
  } else {
    const auto loaded = reloads(s_);
    if (loaded.empty()) return;
    Stay& stay = s_.stays[loaded[static_cast<std::size_t>(below(loaded.size()))].index()];
    stay.load_mode = static_cast<CopyMode>(below(3));
  }
}

void ScheduleDamage::change_any(int what) {
  Stay& stay = s_.stays[static_cast<std::size_t>(below(s_.stays.size()))];
  if (what == 3) stay.load_mode = static_cast<CopyMode>(below(3));
  if (what == 4) stay.store_mode = static_cast<CopyMode>(below(3));
  if (what == 5) stay.is_stored = !stay.is_stored;
  if (what != 6) return;
  s_.tenants[stay.tenant.index()].host_offset =
      below(static_cast<std::size_t>(s_.host_bytes / 512 + 1)) * 512;
}

// To another anchor, in order.
void ScheduleDamage::move(std::size_t at) {
  const EventId event = index_.next_anchor(EventId(below(index_.event_count())));
  move_instruction(index_, s_, at, {event, below(2) == 0 ? Side::before : Side::after});
}

void move_instruction(const simulator::StepIndex& index, Schedule& schedule, std::size_t row,
                      Place place) {
  auto& list = schedule.instructions;
  Instruction moved = list[row];
  list.erase(list.begin() + static_cast<long>(row));
  moved.anchor = index.anchor_at(place.event, place.side);
  const auto to = std::find_if(list.begin(), list.end(), [&](const Instruction& other) {
    return place < Place{other.anchor.event, other.anchor.side};
  });
  list.insert(to, moved);
}

}  // namespace stowage::testing
