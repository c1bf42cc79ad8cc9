#include "bench/synthetic_step.h"

#include <string>
#include <utility>

namespace stowage::bench {
namespace {

constexpr int kForwardOps = 25;
constexpr Bytes kBytes = 4 << 20;

class Step {
 public:
  Trace run(int layers) && {
    trace_.env.device = "cpu";
    trace_.fingerprint = "sha256:synthetic";
    for (LinkCurve* curve : {&trace_.calibration.d2h, &trace_.calibration.h2d}) {
      curve->bytes = {4096, 1 << 16, 1 << 20, 16 << 20};
      curve->bytes_per_second = {1'400'000'000, 16'400'000'000, 47'900'000'000, 55'300'000'000};
      curve->latency = 2000;
    }
    trace_.calibration.duplex = 884'000;
    trace_.calibration.copy_interference = 980'000;
    trace_.calibration.compute_interference = 990'000;
    trace_.lists = {{kBytes / 4}, {1}};
    trace_.strings = {"step", "layer", "aten::op"};
    add_layer(0);
    event(EventKind::step_begin, -1);
    begin_phase(PhaseKind::forward);
    for (int l = 0; l < layers; ++l) forward_layer();
    begin_phase(PhaseKind::backward);
    event(EventKind::backward_begin, -1);
    for (int l = layers; l > 0; --l) backward_layer(l);
    event(EventKind::backward_end, -1);
    event(EventKind::step_end, -1);
    trace_.phases.last_event.back() = EventId(trace_.events.size() - 1);
    return std::move(trace_);
  }

 private:
  EventId event(EventKind kind, std::int32_t ref) {
    trace_.events.kind.push_back(kind);
    trace_.events.ref.push_back(ref);
    trace_.events.op.emplace_back();
    trace_.events.time.push_back(now_);
    return EventId(trace_.events.size() - 1);
  }

  void begin_phase(PhaseKind kind) {
    Phases& p = trace_.phases;
    const EventId here(trace_.events.size() - (p.size() == 0 ? 1 : 0));
    if (p.size() > 0) p.last_event.back() = EventId(here.value - 1);
    p.kind.push_back(kind);
    p.micro_batch.push_back(0);
    p.first_event.push_back(here);
    p.last_event.push_back(here);
  }

  std::int32_t add_layer(std::int32_t number) {
    Layers& l = trace_.layers;
    const std::string name = "layers." + std::to_string(number);
    l.name.emplace_back(number == 0 ? 0 : trace_.strings.size());
    if (number > 0) trace_.strings.push_back(name);
    l.parent.emplace_back(number == 0 ? -1 : 0);
    l.kind.emplace_back(1);
    l.parameter_bytes.push_back(0);
    l.forward_order.push_back(number);
    l.calls.push_back(1);
    return number;
  }

  OpId begin_op(std::int32_t layer, OpId parent) {
    Ops& o = trace_.ops;
    const OpId id(o.size());
    o.name.emplace_back(2);
    o.layer.emplace_back(layer);
    o.phase.emplace_back(trace_.phases.size() - 1);
    o.parent.push_back(parent);
    o.thread.push_back(0);
    o.start.push_back(now_);
    o.duration.push_back(0);
    o.sequence.push_back(-1);
    o.forward_op.emplace_back();
    o.in_place.push_back(0);
    o.primitive.push_back(1);
    event(EventKind::op_begin, id.value);
    return id;
  }

  StorageId alloc(StorageClass storage_class) {
    Storages& s = trace_.storages;
    const StorageId id(s.size());
    s.device.push_back(0);
    s.bytes.push_back(kBytes);
    s.rounded_bytes.push_back(kBytes);
    s.storage_class.push_back(storage_class);
    s.evidence.push_back(Evidence::data_flow);
    s.layer.emplace_back(0);
    s.alloc_op.emplace_back();
    s.alloc_event.push_back(event(EventKind::alloc, id.value));
    s.free_event.emplace_back();
    s.natural_free_event.emplace_back();
    s.parameter.emplace_back();
    return id;
  }

  void free(StorageId id) {
    const EventId before(trace_.events.size() - 1);
    trace_.storages.free_event[id.index()] = event(EventKind::free, id.value);
    EventId& natural = trace_.storages.natural_free_event[id.index()];
    if (!natural.valid()) natural = before;
  }

  void pack(StorageId storage, std::int32_t layer, std::int32_t ordinal) {
    Tensors& t = trace_.tensors;
    t.storage.push_back(storage);
    t.dtype.push_back(DType::float32);
    t.shape.emplace_back(0);
    t.strides.emplace_back(1);
    t.offset.push_back(0);
    t.producer.emplace_back();
    t.version.push_back(0);
    t.item_bytes.push_back(4);
    Saved& s = trace_.saved;
    const SavedId id(s.event.size());
    s.site.emplace_back(trace_.strings.size());
    trace_.strings.push_back("layers." + std::to_string(layer) + "#" + std::to_string(ordinal));
    s.layer.emplace_back(layer);
    s.call.push_back(0);
    s.ordinal.push_back(ordinal);
    s.tensor.emplace_back(t.size() - 1);
    s.storage.push_back(storage);
    s.storage_index.push_back(id.value);
    s.op.emplace_back();
    s.version.push_back(0);
    s.event.push_back(event(EventKind::pack, id.value));
    trace_.storages.natural_free_event[storage.index()] = s.event.back();
  }

  void unpack(SavedId saved) {
    Unpacks& u = trace_.unpacks;
    u.saved.push_back(saved);
    u.op.emplace_back();
    u.event.push_back(event(EventKind::unpack, static_cast<std::int32_t>(u.event.size())));
    u.released_event.push_back(u.event.back());
  }

  void forward_layer() {
    const std::int32_t layer = add_layer(static_cast<std::int32_t>(trace_.layers.size()));
    event(EventKind::layer_forward_begin, layer);
    for (int i = 0; i < kForwardOps; ++i) {
      const OpId op = begin_op(layer, {});
      const StorageId temporary = alloc(StorageClass::temporary);
      begin_op(layer, op);
      now_ += 40'000;
      free(temporary);
      const StorageId output = alloc(StorageClass::activation);
      if (i % 2 == 0) {
        pack(output, layer, i / 2);
      } else {
        free(output);
      }
      event(EventKind::op_end, op.value);
    }
    event(EventKind::layer_forward_end, layer);
  }

  void backward_layer(std::int32_t layer) {
    event(EventKind::layer_backward_begin, layer);
    for (int i = 2 * kForwardOps; i > 0; --i) {
      const OpId op = begin_op(layer, {});
      const StorageId temporary = alloc(StorageClass::temporary);
      begin_op(layer, op);
      now_ += 40'000;
      if (i % 4 == 0) {
        const SavedId saved(trace_.saved.size() - 1 - trace_.unpacks.size());
        unpack(saved);
        free(trace_.saved.storage[saved.index()]);
      }
      free(temporary);
      event(EventKind::op_end, op.value);
    }
    event(EventKind::layer_backward_end, layer);
  }

  Trace trace_;
  Nanoseconds now_ = 0;
};

}  // namespace

Trace synthetic_step(int layers) {
  return Step().run(layers);
}

}  // namespace stowage::bench
