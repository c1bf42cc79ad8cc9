#include "planner/planner.h"

#include <algorithm>
#include <utility>

#include "planner/evaluator.h"
#include "planner/search.h"
#include "simulator/lowering/lowering.h"
#include "simulator/plan/parameter_shards.h"
#include "simulator/step/plan_structure.h"
#include "traces/build_info.h"
#include "traces/size_text.h"
#include "traces/units.h"

namespace stowage::planner {

using simulator::PeakKind;
using simulator::Plan;
using simulator::ReplayResult;

namespace {

// Budgets that are always searched, as parts of the resident peak: a plan for a larger budget is
// chosen from a superset of what a smaller one is chosen from.
constexpr std::int64_t kGridParts = 40;
constexpr Bytes kWandersBy = 4096;  // times the allowance is the peak; seen are up to 0.01 %

bool has_automatic_points(const simulator::Decisions& decisions) {
  if (decisions.parameters.stream != simulator::ParameterPlan::Stream::off &&
      !decisions.parameters.prefetch) {
    return true;
  }
  return std::any_of(decisions.saved.begin(), decisions.saved.end(), [](const auto& decision) {
    return decision.decision == simulator::Decision::offload &&
           (decision.release.kind == simulator::ReleasePoint::Kind::automatic ||
            decision.reload.kind == simulator::ReloadPoint::Kind::automatic);
  });
}

// Policies that `auto` is never worse than, where they keep the budget.
const std::vector<std::string>& rivals() {
  static const std::vector<std::string> specs = {"save_on_cpu",        "layerwise",
                                                 "torchtune",          "torchtune:stash=1",
                                                 "torchtune:stash=20", "thunder"};
  return specs;
}

// How many evaluations one budget may take: about as much time for every trace.
std::int64_t quota_of(const simulator::StepIndex& index) {
  constexpr std::int64_t kEventsForAll = 1'700'000;
  return std::clamp<std::int64_t>(
      kEventsForAll / static_cast<std::int64_t>(index.event_count() + 1), 40, 250);
}

class Planner {
 public:
  Planner(const simulator::StepIndex& index, const PlanRequest& request)
      : index_(index),
        request_(request),
        evaluator_(index, request),
        footprints_(index, request.budget_on) {}

  Result<PlanOutcome> run() {
    if (auto status = check(); !status) return status.error();
    out_.resident = simulator::replay(index_, simulator::resident_schedule(index_));
    if (request_.budget_on == PeakKind::reserved && out_.resident.peak_reserved < 0) {
      return Error{ErrorCode::usage, "the trace's device has no reserved bytes", "", "",
                   "use --budget-on active"};
    }
    out_.floor = memory_floor(footprints_);
    out_.lower_bound_step = out_.resident.step_ns;
    const std::string policy = policy_name(request_.policy);
    Status status = Unit{};
    if (policy != "auto") {
      status = run_policy();
    } else {
      // Names options of `auto` that do not exist.
      if (request_.policy != policy) {
        if (auto rules = policy_rules(index_, request_.policy); !rules) return rules.error();
      }
      status = run_auto();
    }
    if (!status) return status.error();
    out_.search.evaluations = evaluator_.evaluations();
    out_.search.stopped = evaluator_.stopped();
    out_.search.exhausted = evaluator_.exhausted();
    return std::move(out_);
  }

 private:
  Status check() const {
    if (policy_name(request_.policy) == "auto" && !request_.budget) {
      return Error{ErrorCode::usage, "the planner needs a budget", "", "",
                   "give --budget, or a policy with --policy"};
    }
    if (request_.budget && *request_.budget <= 0) {
      return Error{ErrorCode::usage,
                   "a budget of " + std::to_string(*request_.budget) + " bytes holds nothing", "",
                   "", "give a size such as 24GiB or 60%"};
    }
    if (request_.host_budget && *request_.host_budget <= 0) {
      return Error{ErrorCode::usage, "the host's budget must be above 0", "", "",
                   "give a size such as 64GiB"};
    }
    return Unit{};
  }

  // Where the active peak wanders, a little is left for steps that go beyond the predicted one.
  [[nodiscard]] Bytes peak_with_allowance(const ReplayResult& result) const {
    const Bytes peak = peak_of(result, request_.budget_on);
    const bool wanders = result.active_varies && request_.budget_on == PeakKind::active;
    return wanders ? peak + peak / kWandersBy : peak;
  }

  [[nodiscard]] bool within_budgets(const ReplayResult& result) const {
    return (!request_.budget || peak_with_allowance(result) <= *request_.budget) &&
           (!request_.host_budget || result.host_bytes <= *request_.host_budget);
  }

  Status run_policy() {
    auto rules = policy_rules(index_, request_.policy);
    if (!rules) return rules.error();
    if (auto status = finish(std::move(rules).value()); !status) return status;
    if (request_.budget) {
      if (within_budgets(out_.predicted)) {
        out_.lower_bound_step = shortest_step(footprints_, *request_.budget);
        set_gap();
      } else {
        out_.kind = PlanKind::policy_over_budget;
        out_.notes.insert(out_.notes.begin(),
                          "policy " + request_.policy + " needs " +
                              format_bytes(peak_of(out_.predicted, request_.budget_on)) +
                              ", the budget is " + format_bytes(*request_.budget));
      }
    } else if (!within_budgets(out_.predicted)) {
      out_.kind = PlanKind::policy_over_budget;
    }
    return Unit{};
  }

