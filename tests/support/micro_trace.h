// Hand-made traces: a tiny builder that writes events in order and keeps all tables consistent.
//
//   MicroTrace t;                          // link: 1 byte a nanosecond each way, no latency
//   const auto a = t.alloc(100);
//   const auto s = t.pack(a);              // at the innermost open layer; float32 elements
//   t.let_go(a);                           // the model's own reference dies here
//   t.run(50);                             // 50 ns of compute ahead of the next event
//   t.backward();
//   const auto u = t.unpack(s);
//   t.drop(u);                             // what the unpack handed out dies here
//   t.free(a);                             // autograd's reference dies here
//   const Trace trace = t.finish();
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "simulator/plan/decisions.h"
#include "traces/trace.h"

namespace stowage::testing {

class MicroTrace {
 public:
  MicroTrace();

  // Time ahead of the next event.
  MicroTrace& run(Nanoseconds time);

  // A storage that existed before the step, one that is made now. `free` is the free event; without
  // one the storage outlives the step. Without let_go() the model holds a storage until its free.
  StorageId existing(Bytes bytes, StorageClass storage_class = StorageClass::parameter);
  StorageId alloc(Bytes bytes, StorageClass storage_class = StorageClass::activation);
  void free(StorageId storage);
  void let_go(StorageId storage);

  // A view of `count` elements from `offset` on; all that fit into the storage by default.
  TensorId view(StorageId storage, std::int64_t offset = 0, std::int64_t count = -1,
                DType dtype = DType::float32);
  SavedId pack(StorageId storage) { return pack(view(storage)); }
  SavedId pack(TensorId tensor);
  void set_version(SavedId saved, std::int64_t version);
  // The tensor handed out dies at the unpack itself unless drop() is called later.
  UnpackId unpack(SavedId saved);
  void drop(UnpackId unpack);
  void outlives_step(UnpackId unpack);

  // Layers and ops nest; a layer is made at its first use.
  void begin_layer(const std::string& path);
  void end_layer(const std::string& path);
  // What the callable of the layer that has just begun is given, of one that has ended: returned.
  void passed(TensorId tensor, bool requires_grad = true);
  void begin_layer_backward(const std::string& path);
  void end_layer_backward(const std::string& path);
  // Primitive unless it lies in one that is; one that is composed of others is not.
  OpId begin_op(const std::string& name = "aten::op");
  OpId begin_composite_op(const std::string& name);
  void end_op();
  // The running op writes into `storage` in place, reads it.
  void write(StorageId storage);
  void read(StorageId storage);
  // Autograd has added to the gradient of this parameter.
  void accumulate(StorageId parameter) { event(EventKind::gradient_accumulated, parameter.value); }
  // A piece of this parameter's optimizer state; made in the first step, where there is a history.
  StorageId state_of(StorageId parameter, Bytes bytes);
  // The gradient of this parameter that the step before left; the one that the running op makes.
  StorageId gradient_before(StorageId parameter);
  StorageId make_gradient(StorageId parameter);
  // An op of the optimizer that writes into `storage` and its state and reads the gradient that was
  // made, between the events of its update.
  void update(StorageId storage, Nanoseconds time = 0);
  // The storage belongs to this layer: the first that uses it.
  void set_layer(StorageId storage, const std::string& path);
  // A kernel that the gap ahead of the next event launches; makes it the trace of a GPU.
  void kernel(Nanoseconds duration);
  // The CPU waits for the device in the gap ahead of the next event; it stood still for `duration`.
  void sync(Nanoseconds duration);

  // With the history of a caching allocator: at its start `gone` is allocated, then every existing
  // storage that the step does not free, then `gone` is freed. Makes it the trace of a GPU.
  void set_up(std::vector<Bytes> gone = {});
  // Only the first step does this, here: it makes what later ones find; it makes something and
  // frees it again. For traces with the history.
  StorageId made_by_first_step(Bytes bytes);
  void once(Bytes bytes);
  // What the step frees is what the step before left: `old`, freed in this step, get the sizes of
  // the storages that this step leaves behind, in order; 0 when there are more of them.
  void repeat(std::vector<StorageId> old) { old_ = std::move(old); }

  // Phase boundaries.
  void forward();  // of a further micro-batch
  void backward();
  void optimizer();

  // Both directions: `bytes_per_ns`-proportional, with a latency inside the time of a transfer.
  Calibration& link() { return trace_.calibration; }
  [[nodiscard]] Bytes bytes_of(StorageId storage) const {
    return trace_.storages.bytes[storage.index()];
  }
  [[nodiscard]] EventId last_event() const { return EventId(trace_.events.size() - 1); }

  // Ends the step. The builder is spent afterwards.
  Trace finish();

 private:
  EventId event(EventKind kind, std::int32_t ref = -1);
  EventId last_kept_event() const;  // the last one that is no `free`
  StringId intern(const std::string& text);
  LayerId layer(const std::string& path);
  void begin_phase(PhaseKind kind);
  void write_setup();

  Trace trace_;
  Nanoseconds now_ = 0;
  std::vector<LayerId> open_layers_;
  std::vector<OpId> open_ops_;
  std::vector<std::int32_t> packs_in_layer_;
  std::vector<StorageId> old_;
  std::vector<Bytes> gone_;
  struct FirstTime {
    EventId event;
    Bytes bytes;
    StorageId storage;  // -1 = it goes at once
  };
  std::vector<FirstTime> first_times_;
  bool has_setup_ = false;
};

// A link of one speed at all sizes.
LinkCurve flat_link(std::int64_t bytes_per_second, Nanoseconds latency = 0);

// Everything kept, for tests to change row by row.
simulator::Decisions keep_all(const Trace& trace);
// Two storages, rows 0 and 1, packed in this order and unpacked the other way round: the usual
// shape of a step.
Trace two_offloadable(Bytes first, Bytes second);

// Everything offloaded with automatic points.
simulator::Decisions offload_all(const Trace& trace);

// A valid random step: storages shared by several views, views of parts, saved tensors that nobody
// unpacks or that are unpacked several times, storages that the model holds on to, that existed
// before, that outlive the step, that are written in place ahead of and behind their packs;
// elements of every type; nested layers and ops. The same seed gives the same trace.
struct RandomTraceOptions {
  int ops = 12;               // in forward
  bool device_times = false;  // a launch thread, kernels, places where it waits, costs of issuing
  bool setup = false;         // the history of a caching allocator; what is freed was left behind
  Bytes unit = 4;             // sizes are up to 200 times this
  // More of them, used by layers, updated by an optimizer that says so; most have gradients.
  bool parameters = false;
  // Layers with three weights each, some for forward only, the others used in backward one after
  // the other with anchors between; links whose rate falls with size.
  bool several_weights = false;
  // Most parameters are updated in backward, once their gradient is there, which mostly goes then.
  bool updates_in_backward = false;
};
Trace random_trace(std::uint64_t seed, const RandomTraceOptions& options = {});

// Random decisions for it, valid ones; budgets included now and then.
simulator::Decisions random_decisions(const Trace& trace, std::uint64_t seed);

// Random shards for a trace with parameters; some storages stay, some shards hold a single one.
simulator::ParameterDecisions random_shards(const Trace& trace, std::uint64_t seed);
// Random pieces of optimizer state that stream, any mix of them; gradients that leave, likewise.
simulator::OptimizerDecisions random_state(const Trace& trace, std::uint64_t seed);
simulator::GradientDecisions random_gradients(const Trace& trace, std::uint64_t seed);

}  // namespace stowage::testing
