#include "planner/plan_as_recorded.h"

#include <algorithm>
#include <cstddef>
#include <limits>
#include <memory>
#include <utility>
#include <vector>

#include "planner/applied_file.h"
#include "planner/best_plan.h"
#include "planner/budget.h"
#include "planner/climber.h"
#include "planner/host_update_rules.h"
#include "planner/pinned_bound.h"
#include "planner/pins.h"
#include "planner/points_near_floor.h"
#include "planner/policy_starts.h"
#include "planner/structure_pool.h"
#include "planner/structure_search.h"
#include "planner/updates_on_host.h"
#include "simulator/lowering/lowering.h"
#include "simulator/placement/placement.h"
#include "simulator/plan/gradient_rules.h"
#include "simulator/plan/parameter_shards.h"
#include "simulator/step/plan_structure.h"
#include "simulator/step/segment_rule_writer.h"
#include "simulator/step/unroll.h"
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
constexpr std::int64_t kGridPartsWithStructures = 5;  // where each is searched in many structures
constexpr std::int64_t kEndedSoon = 800;              // evaluations
constexpr Bytes kLookAgainIn = 10;                    // a part of the budget less
constexpr Bytes kRestsOfPages = 50;  // times the rests of pages is the peak, or more
constexpr Bytes kWandersBy = 4096;   // times the allowance is the peak; seen are up to 0.01 %

bool has_automatic_points(const simulator::Decisions& decisions) {
  if (!decisions.parameters.stream.off() && !decisions.parameters.prefetch) {
    return true;
  }
  const std::vector<bool>& state = decisions.optimizer.state_streams;
  if (std::find(state.begin(), state.end(), true) != state.end()) return true;
  const std::vector<bool>& on_host = decisions.optimizer.updated_on_host;
  if (std::find(on_host.begin(), on_host.end(), true) != on_host.end()) return true;
  const std::vector<bool>& gradients = decisions.gradients.at_home;
  if (std::find(gradients.begin(), gradients.end(), true) != gradients.end()) return true;
  return std::any_of(decisions.saved.begin(), decisions.saved.end(), [](const auto& decision) {
    return decision.decision == simulator::Decision::offload &&
           (decision.release.kind == simulator::ReleasePoint::Kind::automatic ||
            decision.reload.kind == simulator::ReloadPoint::Kind::automatic);
  });
}

// From row `first` on.
void leave_out_shadowed(const Trace& trace, std::size_t first,
                        std::vector<simulator::SavedRule>& rules) {
  Plan plan;
  plan.saved = rules;
  const std::vector<std::size_t> shadowed = simulator::shadowed_rules(trace, plan);
  for (auto row = shadowed.rbegin(); row != shadowed.rend() && *row >= first; ++row) {
    rules.erase(rules.begin() + static_cast<std::ptrdiff_t>(*row));
  }
}

// Policies that move only and that `auto` is never worse than, where they are allowed and keep the
// budget; of others, see policy_starts().
const std::vector<std::string>& rivals() {
  static const std::vector<std::string> specs = {"save_on_cpu",        "layerwise",
                                                 "torchtune",          "torchtune:stash=1",
                                                 "torchtune:stash=20", "thunder"};
  return specs;
}

class Planner {
 public:
  // `settled`: of the recording with what is pinned to run again, or to be updated by the host;
  // `updated`: with the latter alone. Both are of `index` where nothing is.
  Planner(const simulator::StepIndex& index, std::shared_ptr<const simulator::StepIndex> settled,
          std::shared_ptr<const simulator::StepIndex> updated, const PlanRequest& request,
          std::optional<Nanoseconds> beats)
      : index_(index),
        updated_(std::move(updated)),
        request_(request),
        beats_(beats),
        pool_(pool_of(index, request)),
        best_(request),
        without_(settled, without_gradients(index, request), pool_, best_) {
    if (policy_name(request.policy) != "auto") return;
    if (request.allowed.gradients && has_gradients(index)) {
      with_gradients_.emplace(settled, request, pool_, best_);
    }
    if (request.allowed.recompute && without_.has_structures()) {
      any_structure_.emplace(*updated_, request.budget_on, request.allowed);
    }
    find_host_updates();
    if (pins() == nullptr) return;
    const simulator::StepIndex& bounding = any_structure_ ? *updated_ : *settled;
    of_pins_.emplace(bounding, *settled, request.budget_on, request.allowed,
                     any_structure_.has_value());
  }

