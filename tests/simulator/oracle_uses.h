// When a step uses what a schedule moves, found in the trace's own tables: the oracle's counterpart
// of TenantKind::list_uses. A snapshot is used by the unpacks of its saved tensors, and its storage
// is written by ops; of anything else, what touches the storage uses it.
#pragma once

#include <vector>

#include "simulator/schedule/schedule.h"

namespace stowage::testing {

struct OracleUse {
  TenantId tenant;
  StayId stay;  // that an unpack is served by; none: whichever is there
  int begin = 0;
  int end = 0;
  bool ends_behind = false;  // in the gap behind `end`
  bool writes = false;
  bool of_storage = false;  // a write into the storage that a snapshot was taken of
};

std::vector<OracleUse> oracle_uses(const Trace& trace, const simulator::Schedule& schedule);

}  // namespace stowage::testing
