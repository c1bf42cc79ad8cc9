#include "simulator/lowering/skipped_update.h"

#include <algorithm>
#include <string>
#include <utility>

#include "simulator/schedule/schedule_index.h"
#include "simulator/schedule/tenant_kind.h"
#include "simulator/step/kept_rows.h"
#include "simulator/step/recomputed_step.h"
#include "simulator/step/unroll.h"

namespace stowage::simulator {
namespace {

// Row of the first instruction at this event or behind it.
std::int32_t first_row_at(const Schedule& schedule, EventId event) {
  const auto& list = schedule.instructions;
  const auto at = std::lower_bound(
      list.begin(), list.end(), event,
      [](const Instruction& each, EventId wanted) { return each.anchor.event < wanted; });
  return static_cast<std::int32_t>(at - list.begin());
}

class UpdateSkipper {
 public:
  // `renamed`: the schedule, its tenants' storages those of the step without its update.
  UpdateSkipper(const StepIndex& taken, const Schedule& schedule, const StepIndex& skipped,
                const Schedule& renamed, const KeptRows& rows)
      : skipped_(skipped),
        rows_(rows),
        taken_(taken, schedule),
        without_(skipped, renamed),
        first_(first_row_at(schedule, rows.section().first)),
        behind_(first_row_at(schedule, rows.section().end)),
        out_(renamed) {}

  Schedule run() && {
    for (std::size_t i = 0; i < out_.stays.size(); ++i) decide(StayId(i));
    out_.instructions.resize(static_cast<std::size_t>(first_));
    add_tail();
    add_behind();
    return std::move(out_);
  }

 private:
  [[nodiscard]] const Instruction& instruction(std::int32_t row) const {
    return taken_.schedule().instructions[static_cast<std::size_t>(row)];
  }
  [[nodiscard]] bool in_section(std::int32_t row) const { return first_ <= row && row < behind_; }

  void decide(StayId id) {
    Stay& stay = out_.stays[id.index()];
    const std::int32_t load = taken_.row_of(id, Action::load);
    const std::int32_t evict = taken_.row_of(id, Action::evict);
    stay.is_left_out = in_section(load) && !stay.wraps && !is_used_behind(id, evict);
    if (stay.is_left_out) {
      stay.is_stored = false;
    } else if (stay.is_stored && taken_.row_of(id, Action::store) >= first_) {
      stay.is_stored = carries_more_than_the_update(id);
    }
  }

  // Ahead of its evict, in the step without the update.
  [[nodiscard]] bool is_used_behind(StayId id, std::int32_t evict) {
    if (in_section(evict)) return false;
    const Anchor& anchor = instruction(evict).anchor;
    const Place end{rows_.event(anchor.event), anchor.side};
    list_uses(without_, id);
    return std::any_of(uses_.begin(), uses_.end(), [&](const TenantUse& use) {
      return rows_.behind() <= use.begin && Place{use.begin, Side::before} < end &&
             (!use.stay.valid() || use.stay == id);
    });
  }

  // Whether the store may take bytes that are newer than the home's in a step without the update:
  // of this step, or of an update at the end of the one before.
  [[nodiscard]] bool carries_more_than_the_update(StayId id) {
    if (out_.stays[id.index()].is_made) return true;
    const std::int32_t load = taken_.row_of(id, Action::load);
    const std::int32_t store = taken_.row_of(id, Action::store);
    if (in_section(load) && load < store && in_section(store)) return false;
    const auto writes = [](const TenantUse& use) { return use.writes; };
    list_uses(without_, id);
    if (std::any_of(uses_.begin(), uses_.end(), writes)) return true;
    if (load < store) return false;
    const Place loaded = taken_.place_of(load);
    list_uses(taken_, id);
    return std::any_of(uses_.begin(), uses_.end(), [&](const TenantUse& use) {
      return use.writes && loaded < Place{use.end, Side::after};
    });
  }

  // All uses of the stay's tenant, into uses_.
  void list_uses(const ScheduleIndex& index, StayId id) {
    uses_.clear();
    const Schedule& schedule = index.schedule();
    schedule.tenant(id).kind->list_uses(index, schedule.stays[id.index()].tenant, uses_);
  }

  [[nodiscard]] bool is_wanted(const Instruction& each) const {
    const Stay& stay = out_.stays[each.stay.index()];
    return !stay.is_left_out && (each.action != Action::store || stay.is_stored);
  }