  Result<PlanOutcome> run() {
    if (auto status = check(); !status) return status.error();
    out_.resident =
        simulator::replay(index_, simulator::resident_schedule(index_, request_.placement));
    if (request_.budget_on == PeakKind::reserved && out_.resident.peak_reserved < 0) {
      return Error{ErrorCode::usage, "the trace's device has no reserved bytes", "", "",
                   "use --budget-on active"};
    }
    out_.floor = all().base().floor();
    if (any_structure_) out_.floor = memory_floor(*any_structure_);
    device_floor_ = out_.floor.bytes;
    if (on_host_ && on_host_->floor().bytes < out_.floor.bytes) take_floor_of_host();
    out_.floor.reached = false;
    out_.lower_bound_step = out_.resident.step_ns;
    if (on_host_) out_.lower_bound_step = std::min(out_.lower_bound_step, shortest_on_host());
    const std::string policy = policy_name(request_.policy);
    if (policy == "auto") out_.allowed = request_.allowed;
    out_.allowed.pinned = nullptr;
    if (pins() != nullptr) out_.pinned = pins()->count();
    Status status = Unit{};
    if (policy != "auto") {
      status = run_policy();
    } else {
      // Names options of `auto` that do not exist.
      if (request_.policy != policy) {
        if (auto rules = policy_rules(index_, request_.policy); !rules) return rules.error();
      }
      status = run_auto();
      out_.kept_from = kept_from();
      out_.floor.reached = out_.kept_from == lowest_budget();
    }
    if (!status) return status.error();
    out_.search.evaluations = best_.spent.evaluations;
    out_.search.grid_points = best_.grid_points;
    out_.search.structures = best_.structures;
    out_.search.stopped = best_.spent.stopped;
    out_.search.exhausted = best_.spent.exhausted;
    return std::move(out_);
  }

 private:
  [[nodiscard]] static StructurePool pool_of(const simulator::StepIndex& index,
                                             const PlanRequest& request) {
    if (!request.allowed.recompute || policy_name(request.policy) != "auto") return {};
    return StructurePool(index, request.allowed.offload, request.allowed.pinned.get());
  }

  void find_host_updates() {
    on_host_ = UpdatesOnHost::make(index_, bounding().index(), request_, pool_,
                                   any_structure_.has_value(), best_);
  }
  [[nodiscard]] Nanoseconds shortest_on_host() const {
    return on_host_->shortest(out_.resident.step_ns);
  }

  // Null: nothing is pinned.
  [[nodiscard]] const Pins* pins() const { return request_.allowed.pinned.get(); }

  [[nodiscard]] static PlanRequest without_gradients(const simulator::StepIndex& index,
                                                     PlanRequest request) {
    if (policy_name(request.policy) == "auto" && has_gradients(index)) {
      request.allowed.gradients = false;
    }
    return request;
  }

  // For all that is allowed.
  [[nodiscard]] Climber& all() { return with_gradients_ ? *with_gradients_ : without_; }
  [[nodiscard]] const Climber& all() const { return with_gradients_ ? *with_gradients_ : without_; }

