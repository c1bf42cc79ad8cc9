// Autocast: what forward and loss of a run compute in where PyTorch's autocast of the device has a
// smaller type for an op, with parameters as they are (`--dtype`). A property of the run: a
// recording, its reference and its planned run have the same.
#pragma once

#include <c10/core/Device.h>
#include <c10/core/ScalarType.h>

#include <cstdint>
#include <string>

#include "traces/result.h"

namespace stowage::executor {

enum class Autocast : std::uint8_t { none, bf16, fp16 };

// "none", "bf16" or "fp16"; anything else is a usage error with the nearest name.
[[nodiscard]] Result<Autocast> parse_autocast(const std::string& text);
[[nodiscard]] std::string to_string(Autocast autocast);
// As a trace has it: empty where there is none.
[[nodiscard]] std::string recorded_text(Autocast autocast);

// Autocast of the calling thread for ops on this device, as torch.autocast(device, dtype) is: casts
// of parameters are cached, and the cache is cleared where the outermost one is left. Nothing for
// Autocast::none.
class AutocastScope {
 public:
  AutocastScope(c10::DeviceType device, Autocast autocast);
  ~AutocastScope();
  AutocastScope(const AutocastScope&) = delete;
  AutocastScope& operator=(const AutocastScope&) = delete;

 private:
  c10::DeviceType device_;
  bool is_entered_;
  bool was_enabled_ = false;
  at::ScalarType dtype_ = at::kFloat;  // as it was
  bool was_cached_ = true;
};

}  // namespace stowage::executor
