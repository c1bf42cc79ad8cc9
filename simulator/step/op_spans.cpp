#include "simulator/step/op_spans.h"

namespace stowage::simulator {

OpSpans::OpSpans(const Trace& trace) : spans_(trace.ops.size()) {
  for (std::size_t o = 0; o < spans_.size(); ++o) {
    const OpId parent = trace.ops.parent[o];  // an earlier row
    const Span around = parent.valid() ? spans_[parent.index()] : Span{.outermost = OpId(o)};
    spans_[o].outermost = around.outermost;
    const bool is_primitive = trace.ops.primitive[o] != 0;
    spans_[o].primitive = around.primitive.valid() || !is_primitive ? around.primitive : OpId(o);
  }
  for (std::size_t e = 0; e < trace.events.size(); ++e) {
    const EventKind kind = trace.events.kind[e];
    if (kind != EventKind::op_begin && kind != EventKind::op_end) continue;
    Span& span = spans_[static_cast<std::size_t>(trace.events.ref[e])];
    (kind == EventKind::op_begin ? span.begin : span.end) = EventId(e);
  }
}

}  // namespace stowage::simulator
