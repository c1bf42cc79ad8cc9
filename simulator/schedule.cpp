#include "simulator/schedule.h"

namespace stowage::simulator {

const char* name_of(AnchorKind value) {
  switch (value) {
    case AnchorKind::step_begin:
      return "step_begin";
    case AnchorKind::step_end:
      return "step_end";
    case AnchorKind::pack:
      return "pack";
    case AnchorKind::unpack:
      return "unpack";
    case AnchorKind::layer_forward_begin:
      return "layer_forward_begin";
    case AnchorKind::layer_forward_end:
      return "layer_forward_end";
    case AnchorKind::layer_backward_begin:
      return "layer_backward_begin";
    case AnchorKind::layer_backward_end:
      return "layer_backward_end";
    case AnchorKind::parameter_update_begin:
      return "parameter_update_begin";
    case AnchorKind::parameter_update_end:
      return "parameter_update_end";
  }
  return "?";
}

const char* name_of(Action value) {
  switch (value) {
    case Action::start_offload:
      return "start_offload";
    case Action::release:
      return "release";
    case Action::start_reload:
      return "start_reload";
    case Action::await:
      return "await";
    case Action::drop:
      return "drop";
    case Action::start_load:
      return "start_load";
    case Action::await_load:
      return "await_load";
    case Action::start_store:
      return "start_store";
    case Action::evict:
      return "evict";
  }
  return "?";
}

}  // namespace stowage::simulator
