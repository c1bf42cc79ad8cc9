// What the observers write down during one step, before it becomes a Trace. No device header, no
// LibTorch: assemble() is tested on fabricated records.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "profiler/assembly/raw_activity.h"
#include "traces/trace.h"

namespace stowage::profiler {

// `free`, `released` and `hook_gone` may stand at different places in different passes of one
// recording; every other kind is *common*: its sequence must be the same in all passes, which is
// what joins them.
enum class RawKind : std::uint8_t {
  step_begin,
  step_end,
  alloc,                // id = allocation serial
  free,                 // id = allocation serial
  pack,                 // id = row of saved
  unpack,               // id = row of unpacks
  released,             // id = row of unpacks; offload_all pass only
  hook_gone,            // id = row of saved: autograd let go of it; offload_all pass only
  layer_forward_begin,  // id = row of layer_paths; likewise the next three
  layer_forward_end,
  layer_backward_begin,
  layer_backward_end,
  gradient_accumulated,  // id = serial of the parameter's storage
  op_begin,              // id = row of ops
  op_end,                // id = row of ops, outermost and primitive ones only
  backward_begin,
  backward_end,
  parameter_update_begin,  // id = serial of the parameter's storage
  parameter_update_end,
  recompute_begin,  // id = row of layer_paths: a segment's first layer
  recompute_end,    // the same
};

struct RawEvent {
  RawKind kind = RawKind::step_begin;
  std::int64_t id = -1;
  std::int64_t time_ns = 0;  // any monotonic clock
  Bytes requested = 0;       // alloc, free: the allocator's counter after it
  Bytes bytes = 0;           // alloc: requested size
};

struct RawStorage {
  std::int64_t serial = -1;
  Bytes bytes = 0;
  StorageClass storage_class = StorageClass::other;  // `other` when nobody registered it
  // Of a gradient or piece of optimizer state: serial of its parameter's storage, -1 = not known.
  std::int64_t parameter = -1;
};

// A storage that is a parameter's .grad.
struct RawGradient {
  std::int64_t serial = -1;
  std::int64_t parameter = -1;  // serial of the parameter's storage
};

struct RawView {
  std::int64_t serial = -1;  // -1: not the device's memory
  DType dtype = DType::other;
  std::vector<std::int64_t> shape;
  std::vector<std::int64_t> strides;
  std::int64_t offset = 0;
  Bytes item_bytes = 1;  // of one element
};

struct RawUse {
  RawView view;
  UseMode mode = UseMode::read;
};

struct RawOp {
  std::string name;
  std::int32_t parent = -1;  // row of ops, -1 = outermost
  std::int32_t thread = 0;
  std::int64_t sequence = -1;           // the number that the next autograd node would get
  std::int64_t backward_sequence = -1;  // of the node that is running, -1 = none
  bool is_primitive = false;            // Ops::primitive
  std::vector<RawUse> uses;             // outermost and primitive ops only
};

struct RawSaved {
  std::int32_t layer = -1;  // row of layer_paths, -1 = outside any layer
  std::int32_t call = 0;
  std::int32_t ordinal = 0;  // negative: an input (boundary_ordinal())
  RawView view;
  std::int64_t version = 0;
};

// What a layer's callable is given, or what it returned.
struct RawPassed {
  std::int64_t boundary = -1;  // which layer_forward_begin or layer_forward_end of the pass
  RawView view;
  bool is_defined = true;
  bool requires_grad = false;
};

struct RawUnpack {
  std::int32_t saved = -1;
};

// On the clock of the events.
struct RawSpan {
  std::int64_t begin_ns = 0;
  std::int64_t end_ns = 0;
};

// One observed step.
struct RawPass {
  bool light = false;  // without uses and views, for the timing pass
  // Saved tensors passed through hooks of ours. Without, there are no packs and unpacks.
  bool hooked = true;
  std::vector<RawEvent> events;
  std::vector<std::string> layer_paths;
  std::vector<RawOp> ops;
  std::vector<RawSaved> saved;
  std::vector<RawUnpack> unpacks;
  std::vector<RawPassed> passed;  // in order of boundaries; not in a pass that is light
  // Every device allocation that existed; those of parameters among themselves in the order in
  // which they were registered.
  std::vector<RawStorage> live_at_begin;
  std::vector<RawGradient> gradients;  // made in the step
  Bytes requested_at_begin = 0;        // the allocator's counter
  Bytes peak_requested = 0;            // the allocator's own peak over the step
  Nanoseconds step_ns = 0;
  std::vector<RawSpan> hook_spans;    // in order; copies of saved tensors, which are not the step's
  std::vector<std::int64_t> threads;  // the system's numbers of the threads that ran the step
};

// The steps recorded with the GPU's activity: one of them (the one whose time is taken), on
// CLOCK_REALTIME, and the activity of all.
struct TimingPass {
  RawPass pass;
  RawActivities activities;
  Nanoseconds step_ns = 0;  // pass.step_ns
};

// What the allocator did for the program from the start to the end of the first step, in program
// order.
struct RawSetup {
  std::int64_t serial = -1;  // of the structure pass
  Bytes bytes = 0;
  bool is_free = false;
  bool in_first_step = false;
};

// The unobserved steps.
struct CleanPass {
  bool out_of_memory = false;  // there is no clean step; everything else is 0
  Nanoseconds step_ns = 0;
  Ppm spread = 0;            // Overhead::clean_spread
  Bytes peak_requested = 0;  // of a steady step
  Bytes peak_active = 0;
  Bytes peak_reserved = -1;
};

struct RawRecording {
  Run run;
  Environment env;
  Calibration calibration;
  CleanPass clean;
  RawPass structure;  // everything kept; empty when the clean pass ran out of memory
  // Event times of more structure steps; each as long as structure.events. May be empty.
  std::vector<std::vector<std::int64_t>> more_times;
  RawPass offload_all;
  std::optional<TimingPass> timing;  // on a GPU
  std::vector<RawSetup> setup;
  std::int64_t adopted = 0;  // of the setup's first rows: Quality::adopted_allocations
};

}  // namespace stowage::profiler
