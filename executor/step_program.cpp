#include "executor/step_program.h"

#include <algorithm>

#include "simulator/step/anchor_kinds.h"
#include "traces/result.h"

namespace stowage::executor {

using simulator::AnchorKind;

StepProgram::StepProgram(const Trace& trace, const simulator::Schedule& schedule)
    : instructions_(schedule.instructions),
      hears_gradients_(std::any_of(instructions_.begin(), instructions_.end(), [](const auto& i) {
        return i.anchor.kind == AnchorKind::gradient_accumulated;
      })) {
  for (std::size_t i = 0; i < trace.events.size(); ++i) {
    const auto kind = simulator::anchor_kind_of(trace.events.kind[i]);
    if (!kind) continue;
    const bool is_heard = *kind != AnchorKind::gradient_accumulated || hears_gradients_;
    if (is_heard && *kind != AnchorKind::step_begin && *kind != AnchorKind::step_end) {
      order_.push_back(*kind);
    }
    Place place;
    place.ref = trace.events.ref[i];
    place.event = EventId(i);
    places_[static_cast<std::size_t>(*kind)].push_back(place);
  }
  for (std::size_t i = 0; i < instructions_.size(); ++i) {
    const simulator::Anchor& anchor = instructions_[i].anchor;
    auto& places = places_[static_cast<std::size_t>(anchor.kind)];
    STOWAGE_ASSERT(anchor.ordinal >= 0 && static_cast<std::size_t>(anchor.ordinal) < places.size());
    Range& range = places[static_cast<std::size_t>(anchor.ordinal)]
                       .sides[static_cast<std::size_t>(anchor.side)];
    if (range.count == 0) range.first = i;
    STOWAGE_ASSERT(range.first + range.count == i);  // instructions at one anchor are adjacent
    ++range.count;
  }
}

std::span<const simulator::Instruction> StepProgram::at(AnchorKind kind, std::size_t ordinal,
                                                        simulator::Side side) const {
  const auto& places = places_[static_cast<std::size_t>(kind)];
  if (ordinal >= places.size()) return {};
  const Range& range = places[ordinal].sides[static_cast<std::size_t>(side)];
  return instructions_.subspan(range.first, range.count);
}

std::size_t StepProgram::count(AnchorKind kind) const {
  return places_[static_cast<std::size_t>(kind)].size();
}

LayerId StepProgram::layer(AnchorKind kind, std::size_t ordinal) const {
  return LayerId(places_[static_cast<std::size_t>(kind)][ordinal].ref);
}

StorageId StepProgram::parameter(AnchorKind kind, std::size_t ordinal) const {
  return StorageId(places_[static_cast<std::size_t>(kind)][ordinal].ref);
}

}  // namespace stowage::executor
