#include "simulator/schedule/schedule_index.h"

#include <utility>

namespace stowage::simulator {

ScheduleIndex::ScheduleIndex(const StepIndex& step, const Schedule& schedule)
    : step_(step), schedule_(schedule), rows_(schedule.stays.size(), {-1, -1, -1, -1, -1}) {
  std::vector<std::pair<std::size_t, StayId>> stays;
  stays.reserve(schedule.stays.size());
  for (std::size_t i = 0; i < schedule.stays.size(); ++i) {
    stays.emplace_back(schedule.stays[i].tenant.index(), StayId(i));
  }
  stays_of_ = {schedule.tenants.size(), stays};
  for (std::size_t i = 0; i < schedule.instructions.size(); ++i) {
    const Instruction& instruction = schedule.instructions[i];
    std::int32_t& row =
        rows_[instruction.stay.index()][static_cast<std::size_t>(instruction.action)];
    if (row < 0) row = static_cast<std::int32_t>(i);
  }
}

}  // namespace stowage::simulator
