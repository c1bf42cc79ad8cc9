#include "simulator/machine/setting_text.h"

#include <charconv>
#include <cmath>

namespace stowage::simulator {

std::string name_of_setting(const std::string& setting) {
  return setting.substr(0, setting.find('='));
}

Result<double> value_of_setting(const std::string& setting) {
  const auto equals = setting.find('=');
  if (equals == std::string::npos) {
    return Error{ErrorCode::usage, "--set " + setting + ": no value", "", "",
                 "write " + setting + "=VALUE"};
  }
  const std::string text = setting.substr(equals + 1);
  double value = 0;
  const auto [end, status] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (status != std::errc() || end != text.data() + text.size() || !std::isfinite(value)) {
    return Error{ErrorCode::usage, "--set " + setting + ": '" + text + "' is not a number", "", "",
                 ""};
  }
  return value;
}

}  // namespace stowage::simulator
