// The one list of a Trace's tables, columns and fields, with what a value of each may be. Writer,
// reader, validator and the test of the JSON Schema all go through it, so a new column is written
// here once (and in trace.schema.json, which a test compares).
//
//   visit_tables(trace, f)    f(key, table)          every columnar table
//   visit_columns(table, f)   f(key, vector, rule)   every column of a table
//   visit_sections(trace, f)  f(key, section)        every object of single values
//   visit_fields(section, f)  f(key, value, rule)    every value of a section; nested sections too
//
// Everything is in the order of the file. Works on const and non-const traces.
#pragma once

#include <concepts>
#include <cstdint>
#include <type_traits>

#include "traces/trace.h"

namespace stowage {

// What a value may be; checked by traces/validate.h.
enum class Rule : std::uint8_t {
  any,
  row,              // a row of the id's table
  row_or_none,      // ... or -1
  size,             // 0 ... kMaxSize
  size_or_unknown,  // -1 ... kMaxSize
  time,             // 0 ... kMaxTime
  count,            // >= 0
  count_or_none,    // >= -1
  positive,         // >= 1
  factor,           // 1 ... 10^6 parts per million
  optional_factor,  // 0 ... 10^6; a file of an earlier minor schema does not have it
  optional_time,    // 0 ... kMaxTime; likewise
  optional_count,   // >= 0; likewise: 0
  optional_column,  // >= 1; likewise, and the reader derives it
  optional_row,     // a row or -1; likewise: all -1
  optional_flag,    // 0, 1; likewise: all 0
  optional_text,    // likewise: empty
};

// Larger sizes and times are absurd; below them, sums over a step cannot overflow unseen.
inline constexpr Bytes kMaxSize = std::int64_t{1} << 50;
inline constexpr Nanoseconds kMaxTime = std::int64_t{1} << 50;

template <class T, class U>
concept Same = std::same_as<std::remove_const_t<T>, U>;

template <class T>
concept Section = Same<T, Run> || Same<T, Environment> || Same<T, Clock> || Same<T, Quality> ||
    Same<T, Overhead> || Same<T, PassCost> || Same<T, LinkCurve> || Same<T, Calibration>;

// A file of an earlier minor schema does not have it: it is empty then.
template <class Table>
inline constexpr bool kOptionalTable = Same<Table, LayerTensors> || Same<Table, MicroBatches>;

template <Same<Layers> T, class F>
void visit_columns(T& t, F&& f) {
  f("name", t.name, Rule::row);
  f("parent", t.parent, Rule::row_or_none);
  f("kind", t.kind, Rule::row);
  f("parameter_bytes", t.parameter_bytes, Rule::size);
  f("forward_order", t.forward_order, Rule::count_or_none);
  f("calls", t.calls, Rule::count);
}

template <Same<LayerTensors> T, class F>
void visit_columns(T& t, F&& f) {
  f("event", t.event, Rule::row);
  f("tensor", t.tensor, Rule::row_or_none);
  f("requires_grad", t.requires_grad, Rule::any);
}

template <Same<Phases> T, class F>
void visit_columns(T& t, F&& f) {
  f("kind", t.kind, Rule::any);
  f("micro_batch", t.micro_batch, Rule::count_or_none);
  f("first_event", t.first_event, Rule::row);
  f("last_event", t.last_event, Rule::row);
}

template <Same<Ops> T, class F>
void visit_columns(T& t, F&& f) {
  f("name", t.name, Rule::row);
  f("layer", t.layer, Rule::row);
  f("phase", t.phase, Rule::row);
  f("parent", t.parent, Rule::row_or_none);
  f("thread", t.thread, Rule::any);
  f("start", t.start, Rule::time);
  f("duration", t.duration, Rule::time);
  f("sequence", t.sequence, Rule::count_or_none);
  f("forward_op", t.forward_op, Rule::row_or_none);
  f("in_place", t.in_place, Rule::any);
  f("primitive", t.primitive, Rule::optional_flag);
}

template <Same<Gpu> T, class F>
void visit_columns(T& t, F&& f) {
  f("kind", t.kind, Rule::any);
  f("op", t.op, Rule::row_or_none);
  f("name", t.name, Rule::row);
  f("correlation", t.correlation, Rule::any);
  f("stream", t.stream, Rule::any);
  f("start", t.start, Rule::time);
  f("duration", t.duration, Rule::time);
  f("launch_start", t.launch_start, Rule::any);
  f("launch_duration", t.launch_duration, Rule::time);
  f("bytes", t.bytes, Rule::size);
  f("event", t.event, Rule::row);
}

template <Same<Syncs> T, class F>
void visit_columns(T& t, F&& f) {
  f("event", t.event, Rule::row);
  f("duration", t.duration, Rule::time);
}

template <Same<Tensors> T, class F>
void visit_columns(T& t, F&& f) {
  f("storage", t.storage, Rule::row_or_none);
  f("dtype", t.dtype, Rule::any);
  f("shape", t.shape, Rule::row);
  f("strides", t.strides, Rule::row);
  f("offset", t.offset, Rule::size);
  f("producer", t.producer, Rule::row_or_none);
  f("version", t.version, Rule::any);
  f("item_bytes", t.item_bytes, Rule::optional_column);
}

template <Same<Storages> T, class F>
void visit_columns(T& t, F&& f) {
  f("device", t.device, Rule::count);
  f("bytes", t.bytes, Rule::size);
  f("rounded_bytes", t.rounded_bytes, Rule::size);
  f("class", t.storage_class, Rule::any);
  f("evidence", t.evidence, Rule::any);
  f("layer", t.layer, Rule::row_or_none);
  f("alloc_op", t.alloc_op, Rule::row_or_none);
  f("alloc_event", t.alloc_event, Rule::row_or_none);
  f("free_event", t.free_event, Rule::row_or_none);
  f("natural_free_event", t.natural_free_event, Rule::row_or_none);
  f("parameter", t.parameter, Rule::optional_row);
}

template <Same<Setup> T, class F>
void visit_columns(T& t, F&& f) {
  f("bytes", t.bytes, Rule::size);
  f("free_of", t.free_of, Rule::count_or_none);
  f("storage", t.storage, Rule::row_or_none);
  f("event", t.event, Rule::row_or_none);
}

template <Same<Uses> T, class F>
void visit_columns(T& t, F&& f) {
  f("op", t.op, Rule::row);
  f("tensor", t.tensor, Rule::row);
  f("mode", t.mode, Rule::any);
}

template <Same<Events> T, class F>
void visit_columns(T& t, F&& f) {
  f("kind", t.kind, Rule::any);
  f("ref", t.ref, Rule::count_or_none);
  f("op", t.op, Rule::row_or_none);
  f("time", t.time, Rule::time);
}

template <Same<Saved> T, class F>
void visit_columns(T& t, F&& f) {
  f("site", t.site, Rule::row);
  f("layer", t.layer, Rule::row);
  f("call", t.call, Rule::count);
  f("ordinal", t.ordinal, Rule::any);
  f("tensor", t.tensor, Rule::row);
  f("storage", t.storage, Rule::row_or_none);
  f("storage_index", t.storage_index, Rule::count_or_none);
  f("op", t.op, Rule::row_or_none);
  f("event", t.event, Rule::row);
  f("version", t.version, Rule::any);
}

template <Same<Unpacks> T, class F>
void visit_columns(T& t, F&& f) {
  f("saved", t.saved, Rule::row);
  f("op", t.op, Rule::row_or_none);
  f("event", t.event, Rule::row);
  f("released_event", t.released_event, Rule::row_or_none);
}

template <Same<AllocatorCurve> T, class F>
void visit_columns(T& t, F&& f) {
  f("event", t.event, Rule::row);
  f("requested", t.requested, Rule::size_or_unknown);
  f("active", t.active, Rule::size_or_unknown);
  f("reserved", t.reserved, Rule::size_or_unknown);
}

template <Same<Peaks> T, class F>
void visit_columns(T& t, F&& f) {
  f("device", t.device, Rule::count);
  f("event", t.event, Rule::row_or_none);
  f("op", t.op, Rule::row_or_none);
  f("requested", t.requested, Rule::size_or_unknown);
  f("active", t.active, Rule::size_or_unknown);
  f("reserved", t.reserved, Rule::size_or_unknown);
}

template <Same<MicroBatches> T, class F>
void visit_columns(T& t, F&& f) {
  f("segment", t.segment, Rule::row);
  f("count", t.count, Rule::positive);
}

template <Same<Trace> T, class F>
void visit_tables(T& t, F&& f) {
  f("layers", t.layers);
  f("layer_tensors", t.layer_tensors);
  f("phases", t.phases);
  f("ops", t.ops);
  f("gpu", t.gpu);
  f("syncs", t.syncs);
  f("tensors", t.tensors);
  f("storages", t.storages);
  f("setup", t.setup);
  f("uses", t.uses);
  f("events", t.events);
  f("saved", t.saved);
  f("unpacks", t.unpacks);
  f("allocator", t.allocator);
  f("peaks", t.peaks);
  f("micro_batches", t.micro_batches);
}

template <Same<Run> T, class F>
void visit_fields(T& t, F&& f) {
  f("uuid", t.uuid, Rule::any);
  f("created", t.created, Rule::any);
  f("source", t.source, Rule::any);
  f("model", t.model, Rule::any);
  f("batch", t.batch, Rule::count);
  f("seq", t.seq, Rule::count);
  f("dtype", t.dtype, Rule::any);
  f("autocast", t.autocast, Rule::optional_text);
  f("optimizer", t.optimizer, Rule::any);
  f("grad_scaler", t.grad_scaler, Rule::optional_text);
  f("seed", t.seed, Rule::any);
  f("steps", t.steps, Rule::count);
  f("warmup_steps", t.warmup_steps, Rule::count);
  f("threads", t.threads, Rule::count);
  f("deterministic", t.deterministic, Rule::any);
  f("argv", t.argv, Rule::any);
}

template <Same<Environment> T, class F>
void visit_fields(T& t, F&& f) {
  f("device", t.device, Rule::any);
  f("device_name", t.device_name, Rule::any);
  f("torch", t.torch, Rule::any);
  f("cuda", t.cuda, Rule::any);
  f("driver", t.driver, Rule::any);
  f("cupti", t.cupti, Rule::any);
  f("allocator", t.allocator, Rule::any);
  f("device_memory", t.device_memory, Rule::size);
  f("context_bytes", t.context_bytes, Rule::size);
}

template <Same<Clock> T, class F>
void visit_fields(T& t, F&& f) {
  f("base_unix_ns", t.base_unix_ns, Rule::any);
  f("source", t.source, Rule::any);
  f("causality_violations", t.causality_violations, Rule::count);
  f("largest_clamp", t.largest_clamp, Rule::time);
}

template <Same<Quality> T, class F>
void visit_fields(T& t, F&& f) {
  f("dropped_records", t.dropped_records, Rule::count);
  f("zero_timestamp_records", t.zero_timestamp_records, Rule::count);
  f("unattributed_kernels", t.unattributed_kernels, Rule::count);
  f("unattributed_ns", t.unattributed_ns, Rule::time);
  f("unmatched_frees", t.unmatched_frees, Rule::count);
  f("join_mismatches", t.join_mismatches, Rule::count);
  f("adopted_allocations", t.adopted_allocations, Rule::optional_count);
}

template <Same<PassCost> T, class F>
void visit_fields(T& t, F&& f) {
  f("step_ns", t.step_ns, Rule::time);
  f("peak_requested", t.peak_requested, Rule::size);
}

template <Same<Overhead> T, class F>
void visit_fields(T& t, F&& f) {
  f("clean", t.clean, Rule::any);
  f("timing", t.timing, Rule::any);
  f("structure", t.structure, Rule::any);
  f("offload_all", t.offload_all, Rule::any);
  f("clean_spread", t.clean_spread, Rule::optional_factor);
}

template <Same<LinkCurve> T, class F>
void visit_fields(T& t, F&& f) {
  f("bytes", t.bytes, Rule::positive);
  f("bytes_per_second", t.bytes_per_second, Rule::positive);
  f("bytes_per_second_p10", t.bytes_per_second_p10, Rule::positive);
  f("latency", t.latency, Rule::time);
}

template <Same<Calibration> T, class F>
void visit_fields(T& t, F&& f) {
  f("method", t.method, Rule::any);
  f("samples", t.samples, Rule::count);
  f("d2h", t.d2h, Rule::any);
  f("h2d", t.h2d, Rule::any);
  f("duplex", t.duplex, Rule::factor);
  f("copy_interference", t.copy_interference, Rule::factor);
  f("compute_interference", t.compute_interference, Rule::factor);
  f("pageable_bytes_per_second", t.pageable_bytes_per_second, Rule::count);
  f("pin_ns_per_gib", t.pin_ns_per_gib, Rule::time);
  f("launch_ns", t.launch_ns, Rule::time);
  f("sync_ns", t.sync_ns, Rule::time);
  f("copy_issue_ns", t.copy_issue_ns, Rule::time);
  f("wait_issue_ns", t.wait_issue_ns, Rule::time);
  f("hook_ns", t.hook_ns, Rule::time);
  f("least_compute", t.least_compute, Rule::optional_factor);
  f("rest_gain", t.rest_gain, Rule::optional_factor);
  f("start_gap_ns", t.start_gap_ns, Rule::optional_time);
  f("handover_ns", t.handover_ns, Rule::optional_time);
  f("compute_copy_gap_ns", t.compute_copy_gap_ns, Rule::optional_time);
  f("woken_launch", t.woken_launch, Rule::optional_factor);
  f("host_update_ns", t.host_update_ns, Rule::optional_time);
  f("host_update_ns_per_gib", t.host_update_ns_per_gib, Rule::optional_time);
  f("host_update_interference", t.host_update_interference, Rule::optional_factor);
}

// `schema`, `legend`, `fingerprint`, `strings`, `lists` and `divided` have forms of their own.
template <Same<Trace> T, class F>
void visit_sections(T& t, F&& f) {
  f("run", t.run);
  f("env", t.env);
  f("clock", t.clock);
  f("quality", t.quality);
  f("overhead", t.overhead);
  f("calibration", t.calibration);
}

// The enums that files store as numbers: f(key of the legend, a value of the type).
template <class F>
void visit_enums(F&& f) {
  f("storage_class", StorageClass{});
  f("evidence", Evidence{});
  f("phase_kind", PhaseKind{});
  f("dtype", DType{});
  f("use_mode", UseMode{});
  f("event_kind", EventKind{});
  f("gpu_kind", GpuKind{});
}

}  // namespace stowage
