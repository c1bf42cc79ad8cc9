#include "profiler/assembly/assemble.h"

#include <algorithm>
#include <tuple>
#include <unordered_map>
#include <utility>

#include "profiler/assembly/event_times.h"
#include "profiler/assembly/interner.h"
#include "profiler/assembly/join.h"
#include "traces/fingerprint.h"

namespace stowage::profiler {

namespace {

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
    case RawKind::released:
      break;
  }
  STOWAGE_ASSERT(false && "released is no event of the structure pass");
}

// Builds the trace table by table in one walk over the structure pass.
class Assembler {
 public:
  Assembler(const RawRecording& recording, const Ends& ends)
      : raw_(recording.structure), recording_(recording), ends_(ends) {}

  Result<Trace> run() {
    add_header();
    add_storages_at_begin();
    if (Status status = walk(); !status) return status.error();
    add_ends();
    classify();
    add_layer_totals();
    add_uses();
    add_peaks();
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
    trace_.overhead.structure = {raw_.step_ns, raw_.peak_requested};
    trace_.overhead.offload_all = {recording_.offload_all.step_ns,
                                   recording_.offload_all.peak_requested};
    times_ = event_times(raw_, recording_.more_times, recording_.clean.step_ns);
    add_layer("step", -1, "step");
  }

  StringId string(const std::string& text) { return StringId(strings_.row(trace_.strings, text)); }

  LayerId add_layer(const std::string& name, std::int32_t parent, const std::string& kind) {
    Layers& layers = trace_.layers;
    layers.name.push_back(string(name));
    layers.parent.push_back(LayerId(parent));
    layers.kind.push_back(string(kind));
    layers.parameter_bytes.push_back(0);
    layers.forward_order.push_back(static_cast<std::int32_t>(layers.name.size()) - 1);
    layers.calls.push_back(0);
    return LayerId(layers.name.size() - 1);
  }

  // Layers are numbered by first appearance, row 0 is "step".
  LayerId layer_row(std::int64_t path) {
    if (path < 0) return LayerId(0);
    const auto [entry, is_new] = layer_rows_.try_emplace(path, LayerId(0));
    if (is_new) {
      const std::int32_t parent = forward_layers_.empty() ? 0 : forward_layers_.back().value;
      entry->second = add_layer(raw_.layer_paths[static_cast<std::size_t>(path)], parent, "layer");
    }
    return entry->second;
  }

  StorageId add_storage(std::int64_t serial, Bytes bytes, StorageClass storage_class) {
    Storages& storages = trace_.storages;
    storages.device.push_back(0);
    storages.bytes.push_back(bytes);
    storages.rounded_bytes.push_back(bytes);
    storages.storage_class.push_back(storage_class);
    storages.evidence.push_back(storage_class == StorageClass::other ? Evidence::none
                                                                     : Evidence::registered);
    storages.layer.push_back(LayerId(0));
    storages.alloc_op.push_back(OpId());
    storages.alloc_event.push_back(EventId());
    storages.free_event.push_back(EventId());
    storages.natural_free_event.push_back(EventId());
    const StorageId row(storages.bytes.size() - 1);
    storage_rows_[serial] = row;
    return row;
  }

  void add_storages_at_begin() {
    for (const RawStorage& storage : raw_.live_at_begin) {
      add_storage(storage.serial, storage.bytes, storage.storage_class);
      live_ += storage.bytes;
    }
  }

  StorageId storage_row(std::int64_t serial) const {
    const auto found = storage_rows_.find(serial);
    return found == storage_rows_.end() ? StorageId() : found->second;
  }

  TensorId tensor_row(const RawView& view, std::int64_t version) {
    const StorageId storage = storage_row(view.serial);
    const ListId shape(lists_.row(trace_.lists, view.shape));
    const ListId strides(lists_.row(trace_.lists, view.strides));
    const Key key{storage.value, static_cast<int>(view.dtype),
                  shape.value,   strides.value,
                  view.offset,   version};
    const auto [entry, is_new] = tensor_rows_.try_emplace(key, trace_.tensors.size());
    if (is_new) {
      Tensors& tensors = trace_.tensors;
      tensors.storage.push_back(storage);
      tensors.dtype.push_back(view.dtype);
      tensors.shape.push_back(shape);
      tensors.strides.push_back(strides);
      tensors.offset.push_back(view.offset);
      tensors.producer.push_back(storage.valid() ? trace_.storages.alloc_op[storage.index()]
                                                 : OpId());
      tensors.version.push_back(version);
    }
    return TensorId(entry->second);
  }