  Status check() const {
    if (Status status = simulator::runs_nothing_again(index_.step().recording()); !status) {
      return status;
    }
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

  // What floor and bounds are counted with: they hold for every plan that is allowed.
  [[nodiscard]] const Footprints& bounding() const {
    return any_structure_ ? *any_structure_ : all().base().footprints();
  }

  // Of the step without the updates; rows of its tables are none of the recording's.
  void take_floor_of_host() {
    const simulator::Step& step = on_host_->climber().base().index().step();
    out_.floor = on_host_->floor();
    if (out_.floor.event.valid()) out_.floor.event = step.origin(out_.floor.event).row;
    if (out_.floor.op.valid()) out_.floor.op = step.origin(out_.floor.op).row;
    for (FloorStorage& each : out_.floor.storages) {
      if (each.storage.valid()) each.storage = step.origin(each.storage).row;
    }
  }

  static constexpr Nanoseconds kNone = std::numeric_limits<Nanoseconds>::max();
  // The least of every plan within the budget, kNone where none is: of those that leave all updates
  // on the device that the host need not do, and of those that leave none there that it can do.
  struct Bounds {
    Nanoseconds device = kNone;
    Nanoseconds host = kNone;
    [[nodiscard]] Nanoseconds both() const { return std::min(device, host); }
  };
  [[nodiscard]] Bounds bounds(Bytes budget) const {
    Bounds of;
    if (device_floor_ <= budget) of.device = shortest_step(bounding(), budget);
    if (of_pins_ && device_floor_ <= budget) {
      of.device = std::max(of.device, of_pins_->shortest_step(budget));
    }
    if (on_host_) of.host = on_host_->shortest_step(budget, of.device);
    return of;
  }
  // Of every plan, whoever updates what.
  [[nodiscard]] Nanoseconds least_of_all(Bytes budget, const Bounds& of) const {
    if (!on_host_ || of.both() == kNone) return of.both();
    const std::vector<bool>& updates = on_host_->mixed_bound().updates();
    const auto on_device = [&](Bytes within) {
      const Nanoseconds step = shortest_step(bounding(), within, kAllPositions, updates);
      return of_pins_ ? std::max(step, of_pins_->shortest_step(within, updates)) : step;
    };
    return on_host_->least_of_all(on_device, budget, of.both());
  }

  // Where the active peak wanders, a little is left for steps that go beyond the predicted one.
  [[nodiscard]] Bytes peak_with_allowance(const ReplayResult& result) const {
    const Bytes peak = peak_of(result, request_.budget_on);
    const bool wanders = result.active_varies && request_.budget_on == PeakKind::active;
    return wanders ? peak + peak / kWandersBy : peak;
  }

  [[nodiscard]] Bytes lowest_budget() const {
    return stowage::planner::lowest_budget(out_.floor.bytes, request_.budget_on);
  }

  // The least of the answer, which may be the tightest plan itself, of nothing moved, and of the
  // tightest plans of where the answer was found.
  [[nodiscard]] Bytes kept_from() {
    const bool is_as_recorded = pins() == nullptr || pins()->moves_nothing();
    constexpr Bytes kUnknown = std::numeric_limits<Bytes>::max();
    Bytes least = is_as_recorded ? peak_with_allowance(out_.resident) : kUnknown;
    if (out_.plan.predicted && best_.within_host_budget(out_.predicted)) {
      least = std::min(least, peak_with_allowance(out_.predicted));
    }
    StructureSearch* const of_answer = best_.answer() ? best_.answer()->in : &without_.base();
    StructureSearch* const of_host = on_host_ ? &on_host_->climber().base() : of_answer;
    for (StructureSearch* in : {&without_.base(), &all().base(), of_host, of_answer}) {
      if (least <= lowest_budget()) break;
      Evaluator& evaluator = in->evaluator();
      const auto tight = evaluator.evaluate(in->footprints().tight(in->tight().choices));
      if (!tight || (request_.host_budget && tight->result.host_bytes > *request_.host_budget)) {
        continue;
      }
      ReplayResult exact = tight->result;
      (request_.budget_on == PeakKind::reserved ? exact.peak_reserved
       : request_.budget_on == PeakKind::active ? exact.peak_active
                                                : exact.peak_requested) =
          evaluator.exact_peak(*tight);
      least = std::min(least, peak_with_allowance(exact));
    }
    return least == kUnknown ? 0 : least;
  }

  [[nodiscard]] bool within_budget(const ReplayResult& result) const {
    return !request_.budget || peak_with_allowance(result) <= *request_.budget;
  }

  Status run_policy() {
    std::optional<PolicyBudget> within;
    if (request_.budget) within = {*request_.budget, request_.budget_on};
    Result<PolicyRules> rules = request_.rules ? Result<PolicyRules>(*request_.rules)
                                               : policy_rules(index_, request_.policy, within);
    if (!rules) return rules.error();
    if (runs_again(*rules)) {
      any_structure_.emplace(index_, request_.budget_on, Allowed{});
      out_.floor = memory_floor(*any_structure_);
      device_floor_ = out_.floor.bytes;
    }
    find_host_updates();
    if (on_host_) {
      if (on_host_->floor().bytes < out_.floor.bytes) take_floor_of_host();
      out_.lower_bound_step = std::min(out_.lower_bound_step, shortest_on_host());
    }
    out_.notes = rules->notes;
    if (auto status = finish(std::move(rules).value()); !status) {
      if (!request_.rules) return of_policy(request_.policy, status.error());
      Error error = status.error();
      error.message = "policy " + request_.policy + ": " + error.message;
      error.pointer.clear();
      return error;
    }
    if (std::string note = buys_nothing(); !note.empty()) {
      out_.notes.insert(out_.notes.begin(), std::move(note));
    }
    if (within_budget(out_.predicted) && best_.within_host_budget(out_.predicted)) {
      if (!request_.budget) return Unit{};
      out_.lower_bound_step = least_of_all(*request_.budget, bounds(*request_.budget));
      set_gap(out_);
      return Unit{};
    }
    out_.kind = PlanKind::policy_over_budget;
    std::vector<std::string> over;
    if (!within_budget(out_.predicted)) {
      over.push_back("policy " + request_.policy + " needs " +
                     format_bytes(peak_of(out_.predicted, request_.budget_on), request_.units) +
                     ", the budget is " + format_bytes(*request_.budget, request_.units));
    }
    if (!best_.within_host_budget(out_.predicted)) {
      over.push_back("policy " + request_.policy + " puts " +
                     format_bytes(out_.predicted.host_bytes, request_.units) +
                     " on the host, the host budget is " +
                     format_bytes(*request_.host_budget, request_.units));
    }
    out_.notes.insert(out_.notes.begin(), over.begin(), over.end());
    return Unit{};
  }

  // Where the policy's plan takes time and lowers no peak; else empty.
  [[nodiscard]] std::string buys_nothing() const {
    const Bytes before = peak_of(out_.resident, request_.budget_on);
    const Nanoseconds longer = out_.predicted.step_ns - out_.resident.step_ns;
    if (longer <= 0 || peak_of(out_.predicted, request_.budget_on) < before) return "";
    return "policy " + request_.policy + " buys nothing here: the peak of " +
           format_bytes(before, request_.units) + " is no lower, and the step takes " +
           format_time(longer) + " longer";
  }

  Status run_auto() {
    const Bytes budget = *request_.budget;
    const Bytes resident = peak_of(out_.resident, request_.budget_on);
    if (resident <= budget && (pins() == nullptr || pins()->moves_nothing())) {
      out_.kind = PlanKind::fits_already;
      out_.notes.push_back("the step fits already: its peak is " +
                           format_bytes(resident, request_.units));
      return finish(resident_rules());
    }
    if (lowest_budget() > budget) {
      if (pins() != nullptr) return pins_are_above(budget);
      if (out_.floor.bytes >= resident) {
        out_.kind = PlanKind::offload_cannot_help;
        out_.notes.push_back("no " + request_.allowed.limits("decision") + " lowers the peak of " +
                             format_bytes(resident, request_.units));
        return finish(resident_rules());
      }
      out_.kind = PlanKind::infeasible;
      out_.notes.push_back("no " + request_.allowed.limits("plan") + " has a peak below " +
                           format_bytes(out_.floor.bytes, request_.units));
      return finish_tightest_base();
    }

    const Bounds bound = bounds(budget);
    out_.lower_bound_step = least_of_all(budget, bound);
    if (beats_ && out_.lower_bound_step >= *beats_) {
      out_.kind = PlanKind::not_found;
      return Unit{};
    }
    search(budget, bound, resident);
    if (best_.spent.error) return *best_.spent.error;
    if (best_.answer()) {
      return finish_with(best_.answer()->candidate.decisions, *best_.answer()->in);
    }
    out_.kind = PlanKind::not_found;
    StructureSearch* tightest = &all().tightest();
    for (Climber* const each : {&without_, on_host_ ? &on_host_->climber() : nullptr}) {
      if (each == nullptr || each->tightest().tight().peak >= tightest->tight().peak) continue;
      tightest = &each->tightest();
    }
    const Status status =
        finish_with(tightest->footprints().tight(tightest->tight().choices), *tightest);
    // A search that was stopped did not come to it.
    if (status && within_budget(out_.predicted) && best_.within_host_budget(out_.predicted)) {
      out_.kind = PlanKind::planned;
      return status;
    }
    out_.notes.insert(
        out_.notes.begin(),
        "no plan within the budget was found" +
            (pins() != nullptr ? " with " + pinned_text() : std::string()) +
            "; the tightest has a peak of " +
            format_bytes(peak_of(out_.predicted, request_.budget_on), request_.units));
    return status;
  }

  Status finish_tightest_base() {
    StructureSearch* base = &all().base();
    if (on_host_ && on_host_->climber().base().tight().peak < base->tight().peak) {
      base = &on_host_->climber().base();
    }
    return finish_with(base->footprints().tight(base->tight().choices), *base);
  }

  // No plan with what is pinned is within the budget: is one without?
  Status pins_are_above(Bytes budget) {
    PlanRequest free = request_;
    free.pins = {};
    free.allowed.pinned = nullptr;
    const Result<PlanOutcome> without = planner::plan_as_recorded(index_, free, Nanoseconds{0});
    if (!without) return without.error();
    const Bytes least = planner::lowest_budget(without->floor.bytes, request_.budget_on);
    out_.kind = least > budget ? PlanKind::infeasible : PlanKind::not_found;
    out_.notes.push_back("no " + request_.allowed.limits("plan") + " with " + pinned_text() +
                         " has a peak below " + format_bytes(out_.floor.bytes, request_.units) +
                         "; without them the floor is " +
                         format_bytes(without->floor.bytes, request_.units));
    return finish_tightest_base();
  }

  // "the 3 pinned decisions"
  [[nodiscard]] std::string pinned_text() const {
    const std::int64_t count = pins()->count();
    return count == 1 ? "the pinned decision"
                      : "the " + std::to_string(count) + " pinned decisions";
  }

  // The best plan known for a point, and who climbed to it.
  struct Reached {
    Climb climb;
    Climber* by = nullptr;
    void take(Climb other, Climber& climber) {
      if (!other.step || (climb.step && *climb.step <= *other.step)) return;
      *this = {std::move(other), &climber};
    }
  };

  // The best plans for one point: without gradients that leave, then with them in the structure
  // that was best, or in any where nothing was found; then, where that may be shorter, with the
  // updates on the host, likewise.
  Reached solve(const SearchPoint& point, const Bounds& bound) {
    Reached reached = solve_all(point, bound);
    if (point.bytes < *request_.budget) in_less_.take(reached.climb, *reached.by);
    return reached;
  }
  Reached solve_all(const SearchPoint& point, const Bounds& bound) {
    ++best_.grid_points;
    Climb climb{point, &without_.base(), {}, {}, {}};
    if (bound.device < kNone) climb = without_.solve(point, bound.device);
    Reached reached{climb, &without_};
    const auto is_longer_than = [&](Nanoseconds least) {
      return !climb.step || *climb.step > least;
    };
    if (with_gradients_ && bound.device < kNone && is_longer_than(bound.device)) {
      reached.take(climb.step ? with_gradients_->solve_from(climb, bound.device)
                              : with_gradients_->solve(point, bound.device),
                   *with_gradients_);
    }
    if (!on_host_) return reached;
    Climber& climber = on_host_->climber();
    const Climb of_device = reached.climb;
    Climb of_host{point, &climber.base(), {}, {}, {}};
    if (is_longer_than(bound.host) && !best_.reached(bound.host)) {
      of_host = climber.solve_beside(climb, bound.host);
      reached.take(of_host, climber);
    }
    const bool is_asked = !point.is_on_alive && point.bytes == *request_.budget;
    if (is_asked && on_host_->mixed() != nullptr) {
      ends_ = MixedUpdates::Ends{of_device, of_host, bound.device, bound.host};
    }
    return reached;
  }

  void search(Bytes budget, const Bounds& bound, Bytes resident) {
    if (pins() != nullptr && offer_as_pinned(budget) && is_all_pinned()) return;
    // The one that always fits comes first: a search that is stopped has an answer.
    offer_tight(without_.base());
    if (with_gradients_) offer_tight(with_gradients_->base());
    if (on_host_) offer_tight(on_host_->climber().base());
    out_.search.candidates = all().base().space().candidates();
    solve({budget}, bound);
    if (!best_.reached(bound.both())) offer_rivals();
    search_below({budget}, resident, /*since=*/0);
    // Plans by what is alive count, in as much memory as leaves their pages room.
    if (request_.placement == simulator::PlacementMode::planned &&
        request_.budget_on == PeakKind::reserved) {
      const SearchPoint alive{budget / kRestsOfPages * (kRestsOfPages - 1), true};
      const std::int64_t since = best_.spent.evaluations;
      search_at(alive);
      search_below(alive, out_.resident.peak_active, since);
    }
    if (!pool_.empty()) go_on_from_less(budget, bound.both());
    if (ends_ && !best_.over()) on_host_->mixed()->solve(*ends_, out_.lower_bound_step);
    if (!best_.answer() && any_structure_ && !best_.over()) try_chain_schedule(budget);
  }

  // False: no plan within this budget, or a smaller one, is faster than the best, or the search is
  // over.
  bool search_at(const SearchPoint& point) {
    if (point.bytes < out_.floor.bytes || best_.over()) return false;
    const Bounds bound = bounds(point.bytes);
    if (best_.reached(bound.both())) return false;
    solve(point, bound);
    return true;
  }

  // The points below one that every larger one has too. `since`: the evaluations ahead of that one.
  void search_below(const SearchPoint& top, Bytes resident, std::int64_t since) {
    const std::int64_t parts =
        pool_.empty() ? kGridParts
                      : kGridPartsWithStructures * (effort_for(index_) == kMostEffort ? 4 : 1);
    for (std::int64_t part = parts; part-- > 1;) {
      const Bytes point = grid_budget(resident, part, parts);
      if (point < top.bytes && !search_at({point, top.is_on_alive})) break;
    }
    if (!pool_.empty() && best_.spent.evaluations - since <= kEndedSoon) look_again(top);
  }

  // A climb that ended soon and far from the bound may have begun at the wrong start: in less
  // memory it takes another way.
  void look_again(const SearchPoint& top) {
    const Bytes point = top.bytes - top.bytes / kLookAgainIn;
    if (!best_.answer() || point < out_.floor.bytes || best_.over()) return;
    const Bounds bound = bounds(point);
    const Nanoseconds least = bound.both();
    if (best_.step() - least > least / kFarFromBound) solve({point, top.is_on_alive}, bound);
  }

  // A plan for less memory is one for more: from the best of those, where that is far from the
  // bound. Near the floor from the lowest of its points to the next one, and so on.
  void go_on_from_less(Bytes budget, Nanoseconds least) {
    const auto is_over = [&] {
      return best_.over() || (best_.answer() && best_.step() - least <= least / kFarFromBound);
    };
    const std::vector<Bytes> points = points_near_floor(lowest_budget(), budget);
    Reached reached;
    for (const Bytes point : points) {
      if (is_over()) return;
      if (reached.climb.step) {
        go_on(reached, point);
      } else {
        reached = solve({point}, bounds(point));
      }
    }
    if (in_less_.by != nullptr) reached.take(in_less_.climb, *in_less_.by);
    if (reached.climb.step && !is_over()) go_on(reached, budget);
  }

  // Better by that, or not at all.
  void go_on(Reached& from, Bytes budget) {
    Climb climb = from.climb;
    climb.point = {budget};
    from.by->go_on(climb, bounds(budget).both());
    from.take(std::move(climb), *from.by);
  }

  // Takes a step for each layer, so that it comes last.
  void try_chain_schedule(Bytes budget) {
    const PolicyBudget within{budget, request_.budget_on};
    const auto rules = policy_rules(index_, "checkpoint:schedule=optimal", within, &pool_);
    if (!rules || !admits(request_.allowed, *rules)) return;
    all().solve_from(*rules, {budget});
  }

  void offer_tight(StructureSearch& in) {
    in.evaluator().begin(best_.spent, best_.step());
    best_.offer(in, in.tight_plan());
    best_.spent.add(in.evaluator().spent());
  }

  // What is pinned as it is said, and nothing else; whether that is within the budget.
  bool offer_as_pinned(Bytes budget) {
    StructureSearch& base = without_.base();
    const std::vector<Choice> nothing(base.footprints().movable().size(), Choice::keep);
    simulator::Decisions decisions = base.footprints().decisions(nothing, {}, {});
    decisions.budget = request_.pins.budget.automatic.value_or(budget);
    base.evaluator().begin(best_.spent, best_.step());
    const bool is_within = best_.offer(base, base.evaluator().evaluate(decisions));
    best_.spent.add(base.evaluator().spent());
    return is_within;
  }

  // Nothing is left to be searched for.
  [[nodiscard]] bool is_all_pinned() {
    return all().base().space().candidates() == 0 && pool_.empty() && !on_host_ &&
           !all().has_structures();
  }

  void offer_rivals() {
    StructureSearch& base = without_.base();
    base.evaluator().begin(best_.spent, best_.step());
    for (const std::string& spec : rivals()) {
      const auto rules = policy_rules(index_, spec);
      if (!rules || !admits(request_.allowed, *rules)) continue;
      Plan plan;
      plan.saved = rules->saved;
      plan.parameters = rules->parameters;
      plan.optimizer = rules->optimizer;
      plan.gradients = rules->gradients;
      plan.budget.automatic = rules->automatic;
      auto decisions = simulator::resolve(base.index().trace(), plan);
      const bool holds = pins() == nullptr || (decisions && pins()->structure().empty() &&
                                               pins()->hold_in(base.index(), *decisions));
      if (decisions && holds) {
        best_.offer(base, base.evaluator().evaluate(*decisions));
      }
    }
    best_.spent.add(base.evaluator().spent());
  }

  [[nodiscard]] static Bytes grid_budget(Bytes resident, std::int64_t part, std::int64_t parts) {
    // resident * part / parts without overflow; what "60%" of it is, too.
    return resident / parts * part + resident % parts * part / parts;
  }

  static PolicyRules resident_rules() {
    simulator::SavedRule keep;
    keep.site = "*";
    return {{keep}, {}, {}};
  }

  Status finish_with(const simulator::Decisions& decisions, const StructureSearch& in) {
    const Trace& trace = in.index().trace();
    const Trace& recording = index_.step().recording();
    PolicyRules rules{simulator::op_rules(recording, in.structure()),
                      simulator::to_parameters(trace, decisions.parameters),
                      {}};
    const auto moved = simulator::to_rules(trace, decisions, in.index().of_segment());
    const std::size_t first_moved = rules.saved.size();
    rules.saved.insert(rules.saved.end(), moved.begin(), moved.end());
    leave_out_shadowed(trace, first_moved, rules.saved);
    if (has_automatic_points(decisions)) rules.automatic = decisions.budget;
    rules.recompute = simulator::recompute_rules(recording, in.structure());
    rules.optimizer = optimizer_rules(in, decisions.optimizer, on_host_.get(), pins());
    rules.gradients = simulator::to_gradient_rules(trace, decisions.gradients);
    return finish(std::move(rules));
  }

  // Fills in the plan; what is predicted is what reading the plan back gives.
  Status finish(PolicyRules rules) {
    Plan& plan = out_.plan;
    plan.target = simulator::target_of(index_.step().recording());
    plan.budget.device = request_.budget;
    if (request_.budget) plan.budget.device_text = request_.budget_text;
    if (request_.budget) plan.budget.on = request_.budget_on;
    plan.placement = request_.placement;
    plan.budget.host = request_.host_budget;
    if (request_.host_budget) plan.budget.host_text = request_.host_budget_text;
    if (rules.automatic != request_.budget) plan.budget.automatic = rules.automatic;
    plan.saved = std::move(rules.saved);
    plan.recompute = std::move(rules.recompute);
    plan.parameters = std::move(rules.parameters);
    plan.optimizer = std::move(rules.optimizer);
    plan.gradients = std::move(rules.gradients);
    for (simulator::Structure::Parts& parts :
         simulator::recorded_parts(index_.step().recording())) {
      plan.micro_batches.push_back({std::move(parts.segment), parts.parts});
    }
    plan.made_by = {"stowage " + std::string(kVersion), request_.policy, request_.seed, {}};
    const Result<simulator::Step> step = simulator::unroll(index_.step().recording(), plan);
    if (!step) return step.error();
    const bool is_recorded = step->segments().empty() && step->host_updates().empty();
    if (is_recorded) return predict(index_);
    const simulator::StepIndex index(*step);
    return predict(index);
  }

  Status predict(const simulator::StepIndex& index) {
    Plan& plan = out_.plan;
    auto lowering = simulator::lower(index, plan);
    if (!lowering) return lowering.error();
    if (const Status status = leave_out_idle_bytes(index, lowering->schedule); !status) {
      return status.error();
    }
    out_.predicted = simulator::replay(index, lowering->schedule);
    for (const simulator::LoweringNote& note : lowering->notes) {
      out_.notes.push_back(simulator::subject_of(index.trace(), note) + " " + note.text);
    }
    if (!out_.predicted.allocator_exact) out_.notes.emplace_back(simulator::kAllocatorRemark);
    if (simulator::guesses_host_updates(index.trace(), out_.predicted)) {
      out_.notes.emplace_back(simulator::kHostUpdateRemark);
    }
    if (out_.predicted.active_varies) out_.notes.emplace_back(simulator::kActiveVariesRemark);
    plan.predicted = predicted_of(out_.predicted);
    set_gap(out_);
    return Unit{};
  }

  // What automatic points stay within is not written where there are none: on another link these
  // may hang on it where they do not here.
  Status leave_out_idle_bytes(const simulator::StepIndex& index,
                              const simulator::Schedule& schedule) {
    if (!out_.plan.budget.automatic) return Unit{};
    const auto decisions = simulator::resolve(index.trace(), out_.plan);
    if (!decisions) return decisions.error();
    if (has_automatic_points(*decisions)) return Unit{};
    Plan without = out_.plan;
    without.budget.automatic.reset();
    const auto lowering = simulator::lower(index, without);
    if (!lowering) return lowering.error();
    if (lowering->schedule == schedule) out_.plan.budget.automatic.reset();
    return Unit{};
  }

  const simulator::StepIndex& index_;
  const std::shared_ptr<const simulator::StepIndex> updated_;
  const PlanRequest& request_;
  const std::optional<Nanoseconds> beats_;
  const StructurePool pool_;  // what could run again
  BestPlan best_;
  Climber without_;                          // with no gradients that leave
  std::optional<Climber> with_gradients_;    // where some may and can
  std::optional<Footprints> any_structure_;  // of all that is allowed, where some can run again
  std::optional<PinnedBound> of_pins_;       // where something is pinned
  std::unique_ptr<UpdatesOnHost> on_host_;   // where it may and can update
  // Of the budget asked for, where the host may update a part.
  std::optional<MixedUpdates::Ends> ends_;
  Reached in_less_;         // the best of points below the budget
  Bytes device_floor_ = 0;  // of plans with no updates on the host
  PlanOutcome out_;
};

}  // namespace

