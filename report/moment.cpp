#include "report/moment.h"

namespace stowage::report {

std::string layer_name(const Trace& trace, LayerId layer) {
  return layer.valid() ? trace.string(trace.layers.name[layer.index()]) : std::string("step");
}

Moment moment_at(const Trace& trace, EventId event) {
  Moment moment;
  moment.event = event;
  if (!event.valid()) return moment;
  moment.time = trace.events.time[event.index()];
  moment.op = moment.recorded_op = trace.events.op[event.index()];
  moment.layer = "step";
  if (moment.op.valid()) {
    moment.op_name = trace.string(trace.ops.name[moment.op.index()]);
    moment.layer = layer_name(trace, trace.ops.layer[moment.op.index()]);
  }
  for (std::size_t i = 0; i < trace.phases.size(); ++i) {
    if (trace.phases.first_event[i] <= event && event <= trace.phases.last_event[i]) {
      moment.phase = trace.phases.kind[i];
    }
  }
  return moment;
}

Moment moment_at(const simulator::Step& step, EventId event) {
  Moment moment = moment_at(step.trace(), event);
  if (!moment.op.valid()) return moment;
  const simulator::Origin<OpId> origin = step.origin(moment.op);
  moment.recorded_op = origin.source == 0 ? origin.row : OpId();
  return moment;
}

std::vector<PhaseSpan> phase_spans(const Trace& trace, const std::vector<Nanoseconds>& event_time) {
  std::vector<PhaseSpan> spans;
  for (std::size_t i = 0; i < trace.phases.size(); ++i) {
    spans.push_back(
        {stowage::name_of(trace.phases.kind[i]), event_time[trace.phases.first_event[i].index()]});
  }
  return spans;
}

}  // namespace stowage::report
