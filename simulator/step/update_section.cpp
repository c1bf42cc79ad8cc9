#include "simulator/step/update_section.h"

#include <algorithm>
#include <string>
#include <utility>

namespace stowage::simulator {
namespace {

Error not_skippable(std::string message, std::string hint = {}) {
  Error error;
  error.code = ErrorCode::bad_input;
  error.message = std::move(message);
  error.hint = std::move(hint);
  return error;
}

Error no_section() {
  return not_skippable(
      "the recording has no update that a step could skip: there is no optimizer's phase",
      "record the step with its optimizer");
}

Error no_one_section() {
  return not_skippable(
      "the recording updates parameters in several phases, so a step cannot skip them as one");
}

PhaseId phase_of(const Phases& phases, EventId event) {
  const auto behind = std::upper_bound(phases.first_event.begin(), phases.first_event.end(), event);
  return PhaseId(static_cast<std::int32_t>(behind - phases.first_event.begin()) - 1);
}

// From the first parameter_update_begin to the last parameter_update_end; empty without any.
UpdateSection updates_of(const Events& events) {
  UpdateSection section{EventId(std::size_t{0}), EventId(std::size_t{0}), {}};
  for (std::size_t e = 0; e < events.size(); ++e) {
    if (events.kind[e] == EventKind::parameter_update_begin && section.first.value == 0) {
      section.first = EventId(e);
    }
    if (events.kind[e] == EventKind::parameter_update_end) section.end = EventId(e + 1);
  }
  return section;
}

Status check_phase(const Phases& phases, const UpdateSection& section) {
  const PhaseId phase = phase_of(phases, section.first);
  if (!phase.valid()) return no_section();
  if (phase != phase_of(phases, EventId(section.end.value - 1))) return no_one_section();
  const PhaseKind kind = phases.kind[phase.index()];
  if (kind == PhaseKind::optimizer) return Unit{};
  return not_skippable("the recording updates parameters in its " + std::string(name_of(kind)) +
                       " phase, so the updates are no part of their own that a step could skip");
}

// The one optimizer's phase without the ends of the step.
Result<UpdateSection> whole_phase(const Trace& trace) {
  const Phases& phases = trace.phases;
  UpdateSection section;
  for (std::size_t p = 0; p < phases.size(); ++p) {
    if (phases.kind[p] != PhaseKind::optimizer) continue;
    if (section.first.valid()) return no_one_section();
    section.first = std::max(phases.first_event[p], EventId(std::size_t{1}));
    section.end =
        std::min(EventId(phases.last_event[p].value + 1), EventId(trace.events.size() - 1));
  }
  if (!(section.first.valid() && section.first < section.end)) return no_section();
  return section;
}

Status check_hooks(const Trace& trace, const UpdateSection& section) {
  for (EventId e = section.first; e < section.end; ++e.value) {
    const EventKind kind = trace.events.kind[e.index()];
    if (kind != EventKind::pack && kind != EventKind::unpack) continue;
    return not_skippable("the optimizer saves or uses saved tensors (event " +
                         std::to_string(e.value) + "), so a step cannot skip its update");
  }
  return Unit{};
}

}  // namespace

bool UpdateSection::has(EventId event) const {
  if (first <= event && event < end) return true;
  return std::binary_search(frees.begin(), frees.end(), event);
}

Result<UpdateSection> update_section(const Trace& trace) {
  UpdateSection section = updates_of(trace.events);
  if (section.end.value > 0) {
    if (Status good = check_phase(trace.phases, section); !good) return std::move(good).error();
  } else {
    Result<UpdateSection> whole = whole_phase(trace);
    if (!whole) return whole;
    section = std::move(whole).value();
  }
  if (Status good = check_hooks(trace, section); !good) return std::move(good).error();
  const Storages& storages = trace.storages;
  for (std::size_t s = 0; s < storages.size(); ++s) {
    const EventId alloc = storages.alloc_event[s];
    const EventId free = storages.free_event[s];
    if (section.first <= alloc && alloc < section.end && section.end <= free) {
      section.frees.push_back(free);
    }
  }
  std::sort(section.frees.begin(), section.frees.end());
  return section;
}

StepTemplate leave_out(const UpdateSection& section) {
  StepTemplate out;
  out.leaves_out = true;
  out.replacements.push_back({section.first, section.end, {}});
  for (const EventId free : section.frees) {
    out.replacements.push_back({free, EventId(free.value + 1), {}});
  }
  return out;
}

}  // namespace stowage::simulator
