// A Plan is what the user decides, in the user's terms: rules that say which saved tensors are
// kept or offloaded, when they leave and when they come back. It is a value; its JSON form
// (simulator/plan/plan_json.h) is stable, so plans diff well. docs/plan-format.md is the reference.
// A part of the format that Stowage cannot run yet (a micro-batch in a program point) has no place
// here: the reader refuses it as "not supported yet".
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "simulator/plan/stream_modes.h"
#include "traces/trace.h"

namespace stowage::simulator {

// recompute: made again by ops of the forward, without its layer (simulator/step/op_chains.h).
enum class Decision : std::uint8_t { keep, offload, recompute };

// lane: a side stream; compute: on the compute stream; blocking: the CPU waits for the copy.
enum class CopyMode : std::uint8_t { lane, compute, blocking };

// `fwd:layers.3:end`, `bwd:layers.+2:begin`, `fwd:layers.3.mlp:4` (before op number 4).
struct ProgramPoint {
  enum class Phase : std::uint8_t { forward, backward, optimizer };
  enum class Where : std::uint8_t { begin, end, op };
  Phase phase = Phase::forward;
  std::string layer;          // path; when relative: the part before the sign, e.g. "layers."
  bool relative = false;      // layer is counted from the rule's own layer in forward order
  std::int32_t distance = 0;  // relative only; clamps to the ends of the phase
  Where where = Where::begin;
  std::int32_t op = -1;  // Where::op only
  bool operator==(const ProgramPoint&) const = default;
};

// When an offloaded storage is given up. `pack` with lag N: after N more packs of offloaded saved
// tensors; what remains leaves at the first unpack of the step.
struct ReleasePoint {
  enum class Kind : std::uint8_t { automatic, pack, point };
  Kind kind = Kind::automatic;
  std::int32_t lag = 0;
  ProgramPoint point;
  bool operator==(const ReleasePoint&) const = default;
};

// When the copy back starts. `unpack`: on demand, at the first unpack.
struct ReloadPoint {
  enum class Kind : std::uint8_t { automatic, unpack, point };
  Kind kind = Kind::automatic;
  ProgramPoint point;
  bool operator==(const ReloadPoint&) const = default;
};

// The first rule that matches a site decides. Conditions that are absent match everything, except
// that saved tensors whose storage existed before the step (parameters, buffers, inputs) are only
// matched by a rule that names their class.
struct SavedRule {
  std::optional<std::string> site;  // pattern: *, ?, [a-b] for numbers
  std::optional<StorageClass> storage_class;
  std::optional<std::string> op;   // pattern on the name of the op that saved it
  std::optional<Bytes> min_bytes;  // of the saved view
  Decision decision = Decision::keep;
  ReleasePoint release;
  ReloadPoint reload;
  CopyMode copy_out = CopyMode::lane;
  CopyMode copy_in = CopyMode::lane;
  bool share = true;  // one copy a storage; false: one a saved view and unpack
  bool operator==(const SavedRule&) const = default;
};

// Layer calls that run again in backward instead of keeping what they save, the outermost ones that
// the pattern names: each by itself, or several in a row as one segment.
struct RecomputeRule {
  static constexpr std::int32_t kAll = 0;
  std::string segment;    // pattern of layer calls: "layers.[0-3]", "embed@2"
  std::int32_t each = 1;  // layers in a segment; kAll: all that it names
  // Keep or offload what a segment is given, where no saved rule names it ("#in"). Absent = as the
  // saved rules say, and kept where none does.
  std::optional<Decision> boundary{};
  // Layer calls within each segment that run again by themselves behind it; what they are given
  // stays.
  std::vector<RecomputeRule> within{};
  bool operator==(const RecomputeRule&) const = default;
};

// Which parameters are on the device only while they are needed. A parameter belongs to the first
// shard with a pattern that matches its layer (the first that uses it) or a layer above that one;
// those of no shard stay. A shard is what `prefetch` counts in.
struct ParameterPlan {
  using Stream = StreamMode;
  std::vector<std::vector<std::string>> shards;  // patterns of layers: *, ?, [a-b] for numbers
  StreamModes stream;                            // off: shards are only a grouping
  // A shard's loads start when the visit this many visits ahead of its own starts; 0: its own.
  // Absent = automatic: as late as the link allows, within the budget.
  std::optional<std::int32_t> prefetch;
  bool operator==(const ParameterPlan&) const = default;
};

// Where the optimizer's state of a layer's parameters is. stream: at home on the host, on the
// device for the update of its parameter. host: it never leaves the host, which updates the
// parameter ("step": "host" in the file).
enum class StatePlace : std::uint8_t { device, stream, host };

// The first rule that matches a parameter's layer, or a layer above that one, decides about the
// state of that parameter; where none does it stays on the device.
struct OptimizerRule {
  std::string layer;  // pattern: *, ?, [a-b] for numbers
  StatePlace state = StatePlace::device;
  bool operator==(const OptimizerRule&) const = default;
};

// Where the gradients of a layer's parameters are. host: they leave the device once they have
// accumulated, and are there again for what uses them.
enum class GradientPlace : std::uint8_t { device, host };

// As OptimizerRule, about the gradient of that parameter.
struct GradientRule {
  std::string layer;
  GradientPlace place = GradientPlace::device;
  bool operator==(const GradientRule&) const = default;
};

// A tail of the step (executor/tail.h) that runs in parts of the batch, one behind the other.
struct MicroBatchRule {
  std::string segment;     // the layer that it begins with, or "*" for the whole step
  std::int32_t count = 1;  // parts; 1 = all at once
  bool operator==(const MicroBatchRule&) const = default;
};

struct PlanTarget {
  std::string model;
  std::int64_t batch = 0;
  std::int64_t seq = 0;
  std::string dtype;
  std::string autocast;  // empty = none, or not said
  std::string optimizer;
  std::string grad_scaler;   // likewise
  std::string device;        // "cpu" or "cuda", empty = not said
  std::int64_t threads = 0;  // intra-op threads of a CPU recording, 0 = not said
  std::string fingerprint;   // "sha256:.."
  std::string trace_file;    // relative to the plan's folder
  std::string trace;         // "sha256:.." of the trace file's bytes after gunzip
  bool operator==(const PlanTarget&) const = default;
};

// What a plan for this step says of it; where the trace lies is the caller's to add.
[[nodiscard]] PlanTarget target_of(const Trace& trace);

enum class PeakKind : std::uint8_t { requested, active, reserved };

// Whose device memory a planned step runs in: PyTorch's caching allocator's, or pages that are
// mapped ahead and where every allocation has its place (simulator/placement/). What is active and
// reserved is meant of that memory: of planned memory, reserved is what its pages take.
enum class PlacementMode : std::uint8_t { caching, planned };

struct PlanBudget {
  std::optional<Bytes> device;  // absent = no limit
  std::string device_text;      // as the user wrote it ("60%", "24GiB"), for the file
  PeakKind on = PeakKind::active;
  std::optional<Bytes> automatic;  // what `automatic` points stay within; absent = device
  std::optional<Bytes> host;
  std::string host_text;
  bool operator==(const PlanBudget&) const = default;
};

struct Predicted {
  Bytes peak_requested = 0;
  Bytes peak_active = 0;
  Bytes peak_reserved = -1;  // -1 = null: the device has no such number
  Nanoseconds step = 0;
  Nanoseconds stall = 0;
  Bytes host = 0;
  bool operator==(const Predicted&) const = default;
};

struct MadeBy {
  std::string tool;
  std::string policy;
  std::int64_t seed = 0;
  std::string created;
  bool operator==(const MadeBy&) const = default;
};

struct Plan {
  PlanTarget target;
  PlanBudget budget;
  PlacementMode placement = PlacementMode::caching;
  std::vector<SavedRule> saved;
  std::vector<RecomputeRule> recompute;  // the first that names a layer call has it
  std::optional<ParameterPlan> parameters;
  std::vector<GradientRule> gradients;
  std::vector<OptimizerRule> optimizer;
  std::vector<MicroBatchRule> micro_batches;  // each segment once
  std::optional<Predicted> predicted;
  std::optional<Nanoseconds> lower_bound_step;
  std::optional<std::int64_t> gap_ppm;
  MadeBy made_by;
  bool operator==(const Plan&) const = default;
};

[[nodiscard]] const char* name_of(Decision value);
[[nodiscard]] const char* name_of(CopyMode value);
[[nodiscard]] const char* name_of(PeakKind value);
[[nodiscard]] const char* name_of(PlacementMode value);
[[nodiscard]] const char* name_of(StatePlace value);
[[nodiscard]] const char* name_of(GradientPlace value);

}  // namespace stowage::simulator
