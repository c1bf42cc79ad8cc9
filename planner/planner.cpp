#include "planner/planner.h"

#include <algorithm>
#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "planner/budget.h"
#include "planner/pins.h"
#include "planner/plan_as_recorded.h"
#include "planner/updates_on_host.h"
#include "simulator/plan/plan.h"
#include "simulator/step/plan_structure.h"
#include "simulator/step/unroll.h"
#include "traces/size_text.h"

namespace stowage::planner {

namespace {

// Rows of another recording are none of this one's.
void forget_rows(MemoryFloor& floor) {
  floor.event = EventId();
  floor.op = OpId();
  for (FloorStorage& each : floor.storages) each.storage = StorageId();
}

// What is planned for the step in other micro-batches.
class DividedPlans {
 public:
  DividedPlans(const simulator::StepIndex& index, const PlanRequest& request, PlanOutcome whole)
      : index_(index),
        request_(request),
        out_(std::move(whole)),
        fits_(out_.kind == PlanKind::fits_already) {}

  Result<PlanOutcome> run() {
    for (const std::shared_ptr<const Trace>& part : index_.step().recording().divided) {
      PlanRequest request = request_;
      request.max_evaluations -= out_.search.evaluations;
      const simulator::StepIndex index(*part);
      if (!Pins::make(index, request.pins)) continue;  // what they name is not there
      std::optional<Nanoseconds> beats;
      if (out_.feasible()) beats = out_.predicted.step_ns;
      // What is proven needs no search, nor does a step that fits as it is.
      const bool is_over = out_.search.stopped || out_.search.exhausted;
      if (is_over || request.max_evaluations <= 0 || fits_) beats = 0;
      Result<PlanOutcome> outcome = plan_as_recorded(index, request, beats);
      if (!outcome) return outcome;
      take(std::move(outcome).value(), *part);
    }
    set_gap(out_);
    return std::move(out_);
  }

 private:
  void take(PlanOutcome of, const Trace& part) {
    SearchStats search = out_.search;
    search.evaluations += of.search.evaluations;
    search.candidates = std::max(search.candidates, of.search.candidates);
    search.grid_points += of.search.grid_points;
    search.structures += of.search.structures + 1;
    search.stopped = search.stopped || of.search.stopped;
    search.exhausted = search.exhausted || of.search.exhausted;
    // Of what can be chosen: where no plan is within the budget its bound is none.
    const Nanoseconds bound = is_impossible(out_) ? of.lower_bound_step
                              : is_impossible(of)
                                  ? out_.lower_bound_step
                                  : std::min(out_.lower_bound_step, of.lower_bound_step);
    const Bytes kept_from = of.kept_from == 0     ? out_.kept_from
                            : out_.kept_from == 0 ? of.kept_from
                                                  : std::min(out_.kept_from, of.kept_from);
    MemoryFloor floor = out_.floor;
    if (of.floor.bytes < floor.bytes) {
      floor = of.floor;
      forget_rows(floor);
    }
    floor.reached = kept_from > 0 && kept_from <= lowest_budget(floor.bytes, request_.budget_on);
    const PlanKind kind = kind_of_both(of);
    if (is_better(of)) {
      ReplayResult resident = std::move(out_.resident);
      simulator::PlanTarget target = std::move(out_.plan.target);
      out_ = std::move(of);
      out_.resident = std::move(resident);
      out_.plan.target = std::move(target);
      std::string note =
          "in micro-batches: " + simulator::parts_text(simulator::recorded_parts(part));
      if (out_.kind == PlanKind::fits_already) {
        out_.notes.clear();
        note += ", and nothing else has to change";
      }
      out_.notes.insert(out_.notes.begin(), std::move(note));
    }
    out_.kind = kind;
    if (kind == PlanKind::infeasible) {
      const std::string of_all = "no " + request_.allowed.limits("plan") + " has a peak below " +
                                 format_bytes(floor.bytes, request_.units);
      std::erase_if(out_.notes, [](const std::string& note) { return note.starts_with("no "); });
      out_.notes.push_back(of_all);
    }
    out_.search = search;
    out_.lower_bound_step = bound;
    out_.kept_from = kept_from;
    out_.floor = std::move(floor);
  }

  using ReplayResult = simulator::ReplayResult;

  // Of two plans within the budget the faster one; else the one within it; else the tighter one.
  [[nodiscard]] bool is_better(const PlanOutcome& of) const {
    if (fits_) return false;  // what fits as it is stays as it is
    if (of.feasible() != out_.feasible()) return of.feasible();
    if (of.feasible()) return of.predicted.step_ns < out_.predicted.step_ns;
    return of.plan.predicted &&
           peak_of(of.predicted, request_.budget_on) < peak_of(out_.predicted, request_.budget_on);
  }

  [[nodiscard]] static bool is_impossible(const PlanOutcome& of) {
    return of.kind == PlanKind::infeasible || of.kind == PlanKind::offload_cannot_help;
  }

  [[nodiscard]] PlanKind kind_of_both(const PlanOutcome& of) const {
    if (fits_) return PlanKind::fits_already;
    if (out_.feasible() || of.feasible()) return PlanKind::planned;
    const bool is_proven = out_.kind != PlanKind::not_found && of.kind != PlanKind::not_found;
    return is_proven ? PlanKind::infeasible : PlanKind::not_found;
  }

