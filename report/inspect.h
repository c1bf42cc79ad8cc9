// What `stowage inspect` knows about a trace, as values: the command and the
// desktop program print them.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "report/memory_curve.h"
#include "report/moment.h"
#include "report/storage_uses.h"
#include "traces/result.h"
#include "traces/trace.h"

namespace stowage::report {

struct PhaseRow {
  PhaseKind kind = PhaseKind::forward;
  std::int32_t micro_batch = 0;
  std::int64_t ops = 0;  // outermost
  Nanoseconds begin = 0;
  Nanoseconds duration =
      0;                // up to the next phase's begin; of a GPU's step, of the host that launches
  Nanoseconds gpu = 0;  // of the GPU's work that its ops launched
  Bytes peak = 0;       // requested bytes on device 0
};

// Rows of `--by`: a layer, an op name or a class, and what it holds at the moment looked at.
struct GroupRow {
  std::string name;
  std::int64_t storages = 0;
  Bytes bytes = 0;
};

// A layer's own ops only, not those of the layers inside it.
struct LayerRow {
  std::string name;
  std::int32_t calls = 0;
  std::int64_t ops = 0;     // outermost
  Nanoseconds forward = 0;  // device time on a GPU, else CPU time
  Nanoseconds backward = 0;
  Bytes parameter_bytes = 0;
  Bytes saved_bytes = 0;  // storages made in the step that it saved first
  Bytes bytes_at = 0;     // of its storages, at the moment looked at
};

struct AliveRow {
  StorageId storage;
  Bytes bytes = 0;
  StorageClass storage_class = StorageClass::other;
  std::string layer;
  std::string site;          // of its first pack, or empty
  std::string made_by;       // op, or empty when it is older than the step
  bool could_leave = false;  // see MovableBytes::away_bytes
  ByteUse use = ByteUse::needed;
};

// Saved tensors whose storage was made in the step: what offload can move. Whole storages.
struct MovableBytes {
  std::int64_t storages = 0;
  Bytes bytes = 0;
  Bytes alive_bytes = 0;  // alive at the moment looked at
  // Of those, packed before, no longer held by the model's own references (natural free passed) and
  // in use by no unpack: the bytes that could be away at that moment.
  Bytes away_bytes = 0;
};

struct InspectReport {
  Moment moment;  // that is looked at: the peak, or the highest point of one op
  std::vector<PhaseRow> phases;
  std::vector<LayerRow> layers;   // in forward order, rows with nothing to tell left out
  std::vector<GroupRow> groups;   // largest first
  std::vector<GroupRow> classes;  // largest first
  std::vector<AliveRow> alive;    // largest first, all of them
  MovableBytes movable;
  BytesByUse by_use;     // of `alive`, on the device's time
  Nanoseconds step = 0;  // as measured; of a step that did not fit its replay
  std::int64_t outermost_ops = 0;
  MemoryCurve curve;  // requested bytes on device 0
};

// InspectReport::step. Precondition: the trace has events.
[[nodiscard]] Nanoseconds measured_step(const Trace& trace);

// InspectReport::by_use at the peak; all 0 of a trace without events. Cost: O(trace); of a GPU's
// trace that of two replays, too.
[[nodiscard]] BytesByUse use_at_peak(const Trace& trace);

enum class GroupBy : std::uint8_t { layer, op, storage_class };

// `at`: "peak", an op's number, or an op's name (its highest occurrence). Errors: usage, an unknown
// op with the nearest name. Cost: O(trace + alive log alive); of a GPU's
// trace that of a replay, too.
[[nodiscard]] Result<InspectReport> inspect(const Trace& trace, GroupBy by, const std::string& at);

}  // namespace stowage::report
