#include "cli/json_pieces_json.h"

namespace stowage::cli {

Json cost_json(const StepCost& cost) {
  return {{"peak_requested_bytes", cost.peak_requested},
          {"peak_active_bytes", cost.peak_active},
          {"peak_reserved_bytes", bytes_or_null(cost.peak_reserved)},
          {"host_bytes", cost.host_bytes},
          {"stall_ns", bytes_or_null(cost.stall_ns)},
          {"step_ns", bytes_or_null(cost.step_ns)}};
}

}  // namespace stowage::cli
