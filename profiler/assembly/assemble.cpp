#include "profiler/assembly/assemble.h"

#include <algorithm>
#include <unordered_map>
#include <utility>

#include "profiler/assembly/busy_gpu.h"
#include "profiler/assembly/check_records.h"
#include "profiler/assembly/conclusions.h"
#include "profiler/assembly/device_rows.h"
#include "profiler/assembly/device_times.h"
#include "profiler/assembly/event_times.h"
#include "profiler/assembly/join.h"
#include "profiler/assembly/resident_pass.h"
#include "profiler/assembly/trace_rows.h"
#include "traces/fingerprint.h"
#include "traces/site_text.h"

namespace stowage::profiler {

namespace {

// What a GPU's caching allocator rounds requests up to.
constexpr Bytes kGpuBlock = 512;

Error refuse(const std::string& message, const std::string& hint = "") {
  return {ErrorCode::bad_input, message, "", "", hint};
}

EventKind event_kind(RawKind kind) {
  switch (kind) {
    case RawKind::step_begin:
      return EventKind::step_begin;
    case RawKind::step_end:
      return EventKind::step_end;
    case RawKind::alloc:
      return EventKind::alloc;
    case RawKind::free:
      return EventKind::free;
    case RawKind::pack:
      return EventKind::pack;
    case RawKind::unpack:
      return EventKind::unpack;
    case RawKind::layer_forward_begin:
      return EventKind::layer_forward_begin;
    case RawKind::layer_forward_end:
      return EventKind::layer_forward_end;
    case RawKind::layer_backward_begin:
      return EventKind::layer_backward_begin;
    case RawKind::layer_backward_end:
      return EventKind::layer_backward_end;
    case RawKind::gradient_accumulated:
      return EventKind::gradient_accumulated;
    case RawKind::op_begin:
      return EventKind::op_begin;
    case RawKind::op_end:
      return EventKind::op_end;
    case RawKind::backward_begin:
      return EventKind::backward_begin;
    case RawKind::backward_end:
      return EventKind::backward_end;
    case RawKind::parameter_update_begin:
      return EventKind::parameter_update_begin;
    case RawKind::parameter_update_end:
      return EventKind::parameter_update_end;
    case RawKind::recompute_begin:
      return EventKind::recompute_begin;
    case RawKind::recompute_end:
      return EventKind::recompute_end;
    case RawKind::released:
    case RawKind::hook_gone:
      break;
  }
  STOWAGE_ASSERT(false && "released is no event of the structure pass");
}

// Builds the trace table by table in one walk over the structure pass.
class Assembler {
 public:
  // `device`: null without a timing pass.
  Assembler(const RawRecording& recording, const RawPass& structure, const Ends& ends,
            const DeviceTimes* device)
      : raw_(structure), recording_(recording), ends_(ends), device_(device) {}

  Result<Trace> run() {
    add_header();
    add_storages_at_begin();
    if (Status status = walk(); !status) return status.error();
    add_ends();
    if (device_ != nullptr) add_device_rows(*recording_.timing, *device_, rows_);
    drop_rest_gain_unless_busy(trace_);
    add_setup_rows(recording_, raw_, rows_);
    add_conclusions(raw_, peaks(), rows_);
    trace_.fingerprint = fingerprint(trace_);
    return std::move(trace_);
  }

 private:
  void add_header() {
    trace_.schema.writer = "stowage 0.1.0";
    trace_.run = recording_.run;
    trace_.env = recording_.env;
    trace_.calibration = recording_.calibration;
    trace_.clock.source = "steady";
    trace_.overhead.clean = {recording_.clean.step_ns, recording_.clean.peak_requested};
    trace_.overhead.clean_spread = recording_.clean.spread;
    if (recording_.clean.out_of_memory) {
      trace_.schema.features.push_back(kOffloadedRecording);
    } else {
      trace_.overhead.structure = {raw_.step_ns, raw_.peak_requested};
    }
    trace_.overhead.offload_all = {recording_.offload_all.step_ns,
                                   recording_.offload_all.peak_requested};
    times_ = device_ != nullptr
                 ? device_->events
                 : event_times(raw_, recording_.more_times, recording_.clean.step_ns);
    rows_.add_layer("step", -1, "step");
  }

  bool on_gpu() const { return recording_.env.device == "cuda"; }

  // What a step in memory peaks at, where only requested bytes are known.
  CleanPass peaks() const {
    CleanPass clean = recording_.clean;
    if (clean.out_of_memory) {
      clean.peak_active = on_gpu() ? -1 : raw_.peak_requested;
      clean.peak_reserved = -1;
    }
    return clean;
  }

