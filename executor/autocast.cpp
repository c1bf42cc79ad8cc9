#include "executor/autocast.h"

#include <ATen/autocast_mode.h>

#include <algorithm>
#include <array>
#include <cstddef>

#include "executor/models/option_reader.h"

namespace stowage::executor {

namespace {
constexpr std::array kAutocasts = {"none", "bf16", "fp16"};  // as Autocast
}  // namespace

Result<Autocast> parse_autocast(const std::string& text) {
  const auto found = std::find(kAutocasts.begin(), kAutocasts.end(), text);
  if (found == kAutocasts.end()) {
    return usage_error("unknown autocast '" + text + "'",
                       suggestion(text, {kAutocasts.begin(), kAutocasts.end()}));
  }
  return static_cast<Autocast>(found - kAutocasts.begin());
}

std::string to_string(Autocast autocast) {
  return kAutocasts[static_cast<std::size_t>(autocast)];
}

std::string recorded_text(Autocast autocast) {
  return autocast == Autocast::none ? std::string() : to_string(autocast);
}

AutocastScope::AutocastScope(c10::DeviceType device, Autocast autocast)
    : device_(device), is_entered_(autocast != Autocast::none) {
  if (!is_entered_) return;
  was_enabled_ = at::autocast::is_autocast_enabled(device_);
  dtype_ = at::autocast::get_autocast_dtype(device_);
  was_cached_ = at::autocast::is_autocast_cache_enabled();
  at::autocast::set_autocast_enabled(device_, true);
  at::autocast::set_autocast_dtype(device_, autocast == Autocast::bf16 ? at::kBFloat16 : at::kHalf);
  at::autocast::set_autocast_cache_enabled(true);
  at::autocast::increment_nesting();
}

AutocastScope::~AutocastScope() {
  if (!is_entered_) return;
  if (at::autocast::decrement_nesting() == 0) at::autocast::clear_cache();
  at::autocast::set_autocast_enabled(device_, was_enabled_);
  at::autocast::set_autocast_dtype(device_, dtype_);
  at::autocast::set_autocast_cache_enabled(was_cached_);
}

}  // namespace stowage::executor