  Status run_auto() {
    const Bytes budget = *request_.budget;
    const Bytes resident = peak_of(out_.resident, request_.budget_on);
    if (resident <= budget) {
      out_.kind = PlanKind::fits_already;
      out_.notes.push_back("the step fits already: its peak is " + format_bytes(resident));
      return finish(resident_rules());
    }
    const TightPlan tight = tightest(footprints_, out_.floor);
    if (out_.floor.bytes > budget) {
      if (out_.floor.bytes >= resident) {
        out_.kind = PlanKind::offload_cannot_help;
        out_.notes.push_back("no decision lowers the peak of " + format_bytes(resident));
        return finish(resident_rules());
      }
      out_.kind = PlanKind::infeasible;
      out_.notes.push_back("no plan has a peak below " + format_bytes(out_.floor.bytes));
      return finish_with(footprints_.tight(tight.choices));
    }

    out_.lower_bound_step = shortest_step(footprints_, budget);
    const auto best = search(budget, resident, tight);
    if (evaluator_.error()) return *evaluator_.error();
    if (!best) {
      out_.kind = PlanKind::not_found;
      const Status status = finish_with(footprints_.tight(tight.choices));
      out_.notes.insert(out_.notes.begin(),
                        "no plan within the budget was found; the tightest has a peak of " +
                            format_bytes(peak_of(out_.predicted, request_.budget_on)));
      return status;
    }
    return finish_with(best->decisions);
  }

  std::optional<Candidate> search(Bytes budget, Bytes resident, const TightPlan& tight) {
    std::optional<Candidate> best;
    // Returns the exact peak, -1 when that was not needed.
    const auto offer = [&](std::optional<Candidate> candidate, bool always_exact = false) {
      if (!candidate) return Bytes{-1};
      const bool wanted =
          evaluator_.keeps(*candidate, budget) && (!best || candidate->better_than(*best));
      if (!wanted && !always_exact) return Bytes{-1};
      const Bytes peak = evaluator_.exact_peak(*candidate);
      if (wanted && peak <= budget) {
        best = std::move(candidate);
        evaluator_.set_best(best->result.step_ns);
      }
      return peak;
    };
    // The one that always fits comes first: a search that is stopped has an answer.
    offer(evaluator_.evaluate(footprints_.tight(tight.choices)));
    const SearchSpace space(footprints_, tight);
    Search search(space, evaluator_, quota_of(index_));
    out_.search.candidates = space.candidates();
    const auto reached = [&](Nanoseconds bound) { return best && best->result.step_ns <= bound; };
    // The best plans for one budget: while the exact counter is above it, the search is repeated
    // with that much less. Depends on the budget given alone, whatever the one asked for.
    const auto solve = [&](Bytes point, Nanoseconds bound) {
      constexpr int kMostRounds = 6;
      ++out_.search.grid_points;
      Bytes within = point;
      for (int round = 0; round < kMostRounds && within >= out_.floor.bytes; ++round) {
        const Bytes peak = offer(search.solve(within, bound), true);
        if (peak <= point) return;  // or nothing was found
        within -= peak - point;
      }
    };

    solve(budget, out_.lower_bound_step);
    if (!reached(out_.lower_bound_step)) {
      for (const std::string& spec : rivals()) {
        const auto rules = policy_rules(index_, spec);
        if (!rules) continue;
        Plan plan;
        plan.saved = rules->saved;
        plan.parameters = rules->parameters;
        plan.budget.automatic = rules->automatic;
        if (const auto decisions = simulator::resolve(index_.trace(), plan)) {
          offer(evaluator_.evaluate(*decisions));
        }
      }
    }
    for (std::int64_t part = kGridParts; part-- > 0;) {
      const Bytes point = grid_budget(resident, part);
      if (point >= budget) continue;
      if (point < out_.floor.bytes || evaluator_.over()) break;
      // No plan within this budget, or a smaller one, is faster.
      const Nanoseconds bound = shortest_step(footprints_, point);
      if (reached(bound)) break;
      solve(point, bound);
    }
    return best;
  }

  [[nodiscard]] static Bytes grid_budget(Bytes resident, std::int64_t part) {
    // resident * part / kGridParts without overflow; what "60%" of it is, too.
    return resident / kGridParts * part + resident % kGridParts * part / kGridParts;
  }

  static PolicyRules resident_rules() {
    simulator::SavedRule keep;
    keep.site = "*";
    return {{keep}, {}, {}};
  }

  Status finish_with(const simulator::Decisions& decisions) {
    PolicyRules rules{simulator::to_rules(index_.trace(), decisions),
                      simulator::to_parameters(index_.trace(), decisions.parameters),
                      {}};
    if (has_automatic_points(decisions)) rules.automatic = decisions.budget;
    return finish(std::move(rules));
  }

