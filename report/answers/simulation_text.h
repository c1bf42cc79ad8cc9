// A Simulation for people.
#pragma once

#include <string>

#include "report/answers/text_style.h"
#include "report/simulation.h"
#include "simulator/plan/plan.h"
#include "traces/trace.h"

namespace stowage::report {

// Memory curve, figures beside those of the recording, the peak, the budget, the longest stalls.
// `trace` is that of simulation.index; `title`: "plan p.json".
[[nodiscard]] std::string simulation_text(const Trace& trace, const Simulation& simulation,
                                          const simulator::Plan& plan, const std::string& title,
                                          const TextStyle& style);

}  // namespace stowage::report
