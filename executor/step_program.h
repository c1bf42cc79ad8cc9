// StepProgram: a Schedule arranged for a running step: which instructions stand at the n-th event
// of a kind, which layer or parameter is expected there.
#pragma once

#include <array>
#include <span>
#include <vector>

#include "simulator/schedule/schedule.h"
#include "traces/trace.h"

namespace stowage::executor {

class StepProgram {
 public:
  // Both must outlive the program. Cost: O(events + instructions).
  StepProgram(const Trace& trace, const simulator::Schedule& schedule);

  // Instructions at event number `ordinal` of this kind, in execution order.
  [[nodiscard]] std::span<const simulator::Instruction> at(simulator::AnchorKind kind,
                                                           std::size_t ordinal,
                                                           simulator::Side side) const;
  // Something stands behind an accumulated gradient, so that somebody must tell of them.
  [[nodiscard]] bool hears_gradients() const { return hears_gradients_; }
  // The kinds of all events that an executor hears of between the step's begin and its end, in
  // their order: accumulated gradients only where it hears_gradients().
  [[nodiscard]] const std::vector<simulator::AnchorKind>& order() const { return order_; }
  // How many events of this kind a step has, the layer of a layer event, and the storage of a
  // parameter's update.
  [[nodiscard]] std::size_t count(simulator::AnchorKind kind) const;
  [[nodiscard]] EventId event(simulator::AnchorKind kind, std::size_t ordinal) const {
    return places_[static_cast<std::size_t>(kind)][ordinal].event;
  }
  [[nodiscard]] LayerId layer(simulator::AnchorKind kind, std::size_t ordinal) const;
  [[nodiscard]] StorageId parameter(simulator::AnchorKind kind, std::size_t ordinal) const;

 private:
  struct Range {
    std::size_t first = 0;
    std::size_t count = 0;
  };
  struct Place {
    std::int32_t ref = -1;  // as the event's
    EventId event;
    std::array<Range, 2> sides;
  };
  std::span<const simulator::Instruction> instructions_;
  std::array<std::vector<Place>, simulator::kAnchorKinds> places_;
  bool hears_gradients_ = false;
  std::vector<simulator::AnchorKind> order_;
};

}  // namespace stowage::executor