  // Where the program is, while walking.
  OpId current_op() const { return open_ops_.empty() ? OpId() : open_ops_.back(); }

  LayerId current_layer() const {
    if (!open_ops_.empty()) return trace_.ops.layer[open_ops_.back().index()];
    if (backward_depth_ > 0) return backward_layer_;
    return forward_layers_.empty() ? LayerId(0) : forward_layers_.back();
  }

  Status walk() {
    for (std::size_t i = 0; i < raw_.events.size(); ++i) {
      const RawEvent& raw = raw_.events[i];
      if (raw.kind == RawKind::released) return refuse("a release in the structure pass");
      const EventId event(i);
      Events& events = trace_.events;
      events.kind.push_back(event_kind(raw.kind));
      events.ref.push_back(-1);
      events.time.push_back(times_[i]);
      close_ops_before(raw);
      if (Status status = handle(raw, event); !status) return status;
      events.op.push_back(current_op());
      if (raw.kind == RawKind::op_end) open_ops_.clear();
    }
    close_phase(EventId(raw_.events.size() - 1));
    return Unit{};
  }

  // Nested ops have no end event: an op is over when one that is not its child begins.
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
        const StorageId row = storage_row(raw.id);
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
      case RawKind::layer_forward_begin: {
        if (trace_.phases.kind.back() == PhaseKind::zero_grad) {
          next_phase(PhaseKind::forward, event);
        }
        const LayerId layer = layer_row(raw.id);
        ++trace_.layers.calls[layer.index()];
        forward_layers_.push_back(layer);
        ref = layer.value;
        return Unit{};
      }
      case RawKind::layer_forward_end:
        ref = layer_row(raw.id).value;
        if (!forward_layers_.empty()) forward_layers_.pop_back();
        return Unit{};
      case RawKind::layer_backward_begin:
        backward_layer_ = layer_row(raw.id);
        ref = backward_layer_.value;
        return Unit{};
      case RawKind::layer_backward_end: {
        const LayerId layer = layer_row(raw.id);
        ref = layer.value;
        backward_layer_ = trace_.layers.parent[layer.index()];
        return Unit{};
      }
      case RawKind::gradient_accumulated:
        ref = storage_row(raw.id).value;
        if (ref < 0) return refuse("a gradient of a parameter whose storage was not seen");
        return Unit{};
      case RawKind::op_begin:
        add_op(raw_.ops[static_cast<std::size_t>(raw.id)], event);
        ref = static_cast<std::int32_t>(raw.id);
        return Unit{};
      case RawKind::op_end: {
        ref = static_cast<std::int32_t>(raw.id);
        for (const OpId op : open_ops_) end_op(op, times_[event.index()]);
        open_ops_.assign(1, OpId(ref));
        return Unit{};
      }
      case RawKind::backward_begin:
        if (backward_depth_++ == 0) next_phase(PhaseKind::backward, event);
        return Unit{};
      case RawKind::backward_end:
        if (--backward_depth_ == 0) {
          backward_layer_ = LayerId(0);
          pending_optimizer_ = true;
        }
        return Unit{};
      case RawKind::released:
        break;
    }
    return Unit{};
  }

  Status count(const RawEvent& raw, EventId event, Bytes change) {
    live_ += change;
    trace_.allocator.event.push_back(event);
    trace_.allocator.requested.push_back(raw.requested);
    trace_.allocator.active.push_back(raw.requested);
    trace_.allocator.reserved.push_back(-1);
    if (live_ == raw.requested) return Unit{};
    return refuse("live bytes at event " + std::to_string(event.value) + " are " +
                      std::to_string(live_) + ", the allocator counts " +
                      std::to_string(raw.requested),
                  "an allocation escaped the recorder; please report this");
  }

  void open_phase(PhaseKind kind, EventId first) {
    trace_.phases.kind.push_back(kind);
    trace_.phases.micro_batch.push_back(0);
    trace_.phases.first_event.push_back(first);
    trace_.phases.last_event.push_back(first);
  }

  void close_phase(EventId last) { trace_.phases.last_event.back() = last; }

  void next_phase(PhaseKind kind, EventId first) {
    pending_optimizer_ = false;
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
    ops.name.push_back(string(raw.name));
    ops.parent.push_back(OpId(raw.parent));
    ops.thread.push_back(raw.thread);
    ops.start.push_back(times_[event.index()]);
    ops.duration.push_back(0);
    ops.sequence.push_back(raw.sequence);
    OpId forward;
    if (raw.backward_sequence >= 0) {
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
    open_ops_.push_back(op);
  }

  void add_saved(const RawSaved& raw, EventId event) {
    Saved& saved = trace_.saved;
    const StorageId storage = storage_row(raw.view.serial);
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
    saved.tensor.push_back(tensor_row(raw.view, version));
    saved.storage.push_back(storage);
    saved.storage_index.push_back(index);
    saved.op.push_back(current_op());
    saved.event.push_back(event);
    saved.version.push_back(version);
  }

  void add_ends() {
    for (const auto& [serial, event] : ends_.freed_after) {
      const StorageId row = storage_row(serial);
      if (row.valid()) trace_.storages.natural_free_event[row.index()] = EventId(event);
    }
    for (std::size_t i = 0; i < trace_.unpacks.size(); ++i) {
      trace_.unpacks.released_event[i] = EventId(ends_.released_after[i]);
    }
    for (std::size_t i = 0; i < trace_.saved.size(); ++i) {
      const LayerId layer = trace_.saved.layer[i];
      std::string site = trace_.string(trace_.layers.name[layer.index()]);
      if (trace_.layers.calls[layer.index()] > 1) {
        site += "@" + std::to_string(trace_.saved.call[i]);
      }
      trace_.saved.site[i] = string(site + "#" + std::to_string(trace_.saved.ordinal[i]));
    }
  }

  void classify() {
    Storages& storages = trace_.storages;
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
    for (const StorageId storage : trace_.saved.storage) {
      if (storage.valid() && storages.alloc_event[storage.index()].valid()) {
        set(storage, StorageClass::activation, Evidence::hook);
      }
    }
    for (const std::int64_t serial : raw_.gradient_serials) {
      const StorageId row = storage_row(serial);
      if (row.valid()) set(row, StorageClass::gradient, Evidence::registered);
    }
  }

  // Parameters belong to the layer that uses them first.
  void add_layer_totals() {
    std::vector<bool> seen(trace_.storages.size(), false);
    for (std::size_t op = 0; op < raw_.ops.size(); ++op) {
      for (const RawUse& use : raw_.ops[op].uses) {
        const StorageId row = storage_row(use.view.serial);
        if (!row.valid() || seen[row.index()] ||
            trace_.storages.storage_class[row.index()] != StorageClass::parameter ||
            trace_.phases.kind[trace_.ops.phase[op].index()] != PhaseKind::forward) {
          continue;
        }
        seen[row.index()] = true;
        const LayerId layer = trace_.ops.layer[op];
        trace_.storages.layer[row.index()] = layer;
        trace_.layers.parameter_bytes[layer.index()] += trace_.storages.bytes[row.index()];
      }
    }
  }

  void add_uses() {
    for (std::size_t op = 0; op < raw_.ops.size(); ++op) {
      for (const RawUse& use : raw_.ops[op].uses) {
        if (!storage_row(use.view.serial).valid()) continue;
        trace_.uses.op.push_back(OpId(op));
        trace_.uses.tensor.push_back(tensor_row(use.view, 0));
        trace_.uses.mode.push_back(use.mode);
      }
    }
  }

  void add_peaks() {
    const AllocatorCurve& curve = trace_.allocator;
    EventId at(0);
    Bytes peak = raw_.requested_at_begin;
    for (std::size_t i = 0; i < curve.size(); ++i) {
      if (curve.requested[i] > peak) {
        peak = curve.requested[i];
        at = curve.event[i];
      }
    }
    Peaks& peaks = trace_.peaks;
    peaks.device.push_back(0);
    peaks.event.push_back(at);
    peaks.op.push_back(trace_.events.op[at.index()]);
    peaks.requested.push_back(peak);
    peaks.active.push_back(recording_.clean.peak_active);
    peaks.reserved.push_back(recording_.clean.peak_reserved);
  }

  using Key = std::tuple<std::int32_t, int, std::int32_t, std::int32_t, std::int64_t, std::int64_t>;

  const RawPass& raw_;
  const RawRecording& recording_;
  const Ends& ends_;
  Trace trace_;
  std::vector<Nanoseconds> times_;
  Interner<std::string> strings_;
  Interner<std::vector<std::int64_t>> lists_;
  std::map<Key, std::size_t> tensor_rows_;
  std::unordered_map<std::int64_t, StorageId> storage_rows_;
  std::unordered_map<std::int64_t, LayerId> layer_rows_;
  std::unordered_map<std::int64_t, OpId> by_sequence_;
  std::unordered_map<std::int32_t, std::int64_t> first_version_;
  std::unordered_map<std::int32_t, std::int32_t> storage_index_;
  std::vector<OpId> open_ops_;
  std::vector<LayerId> forward_layers_;
  LayerId backward_layer_{0};
  int backward_depth_ = 0;
  bool pending_optimizer_ = false;
  Bytes live_ = 0;
};