  // Row of a new storage.
  StorageId add_storage(std::int64_t serial, Bytes bytes, StorageClass storage_class) {
    const StorageId row = rows_.add_storage(serial, bytes, storage_class);
    if (on_gpu()) {
      trace_.storages.rounded_bytes.back() = (bytes + kGpuBlock - 1) / kGpuBlock * kGpuBlock;
    }
    return row;
  }

  // Layers are numbered by first appearance, row 0 is "step", also when the model calls one so:
  // names are unique.
  LayerId layer_row(std::int64_t path) {
    if (path < 0 || raw_.layer_paths[static_cast<std::size_t>(path)] == "step") return LayerId(0);
    const auto [entry, is_new] = layer_rows_.try_emplace(path, LayerId(0));
    if (is_new) {
      const std::int32_t parent = forward_layers_.empty() ? 0 : forward_layers_.back().value;
      entry->second =
          rows_.add_layer(raw_.layer_paths[static_cast<std::size_t>(path)], parent, "layer");
    }
    return entry->second;
  }

  void add_storages_at_begin() {
    for (const RawStorage& storage : raw_.live_at_begin) {
      add_storage(storage.serial, storage.bytes, storage.storage_class);
      live_ += storage.bytes;
    }
  }

  // Where the program is, while walking.
  OpId current_op() const { return open_ops_.empty() ? OpId() : open_ops_.back(); }

  LayerId current_layer() const {
    if (!open_ops_.empty()) return trace_.ops.layer[open_ops_.back().index()];
    if (backward_depth_ > 0 && interrupted_.empty()) return backward_layer_;
    return forward_layers_.empty() ? LayerId(0) : forward_layers_.back();
  }

  Status walk() {
    for (std::size_t i = 0; i < raw_.events.size(); ++i) {
      const RawEvent& raw = raw_.events[i];
      if (raw.kind == RawKind::released) return refuse("a release in the structure pass");
      if (raw.kind == RawKind::hook_gone) return refuse("the end of a hook in the structure pass");
      const EventId event(i);
      Events& events = trace_.events;
      events.kind.push_back(event_kind(raw.kind));
      events.ref.push_back(-1);
      events.time.push_back(times_[i]);
      close_ops_before(raw);
      if (raw.kind == RawKind::recompute_begin || raw.kind == RawKind::recompute_end) {
        if (Status status = handle_again(raw, event); !status) return status;
        continue;
      }
      if (std::exchange(is_behind_again_, false)) next_phase(interrupted_phase_, event);
      if (Status status = handle(raw, event); !status) return status;
      events.op.push_back(current_op());
      if (raw.kind == RawKind::op_end) open_ops_.pop_back();
    }
    close_phase(EventId(raw_.events.size() - 1));
    return Unit{};
  }

  // A segment runs again inside of whatever backward was doing; its begin and its end are seen from
  // there.
  Status handle_again(const RawEvent& raw, EventId event) {
    trace_.events.ref.back() = layer_row(raw.id).value;
    if (raw.kind == RawKind::recompute_begin) {
      trace_.events.op.push_back(current_op());
      // Where another run ended just now, its phase is not that of what goes on around both.
      const bool is_next = std::exchange(is_behind_again_, false);
      interrupted_.push_back(
          {std::move(open_ops_), is_next ? interrupted_phase_ : trace_.phases.kind.back()});
      open_ops_.clear();
      next_phase(PhaseKind::recompute, event);
      return Unit{};
    }
    if (interrupted_.empty()) return refuse("the end of a segment that does not run again");
    open_ops_ = std::move(interrupted_.back().ops);
    interrupted_phase_ = interrupted_.back().phase;
    interrupted_.pop_back();
    is_behind_again_ = true;
    trace_.events.op.push_back(current_op());
    return Unit{};
  }

  // Some nested ops have no end event: an op is over when one that is not its child begins.
  void close_ops_before(const RawEvent& raw) {
    if (raw.kind != RawKind::op_begin) return;
    const std::int32_t parent = raw_.ops[static_cast<std::size_t>(raw.id)].parent;
    while (!open_ops_.empty() && open_ops_.back().value != parent) {
      end_op(open_ops_.back(), trace_.events.time.back());
      open_ops_.pop_back();
    }
  }

  void end_op(OpId op, Nanoseconds time) {
    trace_.ops.duration[op.index()] = time - trace_.ops.start[op.index()];
  }

