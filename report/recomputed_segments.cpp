#include "report/recomputed_segments.h"

#include <algorithm>

#include "simulator/step/recomputed_step.h"
#include "simulator/step/step_index.h"

namespace stowage::report {

std::vector<RecomputedSegment> recomputed_segments(const simulator::Step& step) {
  std::vector<RecomputedSegment> out;
  if (step.segments().empty()) return out;
  const Trace& trace = step.trace();
  const simulator::StepIndex index(step);
  const auto& work = index.compute_until();
  for (const simulator::SegmentRows& rows : step.segments()) {
    RecomputedSegment& segment = out.emplace_back();
    segment.name = rows.name;
    segment.by_ops = rows.is_chain();
    segment.time = work[rows.run_end.index()] - work[rows.run_begin.index()];
    EventId begin = trace.saved.event[rows.saved.front().index()];
    while (!rows.is_chain() &&
           (trace.events.kind[begin.index()] != EventKind::layer_forward_begin ||
            trace.events.ref[begin.index()] != rows.layer.value)) {
      --begin.value;
    }
    std::vector<StorageId> freed;
    for (const SavedId s : rows.saved) {
      const StorageId of = trace.saved.storage[s.index()];
      if (!of.valid() || trace.storages.device[of.index()] != 0) continue;
      const EventId alloc = trace.storages.alloc_event[of.index()];
      const EventId free = trace.storages.free_event[of.index()];
      const bool is_own = alloc.valid() && (rows.is_chain() || begin < alloc);
      if (is_own && free.valid() && free < rows.run_begin) freed.push_back(of);
    }
    std::sort(freed.begin(), freed.end());
    freed.erase(std::unique(freed.begin(), freed.end()), freed.end());
    for (const StorageId of : freed) segment.freed += trace.storages.bytes[of.index()];
  }
  return out;
}

}  // namespace stowage::report
