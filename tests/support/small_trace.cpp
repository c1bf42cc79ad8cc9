#include "tests/support/small_trace.h"

#include <map>
#include <string>
#include <vector>

#include "traces/fingerprint.h"

namespace stowage::testing {
namespace {

constexpr Bytes kParameter = 400'000;
constexpr Bytes kActivation = 2'000'000;
constexpr Bytes kOutput = 500'000;
constexpr Bytes kInput = 200'000;
constexpr Bytes kLoss = 8'000;
constexpr Nanoseconds kMillisecond = 1'000'000;

class Builder {
 public:
  explicit Builder(int layers) : count_(layers) {
    head();
    for (int i = 0; i < layers; ++i) {
      parameters_.push_back(storage(kParameter, StorageClass::parameter, layer(i)));
      old_gradients_.push_back(storage(kParameter, StorageClass::gradient, layer(i)));
    }
    storage(kInput, StorageClass::input, LayerId(0));
    for (int i = 0; i < static_cast<int>(trace_.storages.size()); ++i) {
      now_ += trace_.storages.bytes[static_cast<std::size_t>(i)];
    }
    steps();
    peak();
    trace_.fingerprint = fingerprint(trace_);
  }

  Trace take() { return std::move(trace_); }

 private:
  LayerId layer(int i) const { return LayerId(1 + i); }
  LayerId loss_layer() const { return LayerId(1 + count_); }

  StringId string(const std::string& text) {
    const auto [at, added] = strings_.try_emplace(text, StringId(trace_.strings.size()));
    if (added) trace_.strings.push_back(text);
    return at->second;
  }

  ListId list(std::int64_t value) {
    const auto [at, added] = lists_.try_emplace(value, ListId(trace_.lists.size()));
    if (added) trace_.lists.push_back({value});
    return at->second;
  }

  void add_layer(const std::string& name, const std::string& kind, Bytes parameters, int order) {
    trace_.layers.name.push_back(string(name));
    trace_.layers.parent.push_back(order < 0 ? LayerId() : LayerId(0));
    trace_.layers.kind.push_back(string(kind));
    trace_.layers.parameter_bytes.push_back(parameters);
    trace_.layers.forward_order.push_back(order);
    trace_.layers.calls.push_back(1);
  }

