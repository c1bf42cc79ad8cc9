// The one adapter from CUPTI's result codes to errors.
#pragma once

#include <string>

#include "traces/result.h"

namespace stowage::profiler {

// `code` is a CUptiResult; `what` was being done ("cuptiSubscribe_v2"). Ok for CUPTI_SUCCESS.
[[nodiscard]] Status cupti_status(int code, const std::string& what);

}  // namespace stowage::profiler