bool has_gradients(const simulator::StepIndex& index) {
  const std::vector<StorageClass>& classes = index.trace().storages.storage_class;
  for (std::size_t s = 0; s < classes.size(); ++s) {
    if (classes[s] != StorageClass::gradient) continue;
    if (index.model_state_uses().reason_to_stay(StorageId(s)).empty()) return true;
  }
  return false;
}

void set_gap(PlanOutcome& outcome) {
  const Nanoseconds bound = outcome.lower_bound_step;
  const Nanoseconds above = std::max<Nanoseconds>(outcome.predicted.step_ns - bound, 0);
  outcome.gap_ppm =
      bound > 0 ? static_cast<std::int64_t>(static_cast<Wide>(above) * kPpm / bound) : 0;
  outcome.plan.lower_bound_step = bound;
  outcome.plan.gap_ppm = outcome.gap_ppm;
}

Bytes lowest_budget(Bytes floor, simulator::PeakKind on) {
  if (on != simulator::PeakKind::reserved) return floor;
  const Bytes pages = (floor + simulator::kDevicePage - 1) / simulator::kDevicePage;
  return pages * simulator::kDevicePage;
}

Result<PlanOutcome> plan_as_recorded(const simulator::StepIndex& index, const PlanRequest& request,
                                     std::optional<Nanoseconds> beats) {
  const Result<std::shared_ptr<const Pins>> pins = Pins::make(index, request.pins);
  if (!pins) return pins.error();
  PlanRequest with_pins = request;
  with_pins.allowed.pinned = *pins;
  const std::shared_ptr<const simulator::StepIndex> recorded(std::shared_ptr<void>(), &index);
  std::shared_ptr<const simulator::StepIndex> settled = recorded;
  std::shared_ptr<const simulator::StepIndex> updated = recorded;
  if (*pins != nullptr && !(*pins)->structure().empty()) {
    const auto under = [&](const simulator::Structure& structure) -> Result<decltype(settled)> {
      const Result<simulator::Step> step = simulator::unroll(index.step().recording(), structure);
      if (!step) return step.error();
      return std::make_shared<const simulator::StepIndex>(*step);
    };
    Result<decltype(settled)> all = under((*pins)->structure());
    if (!all) return all.error();
    settled = std::move(all).value();
    simulator::Structure of_host;
    of_host.host_updates = (*pins)->structure().host_updates;
    if (!of_host.empty()) {
      Result<decltype(settled)> updates = under(of_host);
      if (!updates) return updates.error();
      updated = std::move(updates).value();
    }
  }
  return Planner(index, settled, updated, with_pins, beats).run();
}

}  // namespace stowage::planner
