#include "simulator/step/anchor.h"

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
    case AnchorKind::gradient_accumulated:
      return "gradient_accumulated";
  }
  return "?";
}

}  // namespace stowage::simulator
