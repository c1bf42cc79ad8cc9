// "stowage-simulate/1", and the timeline file "stowage-timeline/1".
#pragma once

#include <string>

#include "report/simulation.h"
#include "simulator/network/data_parallel.h"

namespace stowage::report {

// One object and a newline. `policy` is empty when a plan file was replayed; `ranks`, if given, is
// of the same simulation ("data_parallel").
[[nodiscard]] std::string simulate_json(const Simulation& simulation, const simulator::Plan& plan,
                                        const std::string& policy,
                                        const simulator::DataParallel* ranks = nullptr);

// The lanes (compute, d2h, h2d) and the memory of the planned step, columnar. Ends with a newline.
[[nodiscard]] std::string timeline_json(const Trace& trace, const Simulation& simulation,
                                        const simulator::Plan& plan);

}  // namespace stowage::report
