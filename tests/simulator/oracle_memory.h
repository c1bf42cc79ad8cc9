// Slow, obvious oracle for the memory of a schedule: at every moment the live set is found again
// from the definitions of the contract (docs/simulator.md), one storage and one buffer at a time.
#pragma once

#include <set>
#include <vector>

#include "simulator/replay/replay.h"

namespace stowage::testing {

struct OracleMemory {
  Bytes peak = 0;  // over step begin, alloc events and loads only
  EventId peak_event;
  Bytes lowest = 0;
  std::vector<Bytes> requested;  // after each event, the most during its instructions
};

// What is alive at each moment of the step, in order: storages by row, then the buffers
// of loaded stays by row.
// A moment is an event's own action, with what went in the gap ahead of it, or an instruction.
std::vector<std::set<std::size_t>> oracle_live_sets(const Trace& trace,
                                                    const simulator::Schedule& schedule);

OracleMemory oracle_memory(const Trace& trace, const simulator::Schedule& schedule);

}  // namespace stowage::testing
