// A Trace is what one training step did: layers, ops in program order, storages with their
// lifetimes, saved tensors, one total order of events, times, and the calibration of the link.
// It is a value, immutable after load or assembly. Tables are struct-of-arrays; every column of a
// table has the same length (checked by traces/validate.h). docs/trace-format.md is the reference
// for the JSON form; the order of columns here is the order in the file.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "traces/ids.h"
#include "traces/units.h"

namespace stowage {

inline constexpr int kTraceSchemaMajor = 1;
inline constexpr int kTraceSchemaMinor = 14;

enum class StorageClass : std::uint8_t {
  parameter,
  gradient,
  optimizer_state,
  buffer,
  activation,
  temporary,
  input,
  output,
  workspace,
  other,
};

// How the class of a storage was established.
enum class Evidence : std::uint8_t { none, registered, hook, data_flow };

// `recompute` (since schema 1.7): a segment's forward, run again in backward.
enum class PhaseKind : std::uint8_t { zero_grad, data, forward, backward, optimizer, recompute };

enum class DType : std::uint8_t {
  uint8,
  int8,
  int16,
  int32,
  int64,
  float16,
  bfloat16,
  float32,
  float64,
  complex64,
  complex128,
  boolean,
  // Since schema 1.6; the names are PyTorch's.
  uint16,
  uint32,
  uint64,
  complex32,
  float8_e5m2,
  float8_e4m3fn,
  float8_e5m2fnuz,
  float8_e4m3fnuz,
  float8_e8m0fnu,
  float4_e2m1fn_x2,
  qint8,
  quint8,
  qint32,
  quint4x2,
  quint2x4,
  bits1x8,
  bits2x4,
  bits4x2,
  bits8,
  bits16,
  uint1,
  uint2,
  uint3,
  uint4,
  uint5,
  uint6,
  uint7,
  int1,
  int2,
  int3,
  int4,
  int5,
  int6,
  int7,
  // None of these, or no tensor. In a file of an earlier minor schema any of those above; its
  // elements count as one byte there.
  other,
};

enum class UseMode : std::uint8_t { read, write, in_place, alias };

// The total order of a step. `ref` of an event is the row of the table named in brackets.
enum class EventKind : std::uint8_t {
  step_begin,            // [-]
  step_end,              // [-]
  alloc,                 // [storages]
  free,                  // [storages]
  pack,                  // [saved]
  unpack,                // [unpacks]
  layer_forward_begin,   // [layers]
  layer_forward_end,     // [layers]
  layer_backward_begin,  // [layers] gradient of the layer's output arrived
  layer_backward_end,    // [layers] gradient of the layer's first differentiable input is complete
  gradient_accumulated,  // [storages] the parameter's storage
  op_begin,              // [ops]
  op_end,                // [ops] outermost and primitive ops only
  backward_begin,        // [-]
  backward_end,          // [-]
  // Around the optimizer's update of one parameter. Since schema 1.2.
  parameter_update_begin,  // [storages] the parameter's storage
  parameter_update_end,    // [storages]
  // Around a segment's forward that runs again. Since schema 1.7.
  recompute_begin,  // [layers] the segment's first layer
  recompute_end,    // [layers] the same
};

struct Schema {
  int major = kTraceSchemaMajor;
  int minor = kTraceSchemaMinor;
  std::string writer;
  std::vector<std::string> features;
};

struct Run {
  std::string uuid;
  std::string created;  // ISO 8601, UTC
  std::string source;   // "recorded" or "imported"
  std::string model;    // model spec, e.g. "gpt2:layers=6,width=256"
  std::int64_t batch = 0;
  std::int64_t seq = 0;  // 0 = the model has no sequence length
  std::string dtype;     // fp32, tf32, bf16, amp
  // What forward and loss compute under: PyTorch's autocast to "bf16" or "fp16"; empty = none.
  // Since schema 1.11.
  std::string autocast;
  std::string optimizer;  // none, sgd, adam, adamw
  // A gradient scaler with all its options; empty = none. Since schema 1.11.
  std::string grad_scaler;
  std::int64_t seed = 0;
  std::int64_t steps = 0;  // recorded steps
  std::int64_t warmup_steps = 0;
  std::int64_t threads = 0;  // intra-op threads; they change gradients and bytes on a CPU
  bool deterministic = true;
  std::vector<std::string> argv;
};

struct Environment {
  std::string device;       // "cpu" or "cuda"
  std::string device_name;  // CPU or GPU model
  std::string torch;        // LibTorch version
  std::string cuda;         // empty on cpu
  std::string driver;
  std::string cupti;
  std::string allocator;    // allocator configuration that changes bytes
  Bytes device_memory = 0;  // 0 = unknown
  Bytes context_bytes = 0;  // CUDA context and kernels' code, outside the allocator
};

struct Clock {
  std::int64_t base_unix_ns = 0;
  std::string source;
  std::int64_t causality_violations = 0;
  Nanoseconds largest_clamp = 0;
};

// Zero where it must be zero, or the recording fails.
struct Quality {
  std::int64_t dropped_records = 0;
  std::int64_t zero_timestamp_records = 0;
  std::int64_t unattributed_kernels = 0;
  Nanoseconds unattributed_ns = 0;
  std::int64_t unmatched_frees = 0;
  std::int64_t join_mismatches = 0;
  // Since schema 1.13, else 0. They were there before anybody listened: the setup begins with them,
  // in no order, and where the allocator put them is not known.
  std::int64_t adopted_allocations = 0;
};

// Median step time of each pass, and the requested peak that it saw: the perturbation is stored.
struct PassCost {
  Nanoseconds step_ns = 0;
  Bytes peak_requested = 0;
};

struct Overhead {
  PassCost clean;
  PassCost timing;  // zero on a CPU, which has no such pass
  PassCost structure;
  PassCost offload_all;
  // Since schema 1.14, else 0. The distance of the quartiles of the clean steps, of their median;
  // at most kPpm.
  Ppm clean_spread = 0;
};

struct Layers {
  std::vector<StringId> name;  // full dotted path, e.g. "layers.3.mlp"
  std::vector<LayerId> parent;
  std::vector<StringId> kind;          // free text, e.g. "layer"; "step" for the root row
  std::vector<Bytes> parameter_bytes;  // parameters whose first user is this layer
  std::vector<std::int32_t> forward_order;
  std::vector<std::int32_t> calls;  // times called in the step
  [[nodiscard]] std::size_t size() const { return name.size(); }
};

// What a layer's callable is given (rows at its layer_forward_begin) and what it returns (at its
// layer_forward_end), in order. None for a scope without a callable, and in a file of an earlier
// schema than 1.7.
struct LayerTensors {
  std::vector<EventId> event;
  std::vector<TensorId> tensor;  // -1 = an undefined one
  std::vector<std::uint8_t> requires_grad;
  [[nodiscard]] std::size_t size() const { return event.size(); }
};

// Consecutive spans of `events`; the last event belongs to the phase.
struct Phases {
  std::vector<PhaseKind> kind;
  std::vector<std::int32_t> micro_batch;
  std::vector<EventId> first_event;
  std::vector<EventId> last_event;
  [[nodiscard]] std::size_t size() const { return kind.size(); }
};

// Dispatched ops in program order (a parent comes before its children).
struct Ops {
  std::vector<StringId> name;  // "aten::mm"
  std::vector<LayerId> layer;  // innermost layer (row 0 = "step" when outside any)
  std::vector<PhaseId> phase;
  std::vector<OpId> parent;  // -1 = outermost
  std::vector<std::int32_t> thread;
  std::vector<Nanoseconds> start;      // since step begin, on the clean step's scale
  std::vector<Nanoseconds> duration;   // CPU side
  std::vector<std::int64_t> sequence;  // autograd sequence number, -1 = none
  std::vector<OpId> forward_op;        // of a backward op, -1 = none
  std::vector<std::uint8_t> in_place;
  // PyTorch does not compose it of others ahead of autograd, and it lies in no other such op. It
  // has an end event and uses, as outermost ops have. In a file of an earlier minor schema: none.
  std::vector<std::uint8_t> primitive;
  [[nodiscard]] std::size_t size() const { return name.size(); }
};

enum class GpuKind : std::uint8_t { kernel, memcpy, memset };

// Device activity of the timing pass, in order of start; times on the clean step's scale. Empty for
// a CPU trace. `event`: launched after this event and before the next one.
struct Gpu {
  std::vector<GpuKind> kind;
  std::vector<OpId> op;
  std::vector<StringId> name;
  std::vector<std::int64_t> correlation;
  std::vector<std::int32_t> stream;
  std::vector<Nanoseconds> start;
  std::vector<Nanoseconds> duration;
  std::vector<Nanoseconds> launch_start;
  std::vector<Nanoseconds> launch_duration;
  std::vector<Bytes> bytes;  // copies and memsets, else 0
  std::vector<EventId> event;
  [[nodiscard]] std::size_t size() const { return kind.size(); }
};

// Places inside the step at which the CPU waited until the device had done all that was issued so
// far: after `event` and before the next one. Empty for a CPU trace.
struct Syncs {
  std::vector<EventId> event;
  std::vector<Nanoseconds> duration;  // that the CPU stands still; part of the events' times
  [[nodiscard]] std::size_t size() const { return event.size(); }
};

// Views onto storages: offset and strides in elements.
struct Tensors {
  std::vector<StorageId> storage;
  std::vector<DType> dtype;
  std::vector<ListId> shape;
  std::vector<ListId> strides;
  std::vector<std::int64_t> offset;
  std::vector<OpId> producer;
  std::vector<std::int64_t> version;
  // Bytes of one element. Since schema 1.6; of an earlier file element_bytes(dtype).
  std::vector<Bytes> item_bytes;
  [[nodiscard]] std::size_t size() const { return storage.size(); }
};

// One row per allocation (never per address). Bytes are the *requested* size. Rows of class
// parameter are in the order in which the parameters were registered, a tied one once. alloc_event:
// its `alloc` event, -1 when it existed before the step began. free_event: its `free` event in the
// structure pass (autograd keeps what it saved), -1 when it
//   outlives the step.
// natural_free_event: the last event that is no `free` before the bytes went away in the
//   offload_all pass, that is when only the model's own references hold the storage; the bytes are
//   gone after that event and before the next one. -1 when it outlives the step.
struct Storages {
  std::vector<std::int32_t> device;  // 0 = the training device
  std::vector<Bytes> bytes;
  std::vector<Bytes> rounded_bytes;  // what the allocator handed out; = bytes on a CPU
  std::vector<StorageClass> storage_class;
  std::vector<Evidence> evidence;
  std::vector<LayerId> layer;
  std::vector<OpId> alloc_op;
  std::vector<EventId> alloc_event;
  std::vector<EventId> free_event;
  std::vector<EventId> natural_free_event;
  // Whose gradient, or piece of optimizer state, it is: a row of class parameter. -1 for others,
  // and where the recording did not say. Since schema 1.6.
  std::vector<StorageId> parameter;
  [[nodiscard]] std::size_t size() const { return bytes.size(); }
};

// What the device's allocator did before the recorded step was one of many: ahead of the first step
// of the process, and what the first step did that later ones do not (cuBLAS workspaces, optimizer
// state, gradients that are kept). A replay of the caching allocator starts with it. In program
// order; empty on a CPU.
struct Setup {
  std::vector<Bytes> bytes;           // requested, of an allocation; 0 in a row that frees
  std::vector<std::int32_t> free_of;  // the row whose allocation is freed here, -1 = an allocation
  std::vector<StorageId> storage;     // that it is at step begin; -1 when it is gone by then
  // -1 = ahead of the first step; else in it, where the recorded step is behind this event, ahead
  // of the next one and of the frees between. Never decreasing.
  std::vector<EventId> event;
  [[nodiscard]] std::size_t size() const { return bytes.size(); }
};

struct Uses {
  std::vector<OpId> op;
  std::vector<TensorId> tensor;
  std::vector<UseMode> mode;
  [[nodiscard]] std::size_t size() const { return op.size(); }
};

// One total order; row 0 is step_begin, the last row is step_end. `op` is the innermost op that was
// running, -1 = none. `time` is since step begin, on the clean step's scale, never decreasing.
struct Events {
  std::vector<EventKind> kind;
  std::vector<std::int32_t> ref;
  std::vector<OpId> op;
  std::vector<Nanoseconds> time;
  [[nodiscard]] std::size_t size() const { return kind.size(); }
};

// Saved tensors in pack order: row = ordinal of the pack in the step. What a segment that runs
// again is given is saved at its begin, with an ordinal of its own (boundary_ordinal()).
struct Saved {
  std::vector<StringId> site;  // "layers.3.mlp#2", "embed@2#0"
  std::vector<LayerId> layer;
  std::vector<std::int32_t> call;     // which call of the layer, 0-based
  std::vector<std::int32_t> ordinal;  // of the pack inside that call; negative: an input
  std::vector<TensorId> tensor;       // the view that was saved
  std::vector<StorageId> storage;     // = tensors.storage[tensor], or -1 for no storage at all
  std::vector<std::int32_t> storage_index;  // storages numbered by first pack; part of fingerprint
  std::vector<OpId> op;                     // saved by
  std::vector<EventId> event;               // its `pack` event
  std::vector<std::int64_t> version;        // of the tensor, relative to the storage's first pack
  [[nodiscard]] std::size_t size() const { return site.size(); }
};

// Of input number k of a segment's call: -1 - k.
[[nodiscard]] constexpr std::int32_t boundary_ordinal(std::int32_t input) {
  return -1 - input;
}

// Unpacks in order: row = ordinal of the unpack in the step. A saved tensor may have none or many.
// released_event: the last event that is no `free` before the last reference to the tensor handed
// out by this unpack died (offload_all pass); -1 when it outlives the step.
struct Unpacks {
  std::vector<SavedId> saved;
  std::vector<OpId> op;
  std::vector<EventId> event;  // its `unpack` event
  std::vector<EventId> released_event;
  [[nodiscard]] std::size_t size() const { return saved.size(); }
};

// The allocator's counters right after an `alloc` or `free` event. -1 = not known on this device.
struct AllocatorCurve {
  std::vector<EventId> event;
  std::vector<Bytes> requested;
  std::vector<Bytes> active;
  std::vector<Bytes> reserved;
  [[nodiscard]] std::size_t size() const { return event.size(); }
};

// Peaks of the clean step, by device. reserved -1 = null.
struct Peaks {
  std::vector<std::int32_t> device;
  std::vector<EventId> event;
  std::vector<OpId> op;
  std::vector<Bytes> requested;
  std::vector<Bytes> active;
  std::vector<Bytes> reserved;
  [[nodiscard]] std::size_t size() const { return device.size(); }
};

// Effective speed of one copy direction by transfer size, increasing sizes. A transfer of
// bytes[i] takes bytes[i] / bytes_per_second[i] seconds, latency included.
struct LinkCurve {
  std::vector<Bytes> bytes;
  std::vector<std::int64_t> bytes_per_second;      // of the fastest quartile of copies
  std::vector<std::int64_t> bytes_per_second_p10;  // 10th percentile
  Nanoseconds latency = 0;
};

struct Calibration {
  std::string method;
  std::int64_t samples = 0;
  LinkCurve d2h;
  LinkCurve h2d;
  Ppm duplex = kPpm;                // speed of a lane while the other one is busy
  Ppm copy_interference = kPpm;     // speed of a lane while compute is busy
  Ppm compute_interference = kPpm;  // speed of compute while a lane is busy
  std::int64_t pageable_bytes_per_second = 0;
  Nanoseconds pin_ns_per_gib = 0;
  Nanoseconds launch_ns = 0;
  Nanoseconds sync_ns = 0;
  Nanoseconds copy_issue_ns = 0;  // CPU time to queue one copy on a lane
  Nanoseconds wait_issue_ns = 0;  // CPU time to make compute wait for one copy
  Nanoseconds hook_ns = 0;        // CPU time of one pack or unpack through the executor's hooks
  // A GPU at its power limit runs compute faster behind a rest. Since schema 1.3, else as here.
  Ppm least_compute = kPpm;  // time of compute between long rests, of that without any
  Ppm rest_gain = 0;         // compute time that 1 s of rest saves, until then
  // How long a GPU's compute pauses beside what kernels and copies take. Since schema 1.4, else 0.
  Nanoseconds start_gap_ns = 0;         // where a copy on a lane starts
  Nanoseconds handover_ns = 0;          // from compute to such a copy and back, when both wait
  Nanoseconds compute_copy_gap_ns = 0;  // at a copy on the compute stream
  // Speed of the launch thread behind a wait for the device. Since schema 1.5, else as here.
  Ppm woken_launch = kPpm;
  // The optimizer's update of one parameter on the host. Since schema 1.12, else 0 and as here:
  // nobody has measured it.
  Nanoseconds host_update_ns = 0;          // of any
  Nanoseconds host_update_ns_per_gib = 0;  // more, of parameter, gradient and state
  Ppm host_update_interference = kPpm;     // its speed while a lane is busy
};

// What of the step ran in parts of the batch, one behind the other. Empty: nothing did; so in a
// file of an earlier schema than 1.10.
struct MicroBatches {
  std::vector<StringId> segment;    // the layer that it begins with, or "*" for the whole step
  std::vector<std::int32_t> count;  // parts; 2 or more
  [[nodiscard]] std::size_t size() const { return segment.size(); }
};

struct Trace {
  Schema schema;
  Run run;
  Environment env;
  Clock clock;
  Quality quality;
  Overhead overhead;
  std::string fingerprint;  // "sha256:..", traces/fingerprint.h