  // It stays open for its own end.
  Status handle_op_end(OpId op, Nanoseconds time) {
    if (std::find(open_ops_.begin(), open_ops_.end(), op) == open_ops_.end()) {
      return refuse("the end of an op that is not running");
    }
    for (; open_ops_.back() != op; open_ops_.pop_back()) end_op(open_ops_.back(), time);
    end_op(op, time);
    return Unit{};
  }

  Status handle(const RawEvent& raw, EventId event) {
    std::int32_t& ref = trace_.events.ref.back();
    switch (raw.kind) {
      case RawKind::step_begin:
        open_phase(PhaseKind::zero_grad, event);
        return Unit{};
      case RawKind::step_end:
        return Unit{};
      case RawKind::alloc: {
        const StorageId row = add_storage(raw.id, raw.bytes, StorageClass::other);
        trace_.storages.alloc_event.back() = event;
        trace_.storages.alloc_op.back() = current_op();
        trace_.storages.layer.back() = current_layer();
        ref = row.value;
        return count(raw, event, raw.bytes);
      }
      case RawKind::free: {
        const StorageId row = rows_.storage_of(raw.id);
        if (!row.valid()) return refuse("a free of memory whose allocation was not seen");
        trace_.storages.free_event[row.index()] = event;
        ref = row.value;
        return count(raw, event, -trace_.storages.bytes[row.index()]);
      }
      case RawKind::pack:
        ref = static_cast<std::int32_t>(raw.id);
        add_saved(raw_.saved[static_cast<std::size_t>(raw.id)], event);
        return Unit{};
      case RawKind::unpack:
        ref = static_cast<std::int32_t>(raw.id);
        trace_.unpacks.saved.push_back(
            SavedId(raw_.unpacks[static_cast<std::size_t>(raw.id)].saved));
        trace_.unpacks.op.push_back(current_op());
        trace_.unpacks.event.push_back(event);
        trace_.unpacks.released_event.push_back(EventId());
        return Unit{};
      case RawKind::layer_forward_begin:
      case RawKind::layer_forward_end:
      case RawKind::layer_backward_begin:
      case RawKind::layer_backward_end:
        ref = handle_layer(raw, event).value;
        return Unit{};
      case RawKind::gradient_accumulated:
        ref = rows_.storage_of(raw.id).value;
        if (ref < 0) return refuse("a gradient of a parameter whose storage was not seen");
        return Unit{};
      case RawKind::parameter_update_begin:
        if (pending_optimizer_) next_phase(PhaseKind::optimizer, event);
        has_update_ = true;
        [[fallthrough]];
      case RawKind::parameter_update_end:
        ref = rows_.storage_of(raw.id).value;
        if (ref < 0) return refuse("an update of a parameter whose storage was not seen");
        return Unit{};
      case RawKind::op_begin:
        add_op(raw_.ops[static_cast<std::size_t>(raw.id)], event);
        ref = static_cast<std::int32_t>(raw.id);
        return Unit{};
      case RawKind::op_end:
        ref = static_cast<std::int32_t>(raw.id);
        return handle_op_end(OpId(ref), times_[event.index()]);
      case RawKind::backward_begin:
        if (backward_depth_++ == 0) next_phase(PhaseKind::backward, event);
        return Unit{};
      case RawKind::backward_end:
        if (--backward_depth_ == 0) {
          backward_layer_ = LayerId(0);
          pending_optimizer_ = is_behind_backward_ = true;
        }
        return Unit{};
      case RawKind::recompute_begin:  // walk() does these
      case RawKind::recompute_end:
      case RawKind::released:
      case RawKind::hook_gone:
        break;
    }
    return Unit{};
  }

  // The layer that a begin or end of one is about.
  LayerId handle_layer(const RawEvent& raw, EventId event) {
    if (raw.kind == RawKind::layer_forward_begin && backward_depth_ == 0) {
      // The first layer behind a backward begins the next micro-batch, as SiteTracker has it.
      const bool is_next = std::exchange(is_behind_backward_, false);
      if (is_next) ++micro_batch_;
      if (is_next || trace_.phases.kind.back() == PhaseKind::zero_grad) {
        next_phase(PhaseKind::forward, event);
      }
    }
    const LayerId layer = layer_row(raw.id);
    const bool is_boundary =
        raw.kind == RawKind::layer_forward_begin || raw.kind == RawKind::layer_forward_end;
    if (is_boundary) boundaries_.push_back(event);
    if (raw.kind == RawKind::layer_forward_begin) {
      if (interrupted_.empty()) ++trace_.layers.calls[layer.index()];
      forward_layers_.push_back(layer);
    } else if (raw.kind == RawKind::layer_forward_end) {
      if (!forward_layers_.empty()) forward_layers_.pop_back();
    } else if (raw.kind == RawKind::layer_backward_begin) {
      backward_layer_ = layer;
    } else {
      backward_layer_ = trace_.layers.parent[layer.index()];
    }
    return layer;
  }