  // An await is of the load that is under way when the section begins, or of one in the section.
  [[nodiscard]] int rank_of(std::int32_t row) const {
    const Instruction& each = instruction(row);
    switch (each.action) {
      case Action::store:
        return 1;
      case Action::evict:
        return 2;
      case Action::load:
        return 3;
      case Action::await:
        break;
      case Action::update:
        STOWAGE_ASSERT(false && "skip_update() refuses such a schedule");
    }
    const std::int32_t load = taken_.row_of(each.stay, Action::load);
    return in_section(load) && load < row ? 4 : 0;
  }

  void add_tail() {
    std::vector<std::pair<int, std::int32_t>> tail;  // rank, row
    for (std::int32_t row = first_; row < behind_; ++row) {
      if (is_wanted(instruction(row))) tail.emplace_back(rank_of(row), row);
    }
    std::sort(tail.begin(), tail.end());
    const Anchor anchor = skipped_.anchor_at(skipped_.next_anchor(rows_.behind()), Side::before);
    for (const auto& [rank, row] : tail) {
      Instruction moved = instruction(row);
      moved.anchor = anchor;
      out_.instructions.push_back(moved);
    }
  }

  void add_behind() {
    const auto end = static_cast<std::int32_t>(taken_.schedule().instructions.size());
    for (std::int32_t row = behind_; row < end; ++row) {
      if (!is_wanted(instruction(row))) continue;
      Instruction kept = instruction(row);
      kept.anchor = skipped_.anchor_at(rows_.event(kept.anchor.event), kept.anchor.side);
      out_.instructions.push_back(kept);
    }
  }

  const StepIndex& skipped_;
  const KeptRows& rows_;
  const ScheduleIndex taken_;
  const ScheduleIndex without_;  // the same schedule on the step without the update
  const std::int32_t first_;     // rows of instructions of the section: [first_, behind_)
  const std::int32_t behind_;
  std::vector<TenantUse> uses_;
  Schedule out_;
};

}  // namespace

Result<Schedule> leave_out_update(const StepIndex& taken, const Schedule& schedule,
                                  const StepIndex& skipped) {
  Result<KeptRows> rows = KeptRows::find(taken.trace(), skipped.trace());
  if (!rows) return std::move(rows).error();
  Schedule renamed = schedule;
  for (std::size_t t = 0; t < schedule.tenants.size(); ++t) {
    StorageId& storage = renamed.tenants[t].storage;
    storage = rows->storage(storage);
    if (StorageId& previous = renamed.tenants[t].previous; previous.valid()) {
      previous = rows->storage(previous);
    }
    if (storage.valid()) continue;
    return Error{ErrorCode::bad_input,
                 label(taken.trace(), schedule, TenantId(t)) +
                     " is made in the update, so a step cannot skip it",
                 "", "", ""};
  }
  return UpdateSkipper(taken, schedule, skipped, renamed, *rows).run();
}

Result<SkippedUpdate> skip_update(const StepIndex& taken, const Schedule& schedule,
                                  Structure structure, const std::vector<StepTemplate>& templates) {
  for (const Instruction& each : schedule.instructions) {
    if (each.action != Action::update) continue;
    return Error{ErrorCode::bad_input,
                 "the host updates parameters as their gradients arrive, so a step cannot skip it",
                 "", "", ""};
  }
  structure.update = false;
  // What runs again does so in both.
  const bool runs_again = !taken.step().segments().empty();
  if (runs_again) {
    structure.recompute.clear();
    structure.ops.clear();
  }
  Result<Step> step =
      unroll(runs_again ? taken.trace() : taken.step().recording(), structure, templates);
  if (!step) return std::move(step).error();
  const Result<UpdateSection> section = update_section(taken.trace());
  STOWAGE_ASSERT(section.ok());
  if (runs_again) {  // ahead of the update rows have the same numbers
    for (const SegmentRows& segment : taken.step().segments()) {
      STOWAGE_ASSERT(segment.run_end < section->first);
    }
    step = step->with_segments(taken.step().segments());
  }
  Result<Schedule> without = leave_out_update(taken, schedule, StepIndex(*step));
  if (!without) return std::move(without).error();
  const std::int32_t shared = first_row_at(schedule, section->first);
  return SkippedUpdate{std::move(step).value(), std::move(without).value(),
                       static_cast<std::size_t>(shared)};
}

}  // namespace stowage::simulator
