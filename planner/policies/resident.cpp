// Nothing moves: the step as it was recorded.
#include "planner/policies/policies.h"

namespace stowage::planner::builtin {

PolicyInfo resident_info() {
  return {"resident", "Nothing moves", {}};
}

Rules resident_rules(const simulator::StepIndex& /*index*/, const Options& /*options*/) {
  return PolicyRules{{keep_the_rest()}, {}, {}};
}

}  // namespace stowage::planner::builtin
