// "NAME=VALUE", as --set takes it.
#pragma once

#include <string>

#include "traces/result.h"

namespace stowage::simulator {

[[nodiscard]] std::string name_of_setting(const std::string& setting);

// Errors (usage): no value, one that is no finite number.
[[nodiscard]] Result<double> value_of_setting(const std::string& setting);

}  // namespace stowage::simulator
