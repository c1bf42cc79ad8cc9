// What happens to a storage in a step: made, used, let go by the model, and, under a plan, copied
// out, released and brought back.
#pragma once

#include <vector>

#include "simulator/replay.h"
#include "simulator/schedule.h"
#include "traces/trace.h"

namespace stowage::report {

// One copy back: a reload, or a stay of a streamed parameter.
struct Return {
  ReloadId reload;        // or
  ResidencyId residency;
  EventId start;   // where the buffer is taken and the copy may start; none: in the period before
  EventId needed;  // where compute waits for it; none: in the period after
  EventId gone;    // behind which the buffer goes; none: not in this step
  Nanoseconds copy_start = -1;  // -1 = not in this period
  Nanoseconds copy_end = -1;
};

// Events are of the trace: their times are those of Trace::events or of ReplayDetail.
struct StorageStory {
  StorageId storage;
  SavedId saved;  // its first pack, or none; has the site
  OpId made_by;   // none: older than the step
  EventId made;   // none: older than the step
  // Of ops that use it, packs and unpacks; behind an unpack up to where what it handed out died.
  // None: nothing in the step touches it.
  EventId first_use;
  EventId last_use;
  // Where the model's own references are gone, and where it is freed when nothing moves. None:
  // outlives the step.
  EventId natural_free;
  EventId recorded_free;

  // Under the plan; nothing moves: as if none of this were here.
  bool moves = false;
  EventId copy_out;    // first start_offload or start_store
  EventId release;     // of the last one: compute waits for the copy there; or the first evict
  EventId device_free;  // behind which the storage's own bytes go; none: not in this step
  Nanoseconds copy_out_start = -1;
  Nanoseconds copy_out_end = -1;
  std::vector<Return> returns;  // in order of start
  Nanoseconds stall = 0;        // that compute spends waiting for any of its copies
};

// One a row of Trace::storages. Cost: O(trace).
[[nodiscard]] std::vector<StorageStory> storage_stories(const Trace& trace);

// The same under a plan. All arguments belong together. Cost: O(trace + instructions).
[[nodiscard]] std::vector<StorageStory> storage_stories(const Trace& trace,
                                                        const simulator::Schedule& schedule,
                                                        const simulator::ReplayResult& result,
                                                        const simulator::ReplayDetail& detail);

}  // namespace stowage::report
