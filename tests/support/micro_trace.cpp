#include "tests/support/micro_trace.h"

#include <algorithm>
#include <utility>

namespace stowage::testing {

LinkCurve flat_link(std::int64_t bytes_per_second, Nanoseconds latency) {
  LinkCurve curve;
  curve.bytes = {1'000'000};
  curve.bytes_per_second = {bytes_per_second};
  curve.bytes_per_second_p10 = {bytes_per_second};
  curve.latency = latency;
  return curve;
}

MicroTrace::MicroTrace() {
  trace_.schema.writer = "micro";
  trace_.run.source = "recorded";
  trace_.run.model = "micro";
  trace_.run.dtype = "fp32";
  trace_.run.optimizer = "none";
  trace_.env.device = "cpu";
  trace_.fingerprint = "sha256:micro";
  trace_.calibration.method = "made up";
  trace_.calibration.d2h = flat_link(1'000'000'000);
  trace_.calibration.h2d = flat_link(1'000'000'000);
  open_layers_.push_back(layer("step"));
  trace_.layers.kind[0] = intern("step");
  event(EventKind::step_begin);
  begin_phase(PhaseKind::forward);
  trace_.phases.first_event[0] = EventId(0);
}

MicroTrace& MicroTrace::run(Nanoseconds time) {
  now_ += time;
  return *this;
}

StorageId MicroTrace::existing(Bytes bytes, StorageClass storage_class) {
  Storages& s = trace_.storages;
  s.device.push_back(0);
  s.bytes.push_back(bytes);
  s.rounded_bytes.push_back(bytes);
  s.storage_class.push_back(storage_class);
  s.evidence.push_back(Evidence::registered);
  s.layer.push_back(open_layers_.back());
  s.alloc_op.emplace_back();
  s.alloc_event.emplace_back();
  s.free_event.emplace_back();
  s.natural_free_event.emplace_back();
  s.parameter.emplace_back();
  return StorageId(s.size() - 1);
}

StorageId MicroTrace::alloc(Bytes bytes, StorageClass storage_class) {
  const StorageId id = existing(bytes, storage_class);
  trace_.storages.evidence.back() = Evidence::data_flow;
  if (!open_ops_.empty()) trace_.storages.alloc_op.back() = open_ops_.back();
  trace_.storages.alloc_event.back() = event(EventKind::alloc, id.value);
  return id;
}

void MicroTrace::free(StorageId storage) {
  const EventId before = last_kept_event();
  trace_.storages.free_event[storage.index()] = event(EventKind::free, storage.value);
  EventId& natural = trace_.storages.natural_free_event[storage.index()];
  if (!natural.valid()) natural = before;
}

void MicroTrace::passed(TensorId tensor, bool requires_grad) {
  trace_.layer_tensors.event.push_back(last_event());
  trace_.layer_tensors.tensor.push_back(tensor);
  trace_.layer_tensors.requires_grad.push_back(requires_grad ? 1 : 0);
}

void MicroTrace::let_go(StorageId storage) {
  trace_.storages.natural_free_event[storage.index()] = last_kept_event();
}

TensorId MicroTrace::view(StorageId storage, std::int64_t offset, std::int64_t count, DType dtype) {
  Tensors& t = trace_.tensors;
  const Bytes bytes = trace_.storages.bytes[storage.index()];
  if (count < 0) count = bytes / element_bytes(dtype) - offset;
  t.storage.push_back(storage);
  t.dtype.push_back(dtype);
  t.shape.emplace_back(trace_.lists.size());
  t.strides.emplace_back(trace_.lists.size() + 1);
  trace_.lists.push_back({count});
  trace_.lists.push_back({1});
  t.offset.push_back(offset);
  t.producer.emplace_back();
  t.version.push_back(0);
  t.item_bytes.push_back(element_bytes(dtype));
  return TensorId(t.size() - 1);
}

SavedId MicroTrace::pack(TensorId tensor) {
  Saved& s = trace_.saved;
  const LayerId in = open_layers_.back();
  const std::int32_t ordinal = packs_in_layer_[in.index()]++;
  const StorageId storage = trace_.tensors.storage[tensor.index()];
  std::int32_t storage_index = 0;
  for (std::size_t i = 0; i < s.size(); ++i) {
    if (s.storage[i] == storage) {
      storage_index = s.storage_index[i];
      break;
    }
    storage_index = std::max(storage_index, s.storage_index[i] + 1);
  }
  s.site.push_back(
      intern(trace_.string(trace_.layers.name[in.index()]) + "#" + std::to_string(ordinal)));
  s.layer.push_back(in);
  s.call.push_back(0);
  s.ordinal.push_back(ordinal);
  s.tensor.push_back(tensor);
  s.storage.push_back(storage);
  s.storage_index.push_back(storage_index);
  s.op.push_back(open_ops_.empty() ? OpId() : open_ops_.back());
  s.version.push_back(0);
  const SavedId id(s.event.size());
  s.event.push_back(event(EventKind::pack, id.value));
  return id;
}

void MicroTrace::set_version(SavedId saved, std::int64_t version) {
  trace_.saved.version[saved.index()] = version;
}

UnpackId MicroTrace::unpack(SavedId saved) {
  Unpacks& u = trace_.unpacks;
  const UnpackId id(u.size());
  u.saved.push_back(saved);
  u.op.push_back(open_ops_.empty() ? OpId() : open_ops_.back());
  u.event.push_back(event(EventKind::unpack, id.value));
  u.released_event.push_back(u.event.back());
  return id;
}

void MicroTrace::drop(UnpackId unpack) {
  trace_.unpacks.released_event[unpack.index()] = last_kept_event();
}

void MicroTrace::outlives_step(UnpackId unpack) {
  trace_.unpacks.released_event[unpack.index()] = EventId();
}

void MicroTrace::begin_layer(const std::string& path) {
  const LayerId id = layer(path);
  ++trace_.layers.calls[id.index()];
  open_layers_.push_back(id);
  event(EventKind::layer_forward_begin, id.value);
}

void MicroTrace::end_layer(const std::string& path) {
  event(EventKind::layer_forward_end, layer(path).value);
  open_layers_.pop_back();
}

void MicroTrace::begin_layer_backward(const std::string& path) {
  open_layers_.push_back(layer(path));
  event(EventKind::layer_backward_begin, layer(path).value);
}

void MicroTrace::end_layer_backward(const std::string& path) {
  event(EventKind::layer_backward_end, layer(path).value);
  open_layers_.pop_back();
}

OpId MicroTrace::begin_op(const std::string& name) {
  Ops& o = trace_.ops;
  const OpId id(o.size());
  o.name.push_back(intern(name));
  o.layer.push_back(open_layers_.back());
  o.phase.emplace_back(trace_.phases.size() - 1);
  o.parent.push_back(open_ops_.empty() ? OpId() : open_ops_.back());
  o.thread.push_back(0);
  o.start.push_back(now_);
  o.duration.push_back(0);
  o.sequence.push_back(-1);
  o.forward_op.emplace_back();
  o.in_place.push_back(0);
  o.primitive.push_back(1);
  for (const OpId open : open_ops_) {
    if (o.primitive[open.index()] != 0) o.primitive.back() = 0;
  }
  event(EventKind::op_begin, id.value);
  open_ops_.push_back(id);
  trace_.events.op.back() = id;
  return id;
}

OpId MicroTrace::begin_composite_op(const std::string& name) {
  const OpId id = begin_op(name);
  trace_.ops.primitive.back() = 0;
  return id;
}

void MicroTrace::end_op() {
  const OpId id = open_ops_.back();
  trace_.ops.duration[id.index()] = now_ - trace_.ops.start[id.index()];
  const bool has_end = open_ops_.size() == 1 || trace_.ops.primitive[id.index()] != 0;
  if (has_end) event(EventKind::op_end, id.value);
  open_ops_.pop_back();
}

void MicroTrace::write(StorageId storage) {
  const TensorId tensor = view(storage);
  trace_.uses.op.push_back(open_ops_.back());
  trace_.uses.tensor.push_back(tensor);
  trace_.uses.mode.push_back(UseMode::in_place);
}

void MicroTrace::read(StorageId storage) {
  write(storage);
  trace_.uses.mode.back() = UseMode::read;
  // A parameter belongs to the layer that uses it first.
  LayerId& layer = trace_.storages.layer[storage.index()];
  if (trace_.storages.storage_class[storage.index()] == StorageClass::parameter &&
      layer == open_layers_.front()) {
    layer = open_layers_.back();
  }
}

StorageId MicroTrace::state_of(StorageId parameter, Bytes bytes) {
  const StorageId state = existing(bytes, StorageClass::optimizer_state);
  trace_.storages.parameter.back() = parameter;
  return state;
}

StorageId MicroTrace::gradient_before(StorageId parameter) {
  const StorageId gradient = existing(bytes_of(parameter), StorageClass::gradient);
  trace_.storages.parameter.back() = parameter;
  return gradient;
}

StorageId MicroTrace::make_gradient(StorageId parameter) {
  const StorageId gradient = alloc(bytes_of(parameter), StorageClass::gradient);
  trace_.storages.parameter.back() = parameter;
  return gradient;
}

void MicroTrace::update(StorageId storage, Nanoseconds time) {
  event(EventKind::parameter_update_begin, storage.value);
  begin_op("aten::add_");
  write(storage);
  for (std::size_t s = 0; s < trace_.storages.size(); ++s) {
    if (trace_.storages.parameter[s] != storage) continue;
    if (trace_.storages.alloc_event[s].valid() && !trace_.storages.free_event[s].valid()) {
      read(StorageId(s));
    }
    if (trace_.storages.storage_class[s] != StorageClass::optimizer_state) continue;
    first_times_.push_back({last_event(), trace_.storages.bytes[s], StorageId(s)});
    write(StorageId(s));
  }
  run(time);
  end_op();
  event(EventKind::parameter_update_end, storage.value);
}

void MicroTrace::set_layer(StorageId storage, const std::string& path) {
  trace_.storages.layer[storage.index()] = layer(path);
}

void MicroTrace::kernel(Nanoseconds duration) {
  Gpu& g = trace_.gpu;
  trace_.env.device = "cuda";
  g.kind.push_back(GpuKind::kernel);
  g.op.push_back(open_ops_.empty() ? OpId() : open_ops_.back());
  g.name.push_back(intern("kernel"));
  g.correlation.push_back(static_cast<std::int64_t>(g.size()));
  g.stream.push_back(7);
  g.start.push_back(now_);
  g.duration.push_back(duration);
  g.launch_start.push_back(now_);
  g.launch_duration.push_back(0);
  g.bytes.push_back(0);
  g.event.push_back(EventId(trace_.events.size() - 1));
}

void MicroTrace::sync(Nanoseconds duration) {
  trace_.syncs.event.push_back(last_event());
  trace_.syncs.duration.push_back(duration);
  run(duration);
}

void MicroTrace::set_up(std::vector<Bytes> gone) {
  has_setup_ = true;
  gone_ = std::move(gone);
  trace_.env.device = "cuda";
}

StorageId MicroTrace::made_by_first_step(Bytes bytes) {
  const StorageId storage = existing(bytes, StorageClass::workspace);
  first_times_.push_back({last_event(), bytes, storage});
  return storage;
}

void MicroTrace::once(Bytes bytes) {
  first_times_.push_back({last_event(), bytes, {}});
}

void MicroTrace::write_setup() {
  Storages& storages = trace_.storages;
  std::size_t next = 0;
  for (std::size_t s = 0; s < storages.size() && next < old_.size(); ++s) {
    if (!storages.alloc_event[s].valid() || storages.free_event[s].valid()) continue;
    if (storages.parameter[s].valid()) continue;  // gradient_before() is as large
    storages.bytes[old_[next++].index()] = storages.bytes[s];
  }
  for (; next < old_.size(); ++next) storages.bytes[old_[next].index()] = 0;
  if (!has_setup_) return;
  for (std::size_t s = 0; s < storages.size(); ++s) {
    storages.rounded_bytes[s] = (storages.bytes[s] + 511) / 512 * 512;
  }
  Setup& setup = trace_.setup;
  const auto add = [&](Bytes bytes, std::int32_t free_of, StorageId storage, EventId event = {}) {
    setup.bytes.push_back(bytes);
    setup.free_of.push_back(free_of);
    setup.storage.push_back(storage);
    setup.event.push_back(event);
  };
  std::vector<bool> is_later(storages.size(), false);
  for (const FirstTime& each : first_times_) {
    if (each.storage.valid()) is_later[each.storage.index()] = true;
  }
  for (const Bytes bytes : gone_) add(bytes, -1, {});
  for (std::size_t s = 0; s < storages.size(); ++s) {
    if (storages.alloc_event[s].valid() || storages.free_event[s].valid() || is_later[s]) continue;
    add(storages.bytes[s], -1, StorageId(s));
  }
  for (std::size_t i = 0; i < gone_.size(); ++i) add(0, static_cast<std::int32_t>(i), {});
  for (const FirstTime& each : first_times_) {
    const auto row = static_cast<std::int32_t>(setup.size());
    add(each.bytes, -1, each.storage, each.event);
    if (!each.storage.valid()) add(0, row, {}, each.event);
  }
}

void MicroTrace::forward() {
  event(EventKind::backward_end);
  begin_phase(PhaseKind::forward);
  ++trace_.phases.micro_batch.back();
}

void MicroTrace::backward() {
  begin_phase(PhaseKind::backward);
  event(EventKind::backward_begin);
}

void MicroTrace::optimizer() {
  if (trace_.phases.kind.back() == PhaseKind::backward) event(EventKind::backward_end);
  begin_phase(PhaseKind::optimizer);
}

Trace MicroTrace::finish() {
  event(EventKind::step_end);
  trace_.phases.last_event.back() = last_event();
  trace_.layers.forward_order.resize(trace_.layers.size());
  for (std::size_t l = 0; l < trace_.layers.size(); ++l) {
    trace_.layers.forward_order[l] = static_cast<std::int32_t>(l);
  }
  trace_.overhead.clean.step_ns = now_;
  write_setup();
  return std::move(trace_);
}

EventId MicroTrace::event(EventKind kind, std::int32_t ref) {
  trace_.events.kind.push_back(kind);
  trace_.events.ref.push_back(ref);
  trace_.events.op.push_back(open_ops_.empty() ? OpId() : open_ops_.back());
  trace_.events.time.push_back(now_);
  return last_event();
}

EventId MicroTrace::last_kept_event() const {
  EventId last = last_event();
  while (trace_.events.kind[last.index()] == EventKind::free) last = EventId(last.value - 1);
  return last;
}

StringId MicroTrace::intern(const std::string& text) {
  auto& strings = trace_.strings;
  const auto known = std::find(strings.begin(), strings.end(), text);
  const StringId id(static_cast<std::size_t>(known - strings.begin()));
  if (known == strings.end()) strings.push_back(text);
  return id;
}

LayerId MicroTrace::layer(const std::string& path) {
  Layers& l = trace_.layers;
  const StringId name = intern(path);
  const auto known = std::find(l.name.begin(), l.name.end(), name);
  if (known != l.name.end()) return LayerId(static_cast<std::size_t>(known - l.name.begin()));
  l.name.push_back(name);
  l.parent.push_back(open_layers_.empty() ? LayerId() : open_layers_.back());
  l.kind.push_back(intern("layer"));
  l.parameter_bytes.push_back(0);
  l.calls.push_back(0);
  packs_in_layer_.push_back(0);
  return LayerId(l.size() - 1);
}

void MicroTrace::begin_phase(PhaseKind kind) {
  Phases& p = trace_.phases;
  if (p.size() > 0) p.last_event.back() = last_event();
  p.kind.push_back(kind);
  p.micro_batch.push_back(p.size() > 1 ? p.micro_batch.back() : 0);
  p.first_event.emplace_back(trace_.events.size());
  p.last_event.emplace_back(trace_.events.size());
}

simulator::Decisions keep_all(const Trace& trace) {
  simulator::Decisions decisions;
  decisions.saved.resize(trace.saved.size());
  return decisions;
}

Trace two_offloadable(Bytes first, Bytes second) {
  MicroTrace t;
  const auto a = t.alloc(first);
  const auto sa = t.pack(a);
  t.let_go(a);
  const auto b = t.alloc(second);
  const auto sb = t.pack(b);
  t.let_go(b);
  t.backward();
  t.run(5000);
  t.unpack(sb);
  t.run(5000);
  t.unpack(sa);
  t.free(b);
  t.free(a);
  return t.finish();
}

simulator::Decisions offload_all(const Trace& trace) {
  simulator::Decisions decisions = keep_all(trace);
  for (auto& row : decisions.saved) row.decision = simulator::Decision::offload;
  return decisions;
}

}  // namespace stowage::testing
