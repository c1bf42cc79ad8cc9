#include "tests/support/with_updates.h"

#include <algorithm>
#include <cstddef>
#include <utility>
#include <vector>

namespace stowage::testing {
namespace {

class Updater {
 public:
  Updater(Trace recording, Nanoseconds time)
      : t_(std::move(recording)), time_(time), end_(t_.events.size() - 1) {}

  Trace run() && {
    const Nanoseconds gap = pop_end();
    t_.phases.last_event.back() = EventId(end_ - 1);
    t_.phases.kind.push_back(PhaseKind::optimizer);
    t_.phases.micro_batch.push_back(t_.phases.micro_batch.back());
    t_.phases.first_event.emplace_back(end_);
    t_.strings.emplace_back("aten::add_");
    for (std::size_t s = 0; s < t_.storages.size(); ++s) {
      if (t_.storages.storage_class[s] == StorageClass::parameter) update(StorageId(s));
    }
    event(EventKind::step_end, -1, {}, gap);
    t_.phases.last_event.emplace_back(t_.events.size() - 1);
    return std::move(t_);
  }

 private:
  // Returns the time ahead of it.
  Nanoseconds pop_end() {
    Events& e = t_.events;
    const Nanoseconds end = e.time.back();
    e.kind.pop_back();
    e.ref.pop_back();
    e.op.pop_back();
    e.time.pop_back();
    return end - e.time.back();
  }

  void event(EventKind kind, std::int32_t ref, OpId op, Nanoseconds behind) {
    const Nanoseconds time = t_.events.time.back() + behind;
    t_.events.kind.push_back(kind);
    t_.events.ref.push_back(ref);
    t_.events.op.push_back(op);
    t_.events.time.push_back(time);
  }

  void update(StorageId storage) {
    event(EventKind::parameter_update_begin, storage.value, {}, 0);
    const OpId op(t_.ops.size());
    t_.ops.name.emplace_back(t_.strings.size() - 1);
    t_.ops.layer.emplace_back(std::size_t{0});
    t_.ops.phase.emplace_back(t_.phases.size() - 1);
    t_.ops.parent.emplace_back();
    t_.ops.thread.push_back(0);
    t_.ops.start.push_back(t_.events.time.back());
    t_.ops.duration.push_back(time_);
    t_.ops.sequence.push_back(-1);
    t_.ops.forward_op.emplace_back();
    t_.ops.in_place.push_back(1);
    t_.ops.primitive.push_back(1);
    event(EventKind::op_begin, op.value, op, 0);
    t_.uses.op.push_back(op);
    t_.uses.tensor.push_back(view(storage));
    t_.uses.mode.push_back(UseMode::in_place);
    if (t_.gpu.size() > 0) launch(op);
    event(EventKind::op_end, op.value, op, time_);
    event(EventKind::parameter_update_end, storage.value, {}, 0);
  }

  TensorId view(StorageId storage) {
    Tensors& t = t_.tensors;
    t.storage.push_back(storage);
    t.dtype.push_back(DType::uint8);
    t.shape.emplace_back(t_.lists.size());
    t_.lists.push_back({t_.storages.bytes[storage.index()]});
    t.strides.emplace_back(t_.lists.size());
    t_.lists.push_back({1});
    t.offset.push_back(0);
    t.producer.emplace_back();
    t.version.push_back(0);
    t.item_bytes.push_back(1);
    return TensorId(t.size() - 1);
  }

  void launch(OpId op) {
    Gpu& g = t_.gpu;
    const Nanoseconds start = std::max(t_.events.time.back(), g.start.back());
    g.kind.push_back(GpuKind::kernel);
    g.op.push_back(op);
    g.name.emplace_back(t_.strings.size() - 1);
    g.correlation.push_back(0);
    g.stream.push_back(g.stream.front());
    g.start.push_back(start);
    g.duration.push_back(time_);
    g.launch_start.push_back(t_.events.time.back());
    g.launch_duration.push_back(0);
    g.bytes.push_back(0);
    g.event.emplace_back(t_.events.size() - 1);
  }

  Trace t_;
  const Nanoseconds time_;
  const std::size_t end_;  // the recording's step_end
};

}  // namespace

bool has_updates(const Trace& recording) {
  const std::vector<EventKind>& kinds = recording.events.kind;
  return std::find(kinds.begin(), kinds.end(), EventKind::parameter_update_begin) != kinds.end();
}

Trace with_updates(Trace recording, Nanoseconds time) {
  return Updater(std::move(recording), time).run();
}

}  // namespace stowage::testing
