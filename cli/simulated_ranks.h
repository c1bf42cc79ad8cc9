// `simulate --ranks N[,N..]`: what it takes, and what it says.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "cli/command_line.h"
#include "cli/console.h"
#include "report/simulation.h"
#include "simulator/network/data_parallel.h"
#include "simulator/plan/plan.h"
#include "traces/result.h"

namespace stowage::cli {

struct RanksAsked {
  std::vector<std::int64_t> numbers;  // empty: not asked for
  simulator::ReductionModel model;
};

// Takes what is about the network out of `settings`. Errors (usage): what is no number of ranks, or
// one that fills no hosts; those of apply_setting(); a network value without --ranks.
[[nodiscard]] Result<RanksAsked> ranks_asked(const std::optional<std::string>& ranks,
                                             std::vector<std::string>& settings);

// None where no ranks are asked for. Warns where the plan's budget is not kept with the buckets.
// Errors: those of data_parallel(), with the trace's name.
[[nodiscard]] Result<std::optional<simulator::DataParallel>> simulate_ranks(
    const RanksAsked& asked, const report::Simulation& simulation, const simulator::Plan& plan,
    const std::string& trace_file, const Console& console);

// "\n  network.gbps: ..", as the help has it; "network.gbps=", .. as shells offer it.
[[nodiscard]] std::string network_names_for_set();
[[nodiscard]] std::vector<std::string> network_offers();

}  // namespace stowage::cli
