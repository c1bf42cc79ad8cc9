// "stowage-policies/1": the policies with their options.
#pragma once

#include <string>
#include <vector>

#include "planner/policy.h"

namespace stowage::report {

[[nodiscard]] std::string policies_json(const std::vector<planner::PolicyInfo>& policies);

}  // namespace stowage::report
