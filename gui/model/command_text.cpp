#include "gui/model/command_text.h"

#include <algorithm>
#include <array>
#include <cstdio>

namespace stowage::gui {
namespace {

std::string number(double value) {
  std::array<char, 32> text{};
  std::snprintf(text.data(), text.size(), "%.6g", value);
  return text.data();
}

double best_rate(const LinkCurve& curve) {
  const auto& rates = curve.bytes_per_second;
  return rates.empty() ? 0 : static_cast<double>(*std::max_element(rates.begin(), rates.end()));
}

std::string trace_word(const Simulated& simulated) {
  return shell_word(simulated.trace->path.empty() ? std::string("TRACE") : simulated.trace->path);
}

std::string settings(const Calibration& now, const Calibration& recorded) {
  std::string text;
  const auto set = [&text](const char* name, double value) {
    text += std::string(" --set ") + name + "=" + number(value);
  };
  const auto factor = [&](const char* name, Ppm a, Ppm b) {
    if (a != b) set(name, static_cast<double>(a) / kPpm);
  };
  if (now.h2d.bytes_per_second != recorded.h2d.bytes_per_second) {
    set("link.h2d_gbps", best_rate(now.h2d) / 1e9);
  }
  if (now.d2h.bytes_per_second != recorded.d2h.bytes_per_second) {
    set("link.d2h_gbps", best_rate(now.d2h) / 1e9);
  }
  factor("link.duplex", now.duplex, recorded.duplex);
  factor("link.copy_interference", now.copy_interference, recorded.copy_interference);
  factor("link.compute_interference", now.compute_interference, recorded.compute_interference);
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
                         const Calibration& recorded) {
  const std::string trace = trace_word(simulated);
  const simulator::Plan& plan = simulated.plan();
  const std::string set = settings(simulated.trace->trace.calibration, recorded);
  if (!plan_file.empty()) {
    return "stowage simulate " + trace + " --plan " + shell_word(plan_file) + set;
  }
  const bool edited = simulated.state->decisions != nullptr;
  const bool searched = !edited && plan.made_by.policy == "auto" && plan.budget.device;
  if (searched && set.empty()) {
    const std::string budget = plan.budget.device_text.empty() ? std::to_string(*plan.budget.device)
                                                               : plan.budget.device_text;
    return "stowage plan " + trace + " --budget " + shell_word(budget) + " --budget-on " +
           simulator::name_of(plan.budget.on) + " -o plan.json";
  }
  const bool nothing = !edited && plan.saved.empty() && !plan.parameters;
  if (nothing && set.empty()) return "stowage inspect " + trace;
  if (nothing) return "stowage simulate " + trace + set;
  return "stowage simulate " + trace + " --plan plan.json" + set;
}

}  // namespace stowage::gui
