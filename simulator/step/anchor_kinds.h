// Which events of a trace are anchors.
#pragma once

#include <optional>

#include "simulator/step/anchor.h"
#include "traces/trace.h"

namespace stowage::simulator {

// The anchor kind that an event kind maps to; none for events that only an op observer sees.
[[nodiscard]] constexpr std::optional<AnchorKind> anchor_kind_of(EventKind kind) {
  switch (kind) {
    case EventKind::step_begin:
      return AnchorKind::step_begin;
    case EventKind::step_end:
      return AnchorKind::step_end;
    case EventKind::pack:
      return AnchorKind::pack;
    case EventKind::unpack:
      return AnchorKind::unpack;
    case EventKind::layer_forward_begin:
      return AnchorKind::layer_forward_begin;
    case EventKind::layer_forward_end:
      return AnchorKind::layer_forward_end;
    case EventKind::layer_backward_begin:
      return AnchorKind::layer_backward_begin;
    case EventKind::layer_backward_end:
      return AnchorKind::layer_backward_end;
    case EventKind::parameter_update_begin:
      return AnchorKind::parameter_update_begin;
    case EventKind::parameter_update_end:
      return AnchorKind::parameter_update_end;
    case EventKind::gradient_accumulated:
      return AnchorKind::gradient_accumulated;
    default:
      return std::nullopt;
  }
}

// A lowering chooses among these places by itself. To the others an executor listens only where an
// instruction names one: it costs a hook on every parameter.
[[nodiscard]] constexpr bool is_chosen_freely(AnchorKind kind) {
  return kind != AnchorKind::gradient_accumulated;
}

}  // namespace stowage::simulator