  // Fills in the plan; what is predicted is what reading the plan back gives.
  Status finish(PolicyRules rules) {
    const Trace& trace = index_.trace();
    Plan& plan = out_.plan;
    plan.target = simulator::target_of(trace);
    plan.budget.device = request_.budget;
    if (request_.budget) plan.budget.device_text = request_.budget_text;
    plan.budget.on = request_.budget_on;
    plan.budget.host = request_.host_budget;
    if (request_.host_budget) plan.budget.host_text = request_.host_budget_text;
    if (rules.automatic != request_.budget) plan.budget.automatic = rules.automatic;
    plan.saved = std::move(rules.saved);
    plan.parameters = std::move(rules.parameters);
    plan.made_by = {"stowage " + std::string(kVersion), request_.policy, request_.seed,
                    request_.created};

    auto lowering = simulator::lower(index_, plan);
    if (!lowering) return lowering.error();
    out_.predicted = simulator::replay(index_, lowering->schedule);
    for (const simulator::LoweringNote& note : lowering->notes) {
      out_.notes.push_back(simulator::subject_of(trace, note) + " " + note.text);
    }
    if (!out_.predicted.allocator_exact) out_.notes.emplace_back(simulator::kAllocatorRemark);
    if (out_.predicted.active_varies) out_.notes.emplace_back(simulator::kActiveVariesRemark);
    plan.predicted = predicted_of(out_.predicted);
    set_gap();
    return Unit{};
  }

  void set_gap() {
    const Nanoseconds bound = out_.lower_bound_step;
    const Nanoseconds above = std::max<Nanoseconds>(out_.predicted.step_ns - bound, 0);
    out_.gap_ppm =
        bound > 0 ? static_cast<std::int64_t>(static_cast<Wide>(above) * kPpm / bound) : 0;
    out_.plan.lower_bound_step = bound;
    out_.plan.gap_ppm = out_.gap_ppm;
  }

  const simulator::StepIndex& index_;
  const PlanRequest& request_;
  Evaluator evaluator_;
  Footprints footprints_;
  PlanOutcome out_;
};

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

Bytes peak_of(const ReplayResult& result, PeakKind kind) {
  switch (kind) {
    case PeakKind::requested:
      return result.peak_requested;
    case PeakKind::active:
      return result.peak_active;
    case PeakKind::reserved:
      return result.peak_reserved;
  }
  return result.peak_active;
}

simulator::Predicted predicted_of(const ReplayResult& result) {
  return {result.peak_requested, result.peak_active, result.peak_reserved,
          result.step_ns,        result.stall_ns,    result.host_bytes};
}

Result<PlanOutcome> make_plan(const simulator::StepIndex& index, const PlanRequest& request) {
  return Planner(index, request).run();
}

Result<Bytes> reserved_to_fit(const Trace& trace, Bytes device) {
  if (trace.setup.size() == 0) {
    return Error{ErrorCode::usage,
                 "the trace's device (" + trace.env.device + ") has no reserved bytes", "", "",
                 "use a budget on active bytes"};
  }
  if (device <= trace.env.context_bytes) {
    return Error{ErrorCode::usage,
                 format_bytes(device) + " do not even hold the CUDA context of " +
                     format_bytes(trace.env.context_bytes),
                 "", "", "give the size of a device, such as 24GiB"};
  }
  return device - trace.env.context_bytes;
}

Status resolve_budget(const simulator::StepIndex& index, Plan& plan) {
  if (plan.budget.device || plan.budget.device_text.empty()) return Unit{};
  const ReplayResult resident = simulator::replay(index, simulator::resident_schedule(index));
  const Bytes peak = peak_of(resident, plan.budget.on);
  if (peak < 0) {
    return Error{ErrorCode::bad_input, "the trace's device has no reserved bytes", "", "/budget/on",
                 "use active"};
  }
  auto bytes = parse_size(plan.budget.device_text, peak);
  if (!bytes) {
    Error error = bytes.error();
    error.code = ErrorCode::bad_input;
    error.pointer = "/budget/device";
    return error;
  }
  plan.budget.device = *bytes;
  return Unit{};
}

Result<AppliedFile> apply_file(const Trace& recording, Plan& plan, const std::string& plan_file) {
  const auto in_file = [&plan_file](Error error) {
    if (error.file.empty()) error.file = plan_file;
    return error;
  };
  const Status budget = resolve_budget(simulator::StepIndex(recording), plan);
  if (!budget) return in_file(budget.error());
  const Result<simulator::Step> step = simulator::unroll(recording, plan);
  if (!step) return in_file(step.error());
  auto index = std::make_shared<const simulator::StepIndex>(*step);
  Result<simulator::Lowering> lowering = simulator::lower(*index, plan);
  if (!lowering) return in_file(lowering.error());
  return AppliedFile{simulator::structure_of(*step), std::move(index), std::move(lowering).value()};
}

}  // namespace stowage::planner