  const simulator::StepIndex& index_;
  const PlanRequest& request_;
  PlanOutcome out_;
  const bool fits_;  // all at once
};

// For the step in the micro-batches that are pinned.
Result<PlanOutcome> plan_in_pinned_parts(const simulator::StepIndex& index,
                                         const PlanRequest& request) {
  const Trace& recording = index.step().recording();
  const auto part = simulator::recording_in_parts(recording, simulator::parts_of(request.pins));
  if (!part) {
    Error error = part.error();
    error.pointer = "/micro_batches";
    return error;
  }
  const bool is_whole = *part == &recording;
  Result<PlanOutcome> outcome = is_whole ? plan_as_recorded(index, request)
                                         : plan_as_recorded(simulator::StepIndex(**part), request);
  if (!outcome) return outcome;
  outcome->pinned += static_cast<std::int64_t>(request.pins.micro_batches.size());
  if (is_whole) return outcome;
  if (outcome->kind == PlanKind::fits_already) {
    outcome->kind = PlanKind::planned;
    outcome->notes.clear();
  }
  outcome->notes.insert(
      outcome->notes.begin(),
      "in micro-batches: " + simulator::parts_text(simulator::recorded_parts(**part)) +
          ", as pinned");
  forget_rows(outcome->floor);
  outcome->plan.target = simulator::target_of(recording);
  outcome->resident =
      simulator::replay(index, simulator::resident_schedule(index, request.placement));
  return outcome;
}

// The plan of a policy, which may ask for the step in micro-batches: planned on that recording, and
// compared with the step at once.
Result<PlanOutcome> plan_of_policy(const simulator::StepIndex& index, const PlanRequest& request) {
  const std::vector<PolicyInfo>& all = policies();
  const auto info = std::find_if(all.begin(), all.end(), [&](const PolicyInfo& each) {
    return each.name == policy_name(request.policy);
  });
  if (info == all.end() || info->divides == Divides::never) return plan_as_recorded(index, request);
  std::optional<PolicyBudget> within;
  if (request.budget) within = {*request.budget, request.budget_on};
  const Result<PolicyRules> rules = policy_rules(index, request.policy, within);
  if (!rules || rules->micro_batches.empty()) return plan_as_recorded(index, request);
  simulator::Plan in_parts;
  in_parts.micro_batches = rules->micro_batches;
  const Trace& recording = index.step().recording();
  const auto part = simulator::recording_in_parts(recording, simulator::parts_of(in_parts));
  if (!part) return part.error();
  Result<PlanOutcome> outcome = plan_as_recorded(simulator::StepIndex(**part), request);
  if (!outcome) return outcome;
  // Floor and bound are the least of both, as those of `auto` are.
  PlanRequest at_once = request;
  at_once.policy = "resident";
  const Result<PlanOutcome> whole = plan_as_recorded(index, at_once);
  if (!whole) return whole;
  outcome->lower_bound_step = std::min(outcome->lower_bound_step, whole->lower_bound_step);
  set_gap(*outcome);
  if (whole->floor.bytes < outcome->floor.bytes) {
    outcome->floor = whole->floor;
  } else {
    forget_rows(outcome->floor);
  }
  outcome->plan.target = simulator::target_of(recording);
  for (const std::string& note : rules->notes) {
    std::vector<std::string>& notes = outcome->notes;
    if (std::find(notes.begin(), notes.end(), note) == notes.end()) notes.push_back(note);
  }
  outcome->resident =
      simulator::replay(index, simulator::resident_schedule(index, request.placement));
  return outcome;
}

}  // namespace

const char* name_of(PlanKind value) {
  switch (value) {
    case PlanKind::planned:
      return "planned";
    case PlanKind::fits_already:
      return "fits_already";
    case PlanKind::infeasible:
      return "infeasible";
    case PlanKind::offload_cannot_help:
      return "offload_cannot_help";
    case PlanKind::policy_over_budget:
      return "policy_over_budget";
    case PlanKind::not_found:
      return "not_found";
  }
  return "?";
}

Result<PlanOutcome> make_plan(const simulator::StepIndex& index, const PlanRequest& asked) {
  PlanRequest request = asked;
  // What the recording does not have nobody need hear of.
  const bool has_parts = !index.step().recording().divided.empty();
  const std::vector<StorageClass>& classes = index.trace().storages.storage_class;
  const bool has_state =
      std::find(classes.begin(), classes.end(), StorageClass::optimizer_state) != classes.end() ||
      has_updates(index.trace());
  const Allowed& asks = asked.allowed;
  const bool can_leave = has_gradients(index);
  const bool allows_the_rest = asks.offload && asks.recompute && asks.parameters &&
                               (!has_state || asks.optimizer) && (!can_leave || asks.gradients) &&
                               (!has_parts || asks.micro_batches);
  if (!has_state) request.allowed.optimizer = allows_the_rest;
  if (!can_leave) request.allowed.gradients = allows_the_rest;
  if (!has_parts) request.allowed.micro_batches = allows_the_rest;
  const bool is_auto = policy_name(request.policy) == "auto";
  if (!is_auto && !(request.pins == simulator::Plan{})) {
    return Error{ErrorCode::usage, "pins say what auto leaves as it is", "", "",
                 "without --policy"};
  }
  if (!is_auto) return plan_of_policy(index, request);
  if (!request.pins.micro_batches.empty()) return plan_in_pinned_parts(index, request);
  Result<PlanOutcome> whole = plan_as_recorded(index, request);
  if (!whole || !has_parts || !request.allowed.micro_batches) return whole;
  return DividedPlans(index, request, std::move(whole).value()).run();
}

}  // namespace stowage::planner