  Status count(const RawEvent& raw, EventId event, Bytes change) {
    live_ += change;
    trace_.allocator.event.push_back(event);
    trace_.allocator.requested.push_back(raw.requested);
    trace_.allocator.active.push_back(on_gpu() ? -1 : raw.requested);
    trace_.allocator.reserved.push_back(-1);
    if (live_ == raw.requested) return Unit{};
    return refuse("live bytes at event " + std::to_string(event.value) + " are " +
                      std::to_string(live_) + ", the allocator counts " +
                      std::to_string(raw.requested),
                  "an allocation escaped the recorder; please report this");
  }

  void open_phase(PhaseKind kind, EventId first) {
    trace_.phases.kind.push_back(kind);
    trace_.phases.micro_batch.push_back(micro_batch_);
    trace_.phases.first_event.push_back(first);
    trace_.phases.last_event.push_back(first);
  }

  void close_phase(EventId last) { trace_.phases.last_event.back() = last; }

  void next_phase(PhaseKind kind, EventId first) {
    pending_optimizer_ = false;
    // What stood behind a backward was no optimizer where another one follows (micro-batches).
    PhaseKind& last = trace_.phases.kind.back();
    const bool goes_on = kind == PhaseKind::forward || kind == PhaseKind::backward;
    if (goes_on && last == PhaseKind::optimizer && !has_update_) last = PhaseKind::forward;
    if (kind == PhaseKind::optimizer) has_update_ = false;
    close_phase(EventId(first.value - 1));
    open_phase(kind, first);
  }

  void add_op(const RawOp& raw, EventId event) {
    // After a backward: another layer means forward again, anything else the optimizer.
    if (pending_optimizer_) {
      next_phase(forward_layers_.empty() ? PhaseKind::optimizer : PhaseKind::forward, event);
    }
    Ops& ops = trace_.ops;
    const OpId op(ops.size());
    ops.name.push_back(rows_.string(raw.name));
    ops.parent.push_back(OpId(raw.parent));
    ops.thread.push_back(raw.thread);
    ops.start.push_back(times_[event.index()]);
    ops.duration.push_back(0);
    ops.sequence.push_back(raw.sequence);
    OpId forward;
    if (!interrupted_.empty()) {
      // Its numbers are of the graph that the run makes and drops.
    } else if (raw.backward_sequence >= 0) {
      const auto found = by_sequence_.find(raw.backward_sequence);
      if (found != by_sequence_.end()) forward = found->second;
    } else if (raw.sequence >= 0) {
      by_sequence_[raw.sequence] = op;  // the op that started last with a number builds the node
    }
    ops.forward_op.push_back(forward);
    LayerId layer(0);
    if (forward.valid()) {
      layer = ops.layer[forward.index()];
    } else if (backward_depth_ > 0 && forward_layers_.empty()) {
      layer = backward_layer_;
    } else if (!forward_layers_.empty()) {
      layer = forward_layers_.back();
    }
    ops.layer.push_back(layer);
    ops.phase.push_back(PhaseId(trace_.phases.size() - 1));
    const bool in_place = std::any_of(raw.uses.begin(), raw.uses.end(), [](const RawUse& use) {
      return use.mode == UseMode::in_place;
    });
    ops.in_place.push_back(in_place ? 1 : 0);
    ops.primitive.push_back(raw.is_primitive ? 1 : 0);
    open_ops_.push_back(op);
  }

