#include "profiler/cupti/cupti_error.h"

#include <cupti.h>

namespace stowage::profiler {

Status cupti_status(int result, const std::string& what) {
  const auto code = static_cast<CUptiResult>(result);
  if (code == CUPTI_SUCCESS) return Unit{};
  const char* text = nullptr;
  if (cuptiGetResultString(code, &text) != CUPTI_SUCCESS || text == nullptr) text = "unknown error";
  std::string hint = "see `stowage doctor`";
  if (code == CUPTI_ERROR_INSUFFICIENT_PRIVILEGES) {
    hint = "the driver reserves profiling to root: set NVreg_RestrictProfilingToAdminUsers=0";
  } else if (code == CUPTI_ERROR_UNKNOWN || code == CUPTI_ERROR_NOT_INITIALIZED) {
    hint = "CUPTI needs an NVIDIA driver and a GPU; see `stowage doctor`";
  }
  return Error{ErrorCode::environment,
               "CUPTI: " + what + ": " + text + " (" + std::to_string(result) + ")", "", "", hint};
}

}  // namespace stowage::profiler
