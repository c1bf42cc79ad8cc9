#include "python/bindings/planned.h"

#include <nanobind/stl/optional.h>
#include <nanobind/stl/shared_ptr.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>
#include <stowage/report.h>

#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "python/bindings/errors.h"
#include "python/bindings/search_watch.h"
#include "python/bindings/simulated.h"
#include "python/bindings/texts.h"

namespace stowage::python {

namespace nb = nanobind;

namespace {

using Given = std::shared_ptr<Recording>;
using Names = std::vector<std::string>;
using Text = std::optional<std::string>;

// Python's PlanOutcome.
struct Planned {
  Given recording;
  report::PlanAnswer answer;
  std::shared_ptr<const report::Simulation> simulation;
};

// As it was asked for in words; absent means what `stowage plan` means by it.
struct Asked {
  Text budget;
  Text budget_on;
  Text fit;
  Text placement;
  Text host_budget;
  std::string policy;
  std::optional<Names> allow;
  std::optional<Names> deny;
  std::optional<PlanValue> pinned;  // its rules
  Names pins;                       // and these
  std::int64_t seed = 1;
  std::int64_t max_evaluations = 0;  // 0: the planner's own
};

Error in_argument(const std::string& name, Error error) {
  error.message = name + ": " + error.message;
  return error;
}

template <class T>
T take_argument(const std::string& name, Result<T> result) {
  if (!result) throw Raised(in_argument(name, std::move(result).error()));
  return std::move(result).value();
}

planner::Allowed allowed_by(const Asked& asked) {
  using planner::Allowed;
  if (asked.allow && asked.deny) {
    throw Raised({ErrorCode::usage, "allow and deny", "", "", "give one of them"});
  }
  if (asked.allow) return take_argument("allow", Allowed::only(*asked.allow));
  if (asked.deny) return take_argument("deny", Allowed::all_but(*asked.deny));
  return {};
}

// Which memory the plan is for, and which of its counters the budget is on.
void choose_memory(const Asked& asked, const Trace& trace, planner::PlanRequest& request) {
  using simulator::PeakKind;
  using simulator::PlacementMode;
  request.placement = asked.placement
                          ? take(value_of_name("placement", "memory", *asked.placement,
                                               {PlacementMode::caching, PlacementMode::planned}))
                          : planner::usual_placement(trace);
  request.budget_on =
      asked.budget_on
          ? take(value_of_name("budget_on", "counter", *asked.budget_on,
                               {PeakKind::requested, PeakKind::active, PeakKind::reserved}))
      : asked.fit ? PeakKind::reserved
                  : planner::usual_counter(trace, request.placement);
}

simulator::Plan pins_of(const Asked& asked, const Recording& recording) {
  std::vector<planner::PinSource> sources;
  if (asked.pinned) sources.push_back({asked.pinned->plan, "", "pins"});
  for (const std::string& text : asked.pins) {
    sources.push_back({take_argument("pins", planner::pin_from_text(text)), "", "pins " + text});
  }
  return sources.empty() ? simulator::Plan{} : take(planner::join_pins(recording.index(), sources));
}

planner::PlanRequest request_of(const Asked& asked, const Recording& recording) {
  planner::PlanRequest request;
  request.policy = asked.policy;
  request.seed = asked.seed;
  if (asked.max_evaluations > 0) request.max_evaluations = asked.max_evaluations;
  request.allowed = allowed_by(asked);
  request.pins = pins_of(asked, recording);
  choose_memory(asked, recording.trace(), request);
  if (asked.fit) {
    if (asked.budget || asked.budget_on) {
      throw Raised({ErrorCode::usage, "fit bounds reserved bytes by itself", "", "",
                    "without budget and budget_on"});
    }
    const Bytes device = take_argument("fit", parse_size(*asked.fit));
    request.budget = take_argument("fit", planner::reserved_to_fit(recording.trace(), device));
  } else if (asked.budget) {
    const Bytes peak = take_argument(
        "budget_on",
        planner::resident_peak(recording.index(), request.budget_on, request.placement));
    request.budget = take_argument("budget", parse_size(*asked.budget, peak));
    request.budget_text = *asked.budget;
  }
  if (asked.host_budget) {
    request.host_budget = take_argument("host_budget", parse_size(*asked.host_budget));
    request.host_budget_text = *asked.host_budget;
  }
  return request;
}

Planned plan_without_gil(const Given& recording, const Asked& asked,
                         const planner::PolicyRules* rules, SearchWatch& watch) {
  planner::PlanRequest request = request_of(asked, *recording);
  if (rules != nullptr) request.rules = *rules;
  watch.watch(request);
  report::PlanAnswer answer = take(report::answer_plan(recording->index(), request));
  answer.outcome.plan.target.trace = recording->sha256();
  if (asked.fit) answer.fit = take(parse_size(*asked.fit));
  auto simulation = std::make_shared<const report::Simulation>(*answer.simulation);
  return {recording, std::move(answer), std::move(simulation)};
}

Planned make_plan(const Given& recording, const Asked& asked, const planner::PolicyRules* rules,
                  nb::object progress, double seconds) {
  SearchWatch watch(std::move(progress), static_cast<Nanoseconds>(seconds * 1e9));
  try {
    Planned planned = without_gil([&] { return plan_without_gil(recording, asked, rules, watch); });
    watch.finish();
    return planned;
  } catch (const Raised&) {
    watch.finish();  // what ended the search says more than what came of that
    throw;
  }
}

nb::str text_of_plan(const Planned& self, bool explain, int width, bool unicode) {
  const std::string text = without_gil([&] {
    return report::plan_text(*self.simulation->index, self.answer, explain,
                             {report::Paint(), width, unicode});
  });
  return shown(text);
}

void define_asked(nb::module_& module) {
  nb::class_<Asked> of(module, "Asked");
  of.def(nb::init<>());
  of.def_rw("budget", &Asked::budget, nb::arg().none());
  of.def_rw("budget_on", &Asked::budget_on, nb::arg().none());
  of.def_rw("fit", &Asked::fit, nb::arg().none());
  of.def_rw("placement", &Asked::placement, nb::arg().none());
  of.def_rw("host_budget", &Asked::host_budget, nb::arg().none());
  of.def_rw("policy", &Asked::policy);
  of.def_rw("allow", &Asked::allow, nb::arg().none());
  of.def_rw("deny", &Asked::deny, nb::arg().none());
  of.def_rw("pinned", &Asked::pinned, nb::arg().none());
  of.def_rw("pins", &Asked::pins);
  of.def_rw("seed", &Asked::seed);
  of.def_rw("max_evaluations", &Asked::max_evaluations);
}

}  // namespace

void define_planning(nb::module_& module) {
  define_asked(module);
  nb::class_<Planned> of(module, "Planned");
  of.def_prop_ro("plan", [](const Planned& self) { return PlanValue{self.answer.outcome.plan}; });
  of.def_prop_ro("simulated", [](const Planned& self) {
    return Simulated{self.recording, self.answer.outcome.plan, self.simulation, ""};
  });
  of.def("json", [](const Planned& self) {
    return bytes_of(report::plan_answer_json(*self.simulation->index, self.answer));
  });
  of.def("text", &text_of_plan, nb::arg("explain"), nb::arg("width"), nb::arg("unicode"));
  of.def("error", [](const Planned& self) {
    return self.answer.outcome.feasible() ? nb::none()
                                          : exception_of(report::why_infeasible(self.answer));
  });
  module.def("make_plan", &make_plan, nb::arg("recording"), nb::arg("asked"),
             nb::arg("rules").none(), nb::arg("progress").none(), nb::arg("seconds"));
}

}  // namespace stowage::python
