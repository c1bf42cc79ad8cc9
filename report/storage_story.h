// What happens to a storage in a step: made, used, let go by the model, and, under a plan, copied
// out, released and brought back.
#pragma once

#include <cstddef>
#include <memory>
#include <vector>

#include "simulator/replay/replay.h"
#include "simulator/schedule/schedule.h"
#include "traces/trace.h"

namespace stowage::report {

// One copy back.
struct Return {
  StayId stay;
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
  EventId copy_out;     // first store
  EventId release;      // the last eviction of the storage itself; without one, the first eviction
  EventId device_free;  // behind which the storage's own bytes go; none: not in this step
  Nanoseconds copy_out_start = -1;
  Nanoseconds copy_out_end = -1;
  std::vector<Return> returns;  // in order of start
  Nanoseconds stall = 0;        // that compute spends waiting for any of its copies
};

// The story of each row of Trace::storages. What the trace says is looked up when asked for and
// what a plan says is kept for the storages that move, so all of them take 12 bytes a storage and
// one StorageStory for each that moves. Refers to the trace, which must outlive it.
class StorageStories {
 public:
  // Of the recorded step: nothing moves. Cost: O(trace).
  explicit StorageStories(const Trace& trace);
  // The same under a plan. All arguments belong together. `known`: stories of the very same trace
  // under whatever plan; what hangs on the trace alone is then shared with them, and the cost is
  // O(instructions + storages), else O(trace + instructions).
  StorageStories(const Trace& trace, const simulator::Schedule& schedule,
                 const simulator::ReplayResult& result, const simulator::ReplayDetail& detail,
                 const StorageStories* known = nullptr);

  [[nodiscard]] std::size_t size() const { return trace_->storages.size(); }
  // By row. O(log moving), and the copies back of one that moves.
  [[nodiscard]] StorageStory operator[](std::size_t row) const;
  // Of the story, in O(1).
  [[nodiscard]] EventId first_use(StorageId id) const { return touched_->first_use[id.index()]; }
  [[nodiscard]] EventId last_use(StorageId id) const { return touched_->last_use[id.index()]; }
  // Those that the plan moves, in order of rows.
  [[nodiscard]] const std::vector<StorageStory>& moving() const { return moving_; }

 private:
  // By storage.
  struct Touched {
    explicit Touched(const Trace& trace);
    void touch(StorageId storage, EventId first, EventId last);
    std::vector<EventId> first_use;
    std::vector<EventId> last_use;
    std::vector<SavedId> first_pack;
  };
  class Planned;
  [[nodiscard]] StorageStory still(std::size_t row) const;  // as if it stayed

  const Trace* trace_;
  std::shared_ptr<const Touched> touched_;
  std::vector<StorageStory> moving_;
};

}  // namespace stowage::report
