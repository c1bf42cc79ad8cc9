// What data-parallel training over N ranks would take, for people.
#pragma once

#include <string>

#include "report/answers/paint.h"
#include "simulator/network/data_parallel.h"
#include "simulator/plan/plan.h"
#include "traces/units.h"

namespace stowage::report {

// A table with a line for each number of ranks, behind a blank line; then the buckets, the peak
// with them, and all that is assumed of the network.
[[nodiscard]] std::string data_parallel_text(const simulator::DataParallel& ranks,
                                             const Paint& paint);

// The peak of the budget's counter, buckets included.
[[nodiscard]] Bytes peak_of(const simulator::DataParallel& ranks, simulator::PeakKind kind);
// True without a budget, and of one rank alone, which has no buckets.
[[nodiscard]] bool keeps_budget(const simulator::DataParallel& ranks,
                                const simulator::PlanBudget& budget);

}  // namespace stowage::report
