#include "profiler/assembly/conclusions.h"

#include <cstddef>
#include <vector>

namespace stowage::profiler {

namespace {

void classify(const RawPass& raw, TraceRows& rows) {
  Trace& trace = rows.trace;
  Storages& storages = trace.storages;
  const auto set = [&](StorageId row, StorageClass storage_class, Evidence evidence) {
    storages.storage_class[row.index()] = storage_class;
    storages.evidence[row.index()] = evidence;
  };
  for (std::size_t i = 0; i < storages.size(); ++i) {
    if (!storages.alloc_event[i].valid()) continue;
    set(StorageId(i),
        storages.free_event[i].valid() ? StorageClass::temporary : StorageClass::output,
        Evidence::data_flow);
  }
  for (const StorageId storage : trace.saved.storage) {
    if (storage.valid() && storages.alloc_event[storage.index()].valid()) {
      set(storage, StorageClass::activation, Evidence::hook);
    }
  }
  for (const RawGradient& gradient : raw.gradients) {
    const StorageId row = rows.storage_of(gradient.serial);
    if (!row.valid()) continue;
    set(row, StorageClass::gradient, Evidence::registered);
    storages.parameter[row.index()] = rows.storage_of(gradient.parameter);
  }
  for (const RawStorage& storage : raw.live_at_begin) {
    const StorageId row = rows.storage_of(storage.serial);
    if (row.valid()) storages.parameter[row.index()] = rows.storage_of(storage.parameter);
  }
}

// Parameters belong to the layer that uses them first.
void add_layer_totals(const RawPass& raw, TraceRows& rows) {
  Trace& trace = rows.trace;
  std::vector<bool> seen(trace.storages.size(), false);
  for (std::size_t op = 0; op < raw.ops.size(); ++op) {
    for (const RawUse& use : raw.ops[op].uses) {
      const StorageId row = rows.storage_of(use.view.serial);
      if (!row.valid() || seen[row.index()] ||
          trace.storages.storage_class[row.index()] != StorageClass::parameter ||
          trace.phases.kind[trace.ops.phase[op].index()] != PhaseKind::forward) {
        continue;
      }
      seen[row.index()] = true;
      const LayerId layer = trace.ops.layer[op];
      trace.storages.layer[row.index()] = layer;
      trace.layers.parameter_bytes[layer.index()] += trace.storages.bytes[row.index()];
    }
  }
}

void add_uses(const RawPass& raw, TraceRows& rows) {
  Trace& trace = rows.trace;
  for (std::size_t op = 0; op < raw.ops.size(); ++op) {
    for (const RawUse& use : raw.ops[op].uses) {
      if (!rows.storage_of(use.view.serial).valid()) continue;
      trace.uses.op.push_back(OpId(op));
      trace.uses.tensor.push_back(rows.tensor(use.view, 0));
      trace.uses.mode.push_back(use.mode);
    }
  }
}

void add_peaks(const RawPass& raw, const CleanPass& clean, Trace& trace) {
  const AllocatorCurve& curve = trace.allocator;
  EventId at(0);
  Bytes peak = raw.requested_at_begin;
  for (std::size_t i = 0; i < curve.size(); ++i) {
    if (curve.requested[i] > peak) {
      peak = curve.requested[i];
      at = curve.event[i];
    }
  }
  Peaks& peaks = trace.peaks;
  peaks.device.push_back(0);
  peaks.event.push_back(at);
  peaks.op.push_back(trace.events.op[at.index()]);
  peaks.requested.push_back(peak);
  peaks.active.push_back(clean.peak_active);
  peaks.reserved.push_back(clean.peak_reserved);
}

}  // namespace

void add_conclusions(const RawPass& structure, const CleanPass& clean, TraceRows& rows) {
  classify(structure, rows);
  add_layer_totals(structure, rows);
  add_uses(structure, rows);
  add_peaks(structure, clean, rows.trace);
}

}  // namespace stowage::profiler