  std::vector<std::string> strings;
  std::vector<std::vector<std::int64_t>> lists;  // shapes and strides, each once

  Layers layers;
  LayerTensors layer_tensors;
  Phases phases;
  Ops ops;
  Gpu gpu;
  Syncs syncs;
  Tensors tensors;
  Storages storages;
  Setup setup;
  Uses uses;
  Events events;
  Saved saved;
  Unpacks unpacks;
  AllocatorCurve allocator;
  Peaks peaks;
  MicroBatches micro_batches;
  Calibration calibration;

  // The same step recorded in other micro-batches, each a whole recording that has none of these.
  // Since schema 1.10.
  std::vector<std::shared_ptr<const Trace>> divided;

  [[nodiscard]] const std::string& string(StringId id) const { return strings[id.index()]; }
  [[nodiscard]] const std::vector<std::int64_t>& list(ListId id) const { return lists[id.index()]; }
};

// Of the step, in micro-batches as well.
void set_calibration(Trace& trace, const Calibration& calibration);

// Bytes of one element; 1 for `other`.
[[nodiscard]] Bytes element_bytes(DType dtype);

// Names as they stand in files and output ("activation", "float32", "layer_forward_begin").
[[nodiscard]] const char* name_of(StorageClass value);
[[nodiscard]] const char* name_of(Evidence value);
[[nodiscard]] const char* name_of(PhaseKind value);
[[nodiscard]] const char* name_of(DType value);
[[nodiscard]] const char* name_of(UseMode value);
[[nodiscard]] const char* name_of(EventKind value);
[[nodiscard]] const char* name_of(GpuKind value);

// What alignments kernels look at goes up to this: cuBLAS and cuBLASLt choose by 256 bytes.
inline constexpr Bytes kViewAlignment = 256;

// The bytes of a storage that a view touches: [begin, end), begin rounded down to kViewAlignment so
// that a copy keeps the view's alignment, end at most the storage's size. Empty for a zero-size
// view.
struct ByteRange {
  Bytes begin = 0;
  Bytes end = 0;
  [[nodiscard]] Bytes size() const { return end - begin; }
};
[[nodiscard]] ByteRange byte_range(const std::vector<std::int64_t>& shape,
                                   const std::vector<std::int64_t>& strides, std::int64_t offset,
                                   Bytes element_size);
[[nodiscard]] ByteRange byte_range(const Trace& trace, TensorId tensor);

}  // namespace stowage
