// Valid traces of any size, for tests and benchmarks: a chain of layers whose forward ops each save
// their result and whose backward ops each unpack one, with a temporary besides.
#pragma once

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "traces/fingerprint.h"
#include "traces/trace.h"

namespace stowage::testing {

class SyntheticTrace {
 public:
  // `forward_ops` ops in forward and as many in backward, `ops_per_layer` of them in each layer.
  SyntheticTrace(int forward_ops, int ops_per_layer) {
    Trace& t = trace_;
    t.schema.writer = "synthetic";
    t.schema.features = {"saved"};
    t.run.uuid = "00000000-0000-4000-8000-000000000000";
    t.run.created = "2026-11-20T12:00:00Z";
    t.run.source = "recorded";
    t.run.model = "synthetic";
    t.run.batch = 4;
    t.run.dtype = "fp32";
    t.run.optimizer = "none";
    t.run.steps = 1;
    t.run.threads = 2;
    t.env.device = "cpu";
    t.calibration.method = "made up";
    t.calibration.samples = 1;
    t.calibration.d2h = {{1 << 20, 1 << 24},
                         {9'000'000'000, 11'000'000'000},
                         {8'000'000'000, 10'000'000'000},
                         10'000};
    t.calibration.h2d = t.calibration.d2h;
    t.calibration.duplex = 800'000;

    shape_ = list({64, 128});
    strides_ = list({128, 1});
    layer("step", -1, "step");
    const int layers = (forward_ops + ops_per_layer - 1) / ops_per_layer;
    for (int i = 0; i < layers; ++i) layer("layers." + std::to_string(i), 0, "layer");

    const StorageId parameter = storage(kBytes, StorageClass::parameter, LayerId(1), OpId());
    event(EventKind::step_begin, -1, OpId());
    phase(PhaseKind::forward);
    std::vector<std::pair<SavedId, StorageId>> stack;
    for (int i = 0; i < forward_ops; ++i) {
      const LayerId in(1 + i / ops_per_layer);
      if (i % ops_per_layer == 0) event(EventKind::layer_forward_begin, in.value, OpId());
      const OpId op = begin_op("aten::mm", in);
      const StorageId made = allocate(StorageClass::activation, in, op);
      const TensorId view = tensor(made, op);
      use(op, view, UseMode::write);
      stack.emplace_back(pack(view, made, in, i % ops_per_layer, op), made);
      if (i % 8 == 0) pack(tensor(parameter, OpId()), parameter, in, ops_per_layer + i, op);
      end_op(op);
      if (i % ops_per_layer == ops_per_layer - 1 || i + 1 == forward_ops) {
        event(EventKind::layer_forward_end, in.value, OpId());
      }
    }
    phase(PhaseKind::backward);
    event(EventKind::backward_begin, -1, OpId());
    for (int i = forward_ops - 1; i >= 0; --i) {
      const LayerId in(1 + i / ops_per_layer);
      const OpId op = begin_op("aten::mm_backward", in);
      t.ops.forward_op.back() = OpId(i);
      const auto [saved, made] = stack.back();
      stack.pop_back();
      unpack(saved, op);
      const StorageId scratch = allocate(StorageClass::temporary, in, op);
      use(op, tensor(scratch, op), UseMode::write);
      use(op, t.saved.tensor[saved.index()], UseMode::read);
      const EventId released = end_op(op);
      t.unpacks.released_event.back() = released;
      t.storages.natural_free_event[made.index()] = t.saved.event[saved.index()];
      t.storages.natural_free_event[scratch.index()] = released;
      free(made);
      free(scratch);
    }
    event(EventKind::backward_end, -1, OpId());
    event(EventKind::step_end, -1, OpId());
    t.phases.last_event.back() = EventId(t.events.size() - 1);
    t.fingerprint = fingerprint(t);
  }

  [[nodiscard]] const Trace& trace() const { return trace_; }

 private:
  static constexpr Bytes kBytes = 64 * 128 * 4;

  StringId string(const std::string& text) {
    const auto at = std::find(trace_.strings.rbegin(), trace_.strings.rend(), text);
    if (at != trace_.strings.rend()) {
      return StringId(static_cast<std::size_t>(trace_.strings.rend() - at - 1));
    }
    trace_.strings.push_back(text);
    return StringId(trace_.strings.size() - 1);
  }
  ListId list(std::vector<std::int64_t> values) {
    trace_.lists.push_back(std::move(values));
    return ListId(trace_.lists.size() - 1);
  }
  void layer(const std::string& name, std::int32_t parent, const char* kind) {
    Layers& layers = trace_.layers;
    trace_.strings.push_back(name);
    layers.name.emplace_back(trace_.strings.size() - 1);
    layers.parent.emplace_back(parent);
    layers.kind.push_back(string(kind));
    layers.parameter_bytes.push_back(parent < 0 ? 0 : kBytes);
    layers.forward_order.push_back(static_cast<std::int32_t>(layers.name.size()) - 1);
    layers.calls.push_back(1);
  }
  void phase(PhaseKind kind) {
    Phases& phases = trace_.phases;
    const auto next = static_cast<std::int32_t>(trace_.events.size());
    // The step_begin row belongs to the first phase.
    if (!phases.last_event.empty()) phases.last_event.back() = EventId(next - 1);
    phases.kind.push_back(kind);
    phases.micro_batch.push_back(0);
    phases.first_event.emplace_back(phases.size() == 1 ? 0 : next);
    phases.last_event.emplace_back(next);
  }
  EventId event(EventKind kind, std::int32_t ref, OpId op) {
    Events& events = trace_.events;
    events.kind.push_back(kind);
    events.ref.push_back(ref);
    events.op.push_back(op);
    events.time.push_back(time_ += 700);
    return EventId(events.size() - 1);
  }
  OpId begin_op(const char* name, LayerId in) {
    Ops& ops = trace_.ops;
    const OpId op(ops.size());
    event(EventKind::op_begin, op.value, op);
    if (op_name_ != name) {
      op_name_ = name;
      op_name_id_ = string(name);
    }
    ops.name.push_back(op_name_id_);
    ops.layer.push_back(in);
    ops.phase.emplace_back(trace_.phases.size() - 1);
    ops.parent.emplace_back();
    ops.thread.push_back(1);
    ops.start.push_back(time_);
    ops.duration.push_back(0);
    ops.sequence.push_back(op.value);
    ops.forward_op.emplace_back();
    ops.in_place.push_back(0);
    ops.primitive.push_back(1);
    return op;
  }
  EventId end_op(OpId op) {
    const EventId end = event(EventKind::op_end, op.value, op);
    trace_.ops.duration.back() = time_ - trace_.ops.start.back();
    return end;
  }
  StorageId storage(Bytes bytes, StorageClass kind, LayerId in, OpId op) {
    Storages& storages = trace_.storages;
    storages.device.push_back(0);
    storages.bytes.push_back(bytes);
    storages.rounded_bytes.push_back(bytes);
    storages.storage_class.push_back(kind);
    storages.evidence.push_back(Evidence::registered);
    storages.layer.push_back(in);
    storages.alloc_op.push_back(op);
    storages.alloc_event.emplace_back();
    storages.free_event.emplace_back();
    storages.natural_free_event.emplace_back();
    storages.parameter.emplace_back();
    if (!op.valid()) live_ += bytes;
    return StorageId(storages.size() - 1);
  }
  StorageId allocate(StorageClass kind, LayerId in, OpId op) {
    const StorageId made = storage(kBytes, kind, in, op);
    trace_.storages.alloc_event.back() = event(EventKind::alloc, made.value, op);
    counter(kBytes);
    return made;
  }
  void free(StorageId storage) {
    trace_.storages.free_event[storage.index()] = event(EventKind::free, storage.value, OpId());
    counter(-kBytes);
  }
  void counter(Bytes change) {
    live_ += change;
    AllocatorCurve& curve = trace_.allocator;
    curve.event.emplace_back(trace_.events.size() - 1);
    curve.requested.push_back(live_);
    curve.active.push_back(live_);
    curve.reserved.push_back(-1);
  }
  TensorId tensor(StorageId storage, OpId producer) {
    Tensors& tensors = trace_.tensors;
    tensors.storage.push_back(storage);
    tensors.dtype.push_back(DType::float32);
    tensors.shape.push_back(shape_);
    tensors.strides.push_back(strides_);
    tensors.offset.push_back(0);
    tensors.producer.push_back(producer);
    tensors.version.push_back(0);
    tensors.item_bytes.push_back(4);
    return TensorId(tensors.size() - 1);
  }
  void use(OpId op, TensorId tensor, UseMode mode) {
    trace_.uses.op.push_back(op);
    trace_.uses.tensor.push_back(tensor);
    trace_.uses.mode.push_back(mode);
  }
  SavedId pack(TensorId view, StorageId storage, LayerId in, int ordinal, OpId op) {
    Saved& saved = trace_.saved;
    const SavedId row(saved.size());
    if (index_of_.size() <= storage.index()) index_of_.resize(storage.index() + 1, -1);
    if (index_of_[storage.index()] < 0) index_of_[storage.index()] = next_index_++;
    trace_.strings.push_back(trace_.string(trace_.layers.name[in.index()]) + "#" +
                             std::to_string(ordinal));
    saved.site.emplace_back(trace_.strings.size() - 1);
    saved.layer.push_back(in);
    saved.call.push_back(0);
    saved.ordinal.push_back(ordinal);
    saved.tensor.push_back(view);
    saved.storage.push_back(storage);
    saved.storage_index.push_back(index_of_[storage.index()]);
    saved.op.push_back(op);
    saved.event.push_back(event(EventKind::pack, row.value, op));
    saved.version.push_back(0);
    return row;
  }
  void unpack(SavedId saved, OpId op) {
    Unpacks& unpacks = trace_.unpacks;
    const auto row = static_cast<std::int32_t>(unpacks.size());
    unpacks.saved.push_back(saved);
    unpacks.op.push_back(op);
    unpacks.event.push_back(event(EventKind::unpack, row, op));
    unpacks.released_event.emplace_back();
  }

  Trace trace_;
  Nanoseconds time_ = 0;
  Bytes live_ = 0;
  ListId shape_;
  ListId strides_;
  std::string op_name_;
  StringId op_name_id_;
  std::vector<std::int32_t> index_of_;
  std::int32_t next_index_ = 0;
};

// 8 ops in forward, 8 in backward, two layers: small enough to break by hand.
inline Trace small_trace() {
  return SyntheticTrace(8, 4).trace();
}

}  // namespace stowage::testing