  void head() {
    Trace& t = trace_;
    t.schema.writer = "stowage tests";
    t.run.uuid = "00000000-0000-4000-8000-000000000001";
    t.run.created = "2026-11-20T12:00:00Z";
    t.run.source = "recorded";
    t.run.model = "small:layers=" + std::to_string(count_);
    t.run.batch = 4;
    t.run.seq = 16;
    t.run.dtype = "fp32";
    t.run.optimizer = "none";
    t.run.seed = 1;
    t.run.steps = 1;
    t.run.warmup_steps = 2;
    t.run.threads = 1;
    t.env.device = "cpu";
    t.env.device_name = "a test's CPU";
    add_layer("step", "step", 0, -1);
    for (int i = 0; i < count_; ++i) {
      add_layer("layers." + std::to_string(i), "layer", kParameter, i);
    }
    add_layer("loss", "layer", 0, count_);
    t.calibration.method = "made by hand";
    t.calibration.samples = 1;
    t.calibration.d2h = {{1'000'000, 8'000'000},
                         {8'000'000'000, 8'000'000'000},
                         {7'000'000'000, 7'000'000'000},
                         10'000};
    t.calibration.h2d = t.calibration.d2h;
  }

  StorageId storage(Bytes bytes, StorageClass storage_class, LayerId in, OpId op = OpId()) {
    Storages& s = trace_.storages;
    s.device.push_back(0);
    s.bytes.push_back(bytes);
    s.rounded_bytes.push_back(bytes);
    s.storage_class.push_back(storage_class);
    s.evidence.push_back(op.valid() ? Evidence::data_flow : Evidence::registered);
    s.layer.push_back(in);
    s.alloc_op.push_back(op);
    s.alloc_event.push_back(EventId());
    s.free_event.push_back(EventId());
    s.natural_free_event.push_back(EventId());
    s.parameter.emplace_back();
    return StorageId(s.size() - 1);
  }

  EventId event(EventKind kind, std::int32_t ref) {
    trace_.events.kind.push_back(kind);
    trace_.events.ref.push_back(ref);
    trace_.events.op.push_back(op_);
    trace_.events.time.push_back(time_);
    const EventId id(trace_.events.size() - 1);
    if (kind != EventKind::free) last_not_free_ = id;
    return id;
  }

  void count(EventId id, Bytes change) {
    now_ += change;
    trace_.allocator.event.push_back(id);
    trace_.allocator.requested.push_back(now_);
    trace_.allocator.active.push_back(now_);
    trace_.allocator.reserved.push_back(-1);
  }

  StorageId allocate(Bytes bytes, StorageClass storage_class, LayerId in) {
    const StorageId id = storage(bytes, storage_class, in, op_);
    trace_.storages.alloc_event[id.index()] = event(EventKind::alloc, id.value);
    count(trace_.storages.alloc_event[id.index()], bytes);
    return id;
  }

  // The model's own references are gone as of now, unless they were before.
  void natural_free(StorageId id) {
    trace_.storages.natural_free_event[id.index()] = last_not_free_;
  }

  void free(StorageId id) {
    if (!trace_.storages.natural_free_event[id.index()].valid()) natural_free(id);
    trace_.storages.free_event[id.index()] = event(EventKind::free, id.value);
    count(trace_.storages.free_event[id.index()], -trace_.storages.bytes[id.index()]);
  }

  void begin_phase(PhaseKind kind) {
    trace_.phases.kind.push_back(kind);
    trace_.phases.micro_batch.push_back(0);
    trace_.phases.first_event.push_back(EventId(trace_.events.size()));
    trace_.phases.last_event.push_back(EventId());
  }
  void end_phase() { trace_.phases.last_event.back() = EventId(trace_.events.size() - 1); }

  void begin_op(const std::string& name, LayerId in, Nanoseconds duration) {
    Ops& ops = trace_.ops;
    ops.name.push_back(string(name));
    ops.layer.push_back(in);
    ops.phase.push_back(PhaseId(trace_.phases.size() - 1));
    ops.parent.push_back(OpId());
    ops.thread.push_back(0);
    ops.start.push_back(time_);
    ops.duration.push_back(duration);
    ops.sequence.push_back(-1);
    ops.forward_op.push_back(OpId());
    ops.in_place.push_back(0);
    ops.primitive.push_back(1);
    op_ = OpId(ops.size() - 1);
    event(EventKind::op_begin, op_.value);
    time_ += duration / 2;
  }

  void end_op() {
    const OpId op = op_;
    time_ = trace_.ops.start[op.index()] + trace_.ops.duration[op.index()];
    event(EventKind::op_end, op.value);
    op_ = OpId();
  }

  void save(StorageId id, LayerId in, const std::string& site) {
    const Bytes elements = trace_.storages.bytes[id.index()] / 4;
    trace_.tensors.storage.push_back(id);
    trace_.tensors.dtype.push_back(DType::float32);
    trace_.tensors.shape.push_back(list(elements));
    trace_.tensors.strides.push_back(list(1));
    trace_.tensors.offset.push_back(0);
    trace_.tensors.producer.push_back(trace_.storages.alloc_op[id.index()]);
    trace_.tensors.version.push_back(0);
    trace_.tensors.item_bytes.push_back(4);
    Saved& saved = trace_.saved;
    const auto row = static_cast<std::int32_t>(saved.size());
    saved.site.push_back(string(site));
    saved.layer.push_back(in);
    saved.call.push_back(0);
    saved.ordinal.push_back(0);
    saved.tensor.push_back(TensorId(trace_.tensors.size() - 1));
    saved.storage.push_back(id);
    saved.storage_index.push_back(row);
    saved.op.push_back(op_);
    saved.event.push_back(event(EventKind::pack, row));
    saved.version.push_back(0);
  }

  void unpack(int saved) {
    Unpacks& unpacks = trace_.unpacks;
    unpacks.saved.push_back(SavedId(saved));
    unpacks.op.push_back(op_);
    unpacks.event.push_back(
        event(EventKind::unpack, static_cast<std::int32_t>(unpacks.saved.size() - 1)));
    unpacks.released_event.push_back(EventId());
  }

  void steps() {
    begin_phase(PhaseKind::zero_grad);
    event(EventKind::step_begin, -1);
    for (const StorageId gradient : old_gradients_) free(gradient);
    end_phase();
    begin_phase(PhaseKind::forward);
    for (int i = 0; i < count_; ++i) forward(i);
    event(EventKind::layer_forward_begin, loss_layer().value);
    begin_op("aten::mean", loss_layer(), kMillisecond);
    loss_ = allocate(kLoss, StorageClass::output, loss_layer());
    end_op();
    free(outputs_.back());
    event(EventKind::layer_forward_end, loss_layer().value);
    end_phase();
    begin_phase(PhaseKind::backward);
    event(EventKind::backward_begin, -1);
    for (int i = count_ - 1; i >= 0; --i) backward(i);
    event(EventKind::backward_end, -1);
    free(loss_);
    event(EventKind::step_end, -1);
    end_phase();
    trace_.overhead.clean.step_ns = time_;
    trace_.overhead.structure.step_ns = time_ + kMillisecond;
    trace_.overhead.offload_all.step_ns = time_ + 2 * kMillisecond;
  }

  void forward(int i) {
    event(EventKind::layer_forward_begin, layer(i).value);
    begin_op("aten::mm", layer(i), kMillisecond);
    const StorageId activation = allocate(kActivation, StorageClass::activation, layer(i));
    end_op();
    begin_op("aten::relu", layer(i), kMillisecond);
    save(activation, layer(i), "layers." + std::to_string(i) + "#0");
    const StorageId output = allocate(kOutput, StorageClass::temporary, layer(i));
    end_op();
    natural_free(activation);
    if (i > 0) free(outputs_.back());
    activations_.push_back(activation);
    outputs_.push_back(output);
    event(EventKind::layer_forward_end, layer(i).value);
  }

  void backward(int i) {
    event(EventKind::layer_backward_begin, layer(i).value);
    begin_op("aten::relu_backward", layer(i), 2 * kMillisecond);
    unpack(i);
    const StorageId passed = allocate(kActivation, StorageClass::temporary, layer(i));
    end_op();
    trace_.unpacks.released_event.back() = last_not_free_;
    free(activations_[static_cast<std::size_t>(i)]);
    begin_op("aten::mm_backward", layer(i), 2 * kMillisecond);
    allocate(kParameter, StorageClass::gradient, layer(i));
    end_op();
    event(EventKind::gradient_accumulated, parameters_[static_cast<std::size_t>(i)].value);
    free(passed);
    event(EventKind::layer_backward_end, layer(i).value);
  }

  void peak() {
    std::size_t best = 0;
    for (std::size_t i = 0; i < trace_.allocator.size(); ++i) {
      if (trace_.allocator.requested[i] > trace_.allocator.requested[best]) best = i;
    }
    const EventId event = trace_.allocator.event[best];
    const Bytes bytes = trace_.allocator.requested[best];
    trace_.peaks = {{0}, {event}, {trace_.events.op[event.index()]}, {bytes}, {bytes}, {-1}};
    trace_.overhead.clean.peak_requested = bytes;
    trace_.overhead.structure.peak_requested = bytes;
  }

  int count_;
  Trace trace_;
  std::map<std::string, StringId> strings_;
  std::map<std::int64_t, ListId> lists_;
  std::vector<StorageId> parameters_;
  std::vector<StorageId> old_gradients_;
  std::vector<StorageId> activations_;
  std::vector<StorageId> outputs_;
  StorageId loss_;
  OpId op_;
  EventId last_not_free_;
  Nanoseconds time_ = 0;
  Bytes now_ = 0;
};

}  // namespace

Trace small_trace(int layers) {
  return Builder(layers).take();
}

Bytes small_trace_peak(int layers) {
  return layers * (kParameter + kActivation) + kInput + kLoss + kActivation;
}

}  // namespace stowage::testing
