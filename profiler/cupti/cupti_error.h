// The one adapter from CUPTI's result codes to errors.
#pragma once

#include <cupti.h>

#include <string>

#include "traces/result.h"

namespace stowage::profiler {

// `what` was being done ("cuptiSubscribe_v2"). Ok for CUPTI_SUCCESS.
[[nodiscard]] Status cupti_status(CUptiResult code, const std::string& what);

}  // namespace stowage::profiler