  void add_saved(const RawSaved& raw, EventId event) {
    if (pending_optimizer_) {  // saved ahead of any op, by a function of the user's
      next_phase(forward_layers_.empty() ? PhaseKind::optimizer : PhaseKind::forward, event);
    }
    Saved& saved = trace_.saved;
    const StorageId storage = rows_.storage_of(raw.view.serial);
    std::int64_t version = 0;
    std::int32_t index = -1;
    if (storage.valid()) {
      const auto first = first_version_.try_emplace(storage.value, raw.version).first;
      version = raw.version - first->second;
      index = storage_index_
                  .try_emplace(storage.value, static_cast<std::int32_t>(storage_index_.size()))
                  .first->second;
    }
    const LayerId layer = layer_row(raw.layer);
    saved.site.push_back(StringId());  // named when the calls of every layer are known
    saved.layer.push_back(layer);
    saved.call.push_back(raw.call);
    saved.ordinal.push_back(raw.ordinal);
    saved.tensor.push_back(rows_.tensor(raw.view, version));
    saved.storage.push_back(storage);
    saved.storage_index.push_back(index);
    saved.op.push_back(current_op());
    saved.event.push_back(event);
    saved.version.push_back(version);
  }

  void add_ends() {
    for (const auto& [serial, event] : ends_.freed_after) {
      const StorageId row = rows_.storage_of(serial);
      if (row.valid()) trace_.storages.natural_free_event[row.index()] = EventId(event);
    }
    for (std::size_t i = 0; i < trace_.unpacks.size(); ++i) {
      trace_.unpacks.released_event[i] = EventId(ends_.released_after[i]);
    }
    for (const RawPassed& passed : raw_.passed) {
      LayerTensors& to = trace_.layer_tensors;
      to.event.push_back(boundaries_[static_cast<std::size_t>(passed.boundary)]);
      to.tensor.push_back(passed.is_defined ? rows_.tensor(passed.view, 0) : TensorId());
      to.requires_grad.push_back(passed.requires_grad ? 1 : 0);
    }
    for (std::size_t i = 0; i < trace_.saved.size(); ++i) {
      const LayerId layer = trace_.saved.layer[i];
      const bool called_once = trace_.layers.calls[layer.index()] <= 1;
      trace_.saved.site[i] =
          rows_.string(site_text(trace_.string(trace_.layers.name[layer.index()]),
                                 trace_.saved.call[i], trace_.saved.ordinal[i], called_once));
    }
  }

  const RawPass& raw_;
  const RawRecording& recording_;
  const Ends& ends_;
  const DeviceTimes* device_;
  TraceRows rows_;
  Trace& trace_ = rows_.trace;
  std::vector<Nanoseconds> times_;
  std::unordered_map<std::int64_t, LayerId> layer_rows_;
  std::unordered_map<std::int64_t, OpId> by_sequence_;
  std::unordered_map<std::int32_t, std::int64_t> first_version_;
  std::unordered_map<std::int32_t, std::int32_t> storage_index_;
  std::vector<EventId> boundaries_;  // layer_forward_begin, layer_forward_end
  std::vector<OpId> open_ops_;
  struct Interrupted {
    std::vector<OpId> ops;
    PhaseKind phase;
  };
  std::vector<Interrupted> interrupted_;  // by segments that run again
  PhaseKind interrupted_phase_ = PhaseKind::backward;
  bool is_behind_again_ = false;
  std::vector<LayerId> forward_layers_;
  LayerId backward_layer_{0};
  int backward_depth_ = 0;
  bool pending_optimizer_ = false;
  bool has_update_ = false;  // in the optimizer's phase
  bool is_behind_backward_ = false;
  std::int32_t micro_batch_ = 0;
  Bytes live_ = 0;
};

}  // namespace

Result<Trace> assemble(const RawRecording& recording) {
  if (Status status = check_records(recording.offload_all, "offload_all"); !status) {
    return status.error();
  }
  RawPass derived;
  const bool is_derived = recording.clean.out_of_memory;
  if (is_derived) derived = resident_pass(recording.offload_all);
  const RawPass& structure = is_derived ? derived : recording.structure;
  if (Status status = check_records(structure, "structure"); !status) return status.error();
  if (!is_derived && structure.peak_requested != recording.clean.peak_requested) {
    return refuse("the observed step peaked at " + std::to_string(structure.peak_requested) +
                      " requested bytes, the unobserved one at " +
                      std::to_string(recording.clean.peak_requested),
                  "the step is not the same each time; more --warmup may help");
  }
  const Result<Ends> ends = join(structure, recording.offload_all);
  if (!ends) return ends.error();
  if (!recording.timing) return Assembler(recording, structure, *ends, nullptr).run();
  if (Status status = check_records(recording.timing->pass, "timing"); !status) {
    return status.error();
  }
  const Result<DeviceTimes> device =
      device_times(structure, *recording.timing, recording.clean.step_ns);
  if (!device) return device.error();
  return Assembler(recording, structure, *ends, &*device).run();
}

}  // namespace stowage::profiler
