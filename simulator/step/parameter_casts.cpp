#include "simulator/step/parameter_casts.h"

#include <cstddef>

#include "simulator/step/op_spans.h"

namespace stowage::simulator {

ParameterCasts::ParameterCasts(const Trace& trace) : casts_(trace.storages.size()) {
  std::vector<bool> casts_parameter(trace.ops.size(), false);
  for (std::size_t u = 0; u < trace.uses.size(); ++u) {
    const OpId op = trace.uses.op[u];
    const StorageId of = trace.tensors.storage[trace.uses.tensor[u].index()];
    if (!of.valid() || trace.storages.storage_class[of.index()] != StorageClass::parameter)
      continue;
    if (trace.string(trace.ops.name[op.index()]) == "aten::_to_copy") {
      casts_parameter[op.index()] = true;
    }
  }
  const OpSpans spans(trace);
  for (std::size_t s = 0; s < casts_.size(); ++s) {
    OpId op = trace.storages.alloc_op[s];
    // The innermost cast that it is made in is the one that made it.
    while (op.valid() && trace.string(trace.ops.name[op.index()]) != "aten::_to_copy") {
      op = trace.ops.parent[op.index()];
    }
    if (!op.valid() || !casts_parameter[op.index()]) continue;
    casts_[s].is_one = true;
    const EventId end = spans.end(spans.outermost(op));
    const EventId natural = trace.storages.natural_free_event[s];
    if (!end.valid() || (natural.valid() && natural <= end)) continue;
    casts_[s].held_until = natural.valid() ? natural : EventId(trace.events.size() - 1);
  }
}

}  // namespace stowage::simulator
