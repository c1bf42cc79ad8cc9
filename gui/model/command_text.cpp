#include "gui/model/command_text.h"

#include <algorithm>
#include <array>
#include <cstdio>

#include "planner/budget.h"
#include "simulator/machine/calibration_settings.h"

namespace stowage::gui {
namespace {

std::string number(double value) {
  std::array<char, 32> text{};
  std::snprintf(text.data(), text.size(), "%.6g", value);
  return text.data();
}

std::string trace_word(const Simulated& simulated) {
  return shell_word(simulated.trace->path.empty() ? std::string("TRACE") : simulated.trace->path);
}

// Where it is not what the command does by itself.
std::string placement_words(const Simulated& simulated) {
  const simulator::PlacementMode placement = simulated.plan().placement;
  if (placement == planner::usual_placement(simulated.trace->trace)) return {};
  return std::string(" --placement ") + simulator::name_of(placement);
}

std::string settings(const Calibration& now, const Calibration& recorded) {
  std::string text;
  for (const simulator::CalibrationSetting& setting : simulator::calibration_settings()) {
    const double value = simulator::setting_value(now, setting.name);
    if (value == simulator::setting_value(recorded, setting.name)) continue;
    const std::string set = " --set " + setting.name + "=" + number(value);
    // A latency changes the rates too, which are then set to what they are.
    text = setting.name == "link.latency_us" ? set + text : text + set;
  }
  return text;
}

}  // namespace

std::string shell_word(const std::string& text) {
  const auto plain = [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
           std::string("_-./:,=+@%").find(c) != std::string::npos;
  };
  if (!text.empty() && std::all_of(text.begin(), text.end(), plain)) return text;
  std::string word = "'";
  for (const char c : text) word += c == '\'' ? std::string("'\\''") : std::string(1, c);
  return word + "'";
}

std::string run_command_text(const Simulated& simulated, const std::string& plan_file) {
  return "stowage execute --trace " + trace_word(simulated) + " --plan " + shell_word(plan_file);
}

std::string command_text(const Simulated& simulated, const std::string& plan_file,
                         const Calibration& recorded, bool pinned) {
  const std::string trace = trace_word(simulated);
  const simulator::Plan& plan = simulated.plan();
  const std::string set = settings(simulated.trace->trace.calibration, recorded);
  if (!plan_file.empty()) {
    return "stowage simulate " + trace + " --plan " + shell_word(plan_file) + set;
  }
  const bool edited = simulated.state->decisions != nullptr;
  const bool searched = !edited && !pinned && plan.made_by.policy == "auto" && plan.budget.device;
  if (searched && set.empty()) {
    const std::string budget = plan.budget.device_text.empty() ? std::to_string(*plan.budget.device)
                                                               : plan.budget.device_text;
    return "stowage plan " + trace + " --budget " + shell_word(budget) + " --budget-on " +
           simulator::name_of(plan.budget.on) + placement_words(simulated) + " -o plan.json";
  }
  const bool nothing = !edited && plan.saved.empty() && plan.recompute.empty() &&
                       !plan.parameters && plan.optimizer.empty() && plan.gradients.empty();
  if (nothing && set.empty()) return "stowage inspect " + trace;
  if (nothing) return "stowage simulate " + trace + placement_words(simulated) + set;
  return "stowage simulate " + trace + " --plan plan.json" + set;
}

}  // namespace stowage::gui
