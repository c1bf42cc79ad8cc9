#include "report/recomputed_segments.h"

#include <algorithm>
#include <cstddef>
#include <map>
#include <utility>

#include "simulator/step/recomputed_step.h"
#include "simulator/step/step_index.h"

namespace stowage::report {

std::vector<RecomputedSegment> recomputed_segments(const simulator::Step& step, EventId peak) {
  std::vector<RecomputedSegment> out;
  if (step.segments().empty()) return out;
  const Trace& trace = step.trace();
  const simulator::StepIndex index(step);
  const auto& work = index.compute_until();
  out.resize(step.segments().size());
  // Inner segments come behind outer ones, and what they give up is theirs.
  std::vector<bool> is_counted(trace.storages.size(), false);
  for (std::size_t row = out.size(); row-- > 0;) {
    const simulator::SegmentRows& rows = step.segments()[row];
    RecomputedSegment& segment = out[row];
    segment.name = rows.name;
    segment.by_ops = rows.is_chain();
    segment.layer = rows.name;
    if (rows.is_chain()) {
      segment.layer = rows.layer.valid() ? trace.string(trace.layers.name[rows.layer.index()]) : "";
    }
    segment.time = work[rows.run_end.index()] - work[rows.run_begin.index()];
    EventId begin = trace.saved.event[rows.saved.front().index()];
    segment.saved_at = begin;
    while (!rows.is_chain() &&
           (trace.events.kind[begin.index()] != EventKind::layer_forward_begin ||
            trace.events.ref[begin.index()] != rows.layer.value)) {
      --begin.value;
    }
    std::vector<StorageId> freed;
    for (const SavedId s : rows.saved) {
      const StorageId of = trace.saved.storage[s.index()];
      if (!of.valid() || trace.storages.device[of.index()] != 0) continue;
      if (is_counted[of.index()]) continue;
      const EventId alloc = trace.storages.alloc_event[of.index()];
      const EventId free = trace.storages.free_event[of.index()];
      const bool is_own = alloc.valid() && (rows.is_chain() || begin < alloc);
      if (!is_own || !free.valid() || free >= rows.run_begin) continue;
      is_counted[of.index()] = true;
      freed.push_back(of);
    }
    for (const StorageId of : freed) {
      const Bytes bytes = trace.storages.bytes[of.index()];
      segment.freed += bytes;
      const bool is_gone = peak.valid() && trace.storages.free_event[of.index()] <= peak;
      if (is_gone && peak < rows.run_begin) segment.freed_at_peak += bytes;
    }
  }
  return out;
}

std::vector<RecomputedLayer> recomputed_layers(const std::vector<RecomputedSegment>& segments) {
  std::vector<RecomputedSegment> ordered = segments;
  std::stable_sort(ordered.begin(), ordered.end(),
                   [](const auto& a, const auto& b) { return a.saved_at < b.saved_at; });
  std::vector<RecomputedLayer> layers;
  std::map<std::pair<std::string, bool>, std::size_t> rows;
  for (const RecomputedSegment& segment : ordered) {
    const auto [row, is_new] = rows.try_emplace({segment.layer, segment.by_ops}, layers.size());
    if (is_new) layers.push_back({segment.layer, segment.by_ops, 0, 0, 0});
    RecomputedLayer& layer = layers[row->second];
    layer.freed_at_peak += segment.freed_at_peak;
    layer.freed += segment.freed;
    layer.time += segment.time;
  }
  return layers;
}

}  // namespace stowage::report
