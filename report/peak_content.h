// What is alive when a step's memory is highest, in rows that stay the same from run to run:
// storages of one class, made in one layer by one op, are one row. Baselines keep them
// (cli/baseline.h), so that a regression can be told by layer and site.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "report/alive_spans.h"
#include "simulator/schedule/schedule.h"
#include "simulator/step/step_index.h"
#include "traces/trace.h"

namespace stowage::report {

struct PeakRow {
  Holding holding = Holding::original;
  StorageClass storage_class = StorageClass::other;
  // The layer that saved it first; of a storage that was not saved, the one that made it.
  std::string layer;
  std::string op;                  // that made it; empty when it is older than the step
  std::vector<std::string> sites;  // of first packs, in their order
  std::int64_t storages = 0;
  Bytes bytes = 0;
  bool operator==(const PeakRow&) const = default;
};

struct PeakContent {
  Bytes peak_requested = 0;  // the sum over `on_device`
  std::string op_name;       // at the peak; empty: between ops
  std::string layer;
  std::string phase;
  // By class, then in forward order of the layers, then by op.
  std::vector<PeakRow> on_device;
  // The host arena's slots; empty when nothing moves.
  std::vector<PeakRow> on_host;
  bool operator==(const PeakContent&) const = default;
};

// At the first moment at which the requested bytes of device 0 are highest under `schedule`: the
// moment and the bytes of simulator::replay_memory(). Cost: O(trace + instructions + rows log
// rows).
[[nodiscard]] PeakContent peak_content(const simulator::StepIndex& index,
                                       const simulator::Schedule& schedule);

}  // namespace stowage::report
