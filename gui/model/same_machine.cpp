#include "gui/model/same_machine.h"

#include <algorithm>

#include "simulator/machine/calibration_settings.h"

namespace stowage::gui {

bool same_machine(const Calibration& a, const Calibration& b) {
  const auto& settings = simulator::calibration_settings();
  return std::all_of(settings.begin(), settings.end(), [&](const auto& setting) {
    return simulator::setting_value(a, setting.name) == simulator::setting_value(b, setting.name);
  });
}

}  // namespace stowage::gui
