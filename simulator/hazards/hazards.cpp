#include "simulator/hazards/hazards.h"

#include <algorithm>
#include <iterator>
#include <utility>

#include "simulator/hazards/access_walk.h"
#include "simulator/hazards/schedule_structure.h"
#include "simulator/hazards/shared_memory_check.h"

namespace stowage::simulator {

const char* name_of(HazardKind value) {
  switch (value) {
    case HazardKind::load_before_store_finished:
      return "load_before_store_finished";
    case HazardKind::host_slot_overwritten:
      return "host_slot_overwritten";
    case HazardKind::used_while_away:
      return "used_while_away";
    case HazardKind::freed_while_copied:
      return "freed_while_copied";
    case HazardKind::written_while_copied:
      return "written_while_copied";
    case HazardKind::update_lost:
      return "update_lost";
    case HazardKind::memory_shared:
      return "memory_shared";
    case HazardKind::malformed:
      return "malformed";
  }
  return "?";
}

std::vector<Hazard> find_hazards(const StepIndex& index, const Schedule& schedule) {
  CheckedStructure structure = check_structure(index, schedule);
  std::vector<Hazard> hazards = std::move(structure.hazards);
  if (structure.readable) {
    std::vector<Hazard> unordered = unordered_accesses(index, schedule);
    hazards.insert(hazards.end(), std::make_move_iterator(unordered.begin()),
                   std::make_move_iterator(unordered.end()));
  }
  std::stable_sort(hazards.begin(), hazards.end(),
                   [](const Hazard& a, const Hazard& b) { return a.event < b.event; });
  return hazards;
}

std::vector<Hazard> find_hazards(const StepIndex& index, const Schedule& schedule,
                                 const LiveRanges& live, const DevicePlacement& placement) {
  std::vector<Hazard> hazards = find_hazards(index, schedule);
  return hazards.empty() ? shared_memory_hazards(index, schedule, live, placement) : hazards;
}

}  // namespace stowage::simulator
