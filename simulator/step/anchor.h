// Anchors: the places of a step at which a running executor can act.
#pragma once

#include <cstddef>
#include <cstdint>

#include "traces/ids.h"

namespace stowage::simulator {

// Events at which a running executor can act without observing every op. Each maps to exactly one
// EventKind of the trace.
enum class AnchorKind : std::uint8_t {
  step_begin,
  step_end,
  pack,
  unpack,
  layer_forward_begin,
  layer_forward_end,
  layer_backward_begin,
  layer_backward_end,
  parameter_update_begin,
  parameter_update_end,
  gradient_accumulated,  // of one parameter, in backward
};
inline constexpr std::size_t kAnchorKinds = 11;

// `before`: ahead of the anchor's own action (the pack's or unpack's), `after`: behind it.
enum class Side : std::uint8_t { before, after };

struct Anchor {
  AnchorKind kind = AnchorKind::step_begin;
  std::int32_t ordinal = 0;  // n-th event of this kind in the period
  Side side = Side::after;
  EventId event;  // the same place in Trace::events, for the simulator
  bool operator==(const Anchor&) const = default;
};

// Where an instruction stands. Ordered by event, then side.
struct Place {
  EventId event;
  Side side = Side::after;
  friend auto operator<=>(const Place&, const Place&) = default;
};

[[nodiscard]] const char* name_of(AnchorKind value);

}  // namespace stowage::simulator
