#include "profiler/cupti/cupti_error.h"

namespace stowage::profiler {

Status cupti_status(CUptiResult code, const std::string& what) {
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
               "CUPTI: " + what + ": " + text + " (" + std::to_string(static_cast<int>(code)) + ")",
               "", "", hint};
}

}  // namespace stowage::profiler
