// A schedule's rows looked up from the other side. Refers to both, which must outlive it.
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <vector>

#include "simulator/schedule/schedule.h"
#include "simulator/step/grouped.h"
#include "simulator/step/step_index.h"

namespace stowage::simulator {

class ScheduleIndex {
 public:
  // Precondition: every id in the schedule can be looked up. Cost: O(stays + instructions).
  ScheduleIndex(const StepIndex& step, const Schedule& schedule);

  [[nodiscard]] const StepIndex& step() const { return step_; }
  [[nodiscard]] const Trace& trace() const { return step_.trace(); }
  [[nodiscard]] const Schedule& schedule() const { return schedule_; }
  // In order of rows.
  [[nodiscard]] std::span<const StayId> stays_of(TenantId tenant) const {
    return stays_of_[tenant.index()];
  }
  // Row of the first instruction of this kind for the stay, -1 = none.
  [[nodiscard]] std::int32_t row_of(StayId stay, Action action) const {
    return rows_[stay.index()][static_cast<std::size_t>(action)];
  }
  [[nodiscard]] Place place_of(std::int32_t row) const {
    const Anchor& anchor = schedule_.instructions[static_cast<std::size_t>(row)].anchor;
    return {anchor.event, anchor.side};
  }

 private:
  const StepIndex& step_;
  const Schedule& schedule_;
  Grouped<StayId> stays_of_;
  std::vector<std::array<std::int32_t, kActions>> rows_;
};

}  // namespace stowage::simulator