Status check_events(const RawPass& pass, const std::string& name) {
  if (pass.events.size() < 2 || pass.events.front().kind != RawKind::step_begin ||
      pass.events.back().kind != RawKind::step_end) {
    return refuse("the " + name + " pass does not run from step begin to step end");
  }
  const auto in_range = [](std::int64_t id, std::size_t size) {
    return id >= 0 && static_cast<std::size_t>(id) < size;
  };
  const Error dangling = refuse("the " + name + " pass refers to a record that it does not have");
  for (const RawSaved& saved : pass.saved) {
    if (saved.layer >= 0 && !in_range(saved.layer, pass.layer_paths.size())) return dangling;
  }
  for (const RawUnpack& unpack : pass.unpacks) {
    if (!in_range(unpack.saved, pass.saved.size())) return dangling;
  }
  for (std::size_t i = 0; i < pass.ops.size(); ++i) {
    if (pass.ops[i].parent >= 0 && !in_range(pass.ops[i].parent, i)) return dangling;
  }
  // Packs, unpacks and ops are numbered by their events.
  std::size_t packs = 0;
  std::size_t unpacks = 0;
  std::size_t ops = 0;
  for (const RawEvent& event : pass.events) {
    bool good = true;
    bool next = true;
    switch (event.kind) {
      case RawKind::pack:
        good = in_range(event.id, pass.saved.size());
        next = static_cast<std::size_t>(event.id) == packs++;
        break;
      case RawKind::unpack:
        good = in_range(event.id, pass.unpacks.size());
        next = static_cast<std::size_t>(event.id) == unpacks++;
        break;
      case RawKind::released:
        good = in_range(event.id, unpacks);
        break;
      case RawKind::layer_forward_begin:
      case RawKind::layer_forward_end:
      case RawKind::layer_backward_begin:
      case RawKind::layer_backward_end:
        good = in_range(event.id, pass.layer_paths.size());
        break;
      case RawKind::op_begin:
        good = in_range(event.id, pass.ops.size());
        next = static_cast<std::size_t>(event.id) == ops++;
        break;
      case RawKind::op_end:
        good = in_range(event.id, ops);
        break;
      default:
        break;
    }
    if (!good) return dangling;
    if (!next) return refuse("records of the " + name + " pass stand out of order");
  }
  if (packs != pass.saved.size() || unpacks != pass.unpacks.size() || ops != pass.ops.size()) {
    return refuse("the " + name + " pass has records that no event names");
  }
  return Unit{};
}

}  // namespace

Result<Trace> assemble(const RawRecording& recording) {
  if (Status status = check_events(recording.structure, "structure"); !status) {
    return status.error();
  }
  if (Status status = check_events(recording.offload_all, "offload_all"); !status) {
    return status.error();
  }
  if (recording.structure.peak_requested != recording.clean.peak_requested) {
    return refuse("the observed step peaked at " +
                      std::to_string(recording.structure.peak_requested) +
                      " requested bytes, the unobserved one at " +
                      std::to_string(recording.clean.peak_requested),
                  "the step is not the same each time; more --warmup may help");
  }
  const Result<Ends> ends = join(recording.structure, recording.offload_all);
  if (!ends) return ends.error();
  return Assembler(recording, *ends).run();
}

}  // namespace stowage::profiler
