#include "planner/plan_as_recorded.h"

#include <algorithm>
#include <map>
#include <memory>
#include <utility>

#include "planner/applied_file.h"
#include "planner/budget.h"
#include "planner/evaluator.h"
#include "planner/in_parallel.h"
#include "planner/policy_starts.h"
#include "planner/structure_pool.h"
#include "planner/structure_search.h"
#include "simulator/lowering/lowering.h"
#include "simulator/machine/rest_gain.h"
#include "simulator/placement/placement.h"
#include "simulator/plan/gradient_rules.h"
#include "simulator/plan/optimizer_rules.h"
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
// Of a large step; smaller ones get up to kMostEffort times as much (effort_for).
constexpr std::int64_t kMostEffort = 4;
constexpr std::int64_t kGlanceQuota = 3;  // evaluations that say whether a structure is worth more
constexpr std::int64_t kShortQuota = 10;  // what it is worth
constexpr std::size_t kMostNeighbours = 10;  // that free more bytes, and that work less
constexpr std::size_t kMostLooks = 4;        // of a round, that are worth more
constexpr int kShortRounds = 4;
constexpr int kMostClimbs = 5;
constexpr std::int64_t kEndedSoon = 800;   // evaluations
constexpr Nanoseconds kFarFromBound = 20;  // times the gap to the bound is the bound, or less
constexpr Bytes kLookAgainIn = 10;         // a part of the budget less
constexpr Nanoseconds kGain = 1000;        // a round that gains less than this part is the last
constexpr std::size_t kFewPositions = 3;   // of the bound that says that it is worth nothing
constexpr Bytes kRestsOfPages = 50;        // times the rests of pages is the peak, or more
constexpr Bytes kWandersBy = 4096;         // times the allowance is the peak; seen are up to 0.01 %

bool has_automatic_points(const simulator::Decisions& decisions) {
  if (!decisions.parameters.stream.off() && !decisions.parameters.prefetch) {
    return true;
  }
  const std::vector<bool>& state = decisions.optimizer.state_streams;
  if (std::find(state.begin(), state.end(), true) != state.end()) return true;
  const std::vector<bool>& gradients = decisions.gradients.at_home;
  if (std::find(gradients.begin(), gradients.end(), true) != gradients.end()) return true;
  return std::any_of(decisions.saved.begin(), decisions.saved.end(), [](const auto& decision) {
    return decision.decision == simulator::Decision::offload &&
           (decision.release.kind == simulator::ReleasePoint::Kind::automatic ||
            decision.reload.kind == simulator::ReloadPoint::Kind::automatic);
  });
}

// Policies that move only and that `auto` is never worse than, where they are allowed and keep the
// budget; of others, see policy_starts().
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

// Structures of small steps cost little to look into.
std::int64_t effort_for(const simulator::StepIndex& index) {
  constexpr std::int64_t kEventsOfALargeStep = 4'000;
  return std::clamp<std::int64_t>(
      kEventsOfALargeStep / static_cast<std::int64_t>(index.event_count() + 1), 1, kMostEffort);
}

class Planner {
 public:
  Planner(const simulator::StepIndex& index, const PlanRequest& request,
          std::optional<Nanoseconds> beats)
      : index_(index),
        request_(request),
        beats_(beats),
        effort_(effort_for(index)),
        base_({std::shared_ptr<void>(), &index}, {}, request) {
    if (!request.allowed.recompute || policy_name(request.policy) != "auto") return;
    pool_ = StructurePool(index, request.allowed.offload);
    if (!pool_.empty() || policies_run_again()) {
      any_structure_.emplace(index, request.budget_on, request.allowed);
    }
  }

  Result<PlanOutcome> run() {
    if (auto status = check(); !status) return status.error();
    out_.resident =
        simulator::replay(index_, simulator::resident_schedule(index_, request_.placement));
    if (request_.budget_on == PeakKind::reserved && out_.resident.peak_reserved < 0) {
      return Error{ErrorCode::usage, "the trace's device has no reserved bytes", "", "",
                   "use --budget-on active"};
    }
    out_.floor = base_.floor();
    if (any_structure_) out_.floor = memory_floor(*any_structure_);
    out_.floor.reached = false;
    out_.lower_bound_step = out_.resident.step_ns;
    const std::string policy = policy_name(request_.policy);
    if (policy == "auto") out_.allowed = request_.allowed;
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
    out_.search.evaluations = spent_.evaluations;
    out_.search.stopped = spent_.stopped;
    out_.search.exhausted = spent_.exhausted;
    return std::move(out_);
  }

 private:
  struct Answer {
    Candidate candidate;
    StructureSearch* in = nullptr;
  };

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
    return any_structure_ ? *any_structure_ : base_.footprints();
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
    Bytes least = peak_with_allowance(out_.resident);
    if (out_.plan.predicted && within_host_budget(out_.predicted)) {
      least = std::min(least, peak_with_allowance(out_.predicted));
    }
    for (StructureSearch* in : {&base_, best_ ? best_->in : &base_}) {
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
    return least;
  }

  [[nodiscard]] bool within_budget(const ReplayResult& result) const {
    return !request_.budget || peak_with_allowance(result) <= *request_.budget;
  }
  [[nodiscard]] bool within_host_budget(const ReplayResult& result) const {
    return !request_.host_budget || result.host_bytes <= *request_.host_budget;
  }

  Status run_policy() {
    std::optional<PolicyBudget> within;
    if (request_.budget) within = {*request_.budget, request_.budget_on};
    auto rules = policy_rules(index_, request_.policy, within);
    if (!rules) return rules.error();
    if (runs_again(*rules)) {
      any_structure_.emplace(index_, request_.budget_on, Allowed{});
      out_.floor = memory_floor(*any_structure_);
    }
    out_.notes = rules->notes;
    if (auto status = finish(std::move(rules).value()); !status) {
      return of_policy(request_.policy, status.error());
    }
    if (std::string note = buys_nothing(); !note.empty()) {
      out_.notes.insert(out_.notes.begin(), std::move(note));
    }
    if (within_budget(out_.predicted) && within_host_budget(out_.predicted)) {
      if (!request_.budget) return Unit{};
      out_.lower_bound_step = shortest_step(bounding(), *request_.budget);
      set_gap(out_);
      return Unit{};
    }
    out_.kind = PlanKind::policy_over_budget;
    std::vector<std::string> over;
    if (!within_budget(out_.predicted)) {
      over.push_back("policy " + request_.policy + " needs " +
                     format_bytes(peak_of(out_.predicted, request_.budget_on)) +
                     ", the budget is " + format_bytes(*request_.budget));
    }
    if (!within_host_budget(out_.predicted)) {
      over.push_back("policy " + request_.policy + " puts " +
                     format_bytes(out_.predicted.host_bytes) + " on the host, the host budget is " +
                     format_bytes(*request_.host_budget));
    }
    out_.notes.insert(out_.notes.begin(), over.begin(), over.end());
    return Unit{};
  }

  // Where the policy's plan takes time and lowers no peak; else empty.
  [[nodiscard]] std::string buys_nothing() const {
    const Bytes before = peak_of(out_.resident, request_.budget_on);
    const Nanoseconds longer = out_.predicted.step_ns - out_.resident.step_ns;
    if (longer <= 0 || peak_of(out_.predicted, request_.budget_on) < before) return "";
    return "policy " + request_.policy + " buys nothing here: the peak of " + format_bytes(before) +
           " is no lower, and the step takes " + format_time(longer) + " longer";
  }

  Status run_auto() {
    const Bytes budget = *request_.budget;
    const Bytes resident = peak_of(out_.resident, request_.budget_on);
    if (resident <= budget) {
      out_.kind = PlanKind::fits_already;
      out_.notes.push_back("the step fits already: its peak is " + format_bytes(resident));
      return finish(resident_rules());
    }
    if (lowest_budget() > budget) {
      if (out_.floor.bytes >= resident) {
        out_.kind = PlanKind::offload_cannot_help;
        out_.notes.push_back("no " + request_.allowed.limits("decision") + " lowers the peak of " +
                             format_bytes(resident));
        return finish(resident_rules());
      }
      out_.kind = PlanKind::infeasible;
      out_.notes.push_back("no " + request_.allowed.limits("plan") + " has a peak below " +
                           format_bytes(out_.floor.bytes));
      return finish_with(base_.footprints().tight(base_.tight().choices), base_);
    }

    out_.lower_bound_step = shortest_step(bounding(), budget);
    if (beats_ && out_.lower_bound_step >= *beats_) {
      out_.kind = PlanKind::not_found;
      return Unit{};
    }
    search(budget, resident);
    if (spent_.error) return *spent_.error;
    if (best_) return finish_with(best_->candidate.decisions, *best_->in);
    out_.kind = PlanKind::not_found;
    StructureSearch* tightest = &base_;
    for (const auto& [members, each] : searches_) {
      if (each && each->tight().peak < tightest->tight().peak) tightest = each.get();
    }
    const Status status =
        finish_with(tightest->footprints().tight(tightest->tight().choices), *tightest);
    out_.notes.insert(out_.notes.begin(),
                      "no plan within the budget was found; the tightest has a peak of " +
                          std::to_string(peak_of(out_.predicted, request_.budget_on)) + " bytes");
    return status;
  }

  using Found = StructureSearch::Found;
  using Effort = StructureSearch::Effort;

  // Keeps what is the best answer by now.
  void offer(StructureSearch& in, Found found) {
    for (Found::Counted& exact : found.candidates) {
      if (exact.peak > *request_.budget) continue;
      if (!in.evaluator().keeps(exact.candidate, *request_.budget)) continue;
      if (best_ && !exact.candidate.better_than(best_->candidate)) continue;
      best_ = Answer{std::move(exact.candidate), &in};
    }
  }
  // False where it is none, or not within the budget.
  bool offer(StructureSearch& in, std::optional<Candidate> candidate) {
    if (!candidate) return false;
    const Bytes peak = in.evaluator().exact_peak(*candidate);
    const bool is_one = peak <= *request_.budget;
    Found found;
    found.candidates.push_back({std::move(*candidate), peak, {}});
    offer(in, std::move(found));
    return is_one;
  }

  [[nodiscard]] Nanoseconds best_step() const {
    return best_ ? best_->candidate.result.step_ns : -1;
  }

  [[nodiscard]] bool reached(Nanoseconds bound) const {
    return best_ && best_->candidate.result.step_ns <= bound;
  }

  [[nodiscard]] Effort long_search(const StructureSearch& in) const {
    const std::int64_t quota = quota_of(in.index());
    return {.quota = pool_.empty() ? quota : std::max<std::int64_t>(quota / 2, 40)};
  }

  // The best by now for one budget.
  struct Climb {
    Bytes point = 0;
    StructureSearch* in = nullptr;
    StructurePool::Members members;
    std::vector<Choice> choices;      // none were found: empty
    std::optional<Nanoseconds> step;  // likewise
    // By their likely counter within the budget, the best last.
    std::vector<std::pair<StructureSearch*, Candidate>> likely{};
  };

  void solve_in(Climb& climb, Nanoseconds bound) {
    StructureSearch& in = *climb.in;
    in.evaluator().begin(spent_, best_step());
    Effort effort = long_search(in);
    effort.seed.choices = climb.choices;
    Found found = in.solve(climb.point, bound, effort);
    spent_.add(in.evaluator().spent());
    if (found.step) {
      climb.step = found.step;
      climb.choices = found.candidates.back().choices;
    }
    offer(in, std::move(found));
  }

  // The best plans for one budget. Depends on that alone, whatever the one asked for.
  void solve(Bytes point, Nanoseconds bound) {
    ++out_.search.grid_points;
    Climb climb{point, &base_, {}, {}, {}};
    solve_in(climb, bound);
    if (!any_structure_ || (climb.step && *climb.step <= bound)) return;
    if (!pool_.empty()) climb_structures(climb);
    start_from_policies(climb);
  }

  // From the best of the pool's starts to better neighbours.
  void climb_structures(Climb& climb) {
    std::vector<StructurePool::Members> next =
        pool_.starts(effort_ == kMostEffort ? StructurePool::Starts::every_set_of_few
                                            : StructurePool::Starts::by_kind);
    for (int rounds = 0; rounds <= kMostClimbs * effort_ && !over(); ++rounds) {
      const std::optional<Nanoseconds> before = climb.step;
      take_best(next, climb);
      if (climb.step == before && rounds > 0) break;
      next = pool_.neighbours(climb.members, kMostNeighbours * static_cast<std::size_t>(effort_));
    }
    if (climb.in == &base_) return;
    for (auto each = climb.likely.rbegin(); each != climb.likely.rend(); ++each) {
      if (offer(*each->first, std::move(each->second))) break;
    }
    solve_in(climb, shortest_step(climb.in->footprints(), climb.point));
  }

  std::vector<PolicyStart>& policies() {
    if (!policies_) policies_ = policy_starts(index_, request_, pool_);
    return *policies_;
  }
  [[nodiscard]] bool policies_run_again() {
    return std::any_of(policies().begin(), policies().end(),
                       [](const PolicyStart& each) { return each.runs_again(); });
  }

  // Where the plan of a policy is better than what was found within the point, from there.
  void start_from_policies(Climb& climb) {
    const Trace& recording = index_.step().recording();
    StructureSearch* best = nullptr;
    for (PolicyStart& policy : policies()) {
      if (over()) return;
      const std::optional<Nanoseconds> below =
          best_ ? std::optional(best_step()) : std::optional<Nanoseconds>();
      const Candidate* const plan = policy.plan(recording, request_, below, spent_);
      if (plan == nullptr || policy.peak() > climb.point) continue;
      const bool is_better = !climb.step || plan->result.step_ns < *climb.step;
      if (!within_host_budget(plan->result)) continue;
      if (!is_better && best_ && !plan->better_than(best_->candidate)) continue;
      StructureSearch* const in = policy.search(recording, request_);
      if (in == nullptr) continue;
      ++out_.search.structures;
      Found found;
      found.candidates.push_back({*plan, policy.peak(), {}});
      offer(*in, std::move(found));
      if (!is_better) continue;
      climb.step = plan->result.step_ns;
      best = in;
    }
    if (best == nullptr) return;
    climb.in = best;
    climb.members.clear();
    climb.choices.clear();
    solve_in(climb, shortest_step(best->footprints(), climb.point));
  }

  struct Short {
    StructurePool::Members members;
    std::unique_ptr<StructureSearch>* search = nullptr;
    Nanoseconds shortest = 0;
    std::optional<Solution> found{};  // its exact counter is not known
    Nanoseconds step = -1;            // found, -1 = none
  };

  // A short search in each, at once, from the set of the best by now; true when one is better,
  // which is that then. Those of a round do not know of each other, so that any number of cores
  // gives the same answer.
  void take_best(const std::vector<StructurePool::Members>& all, Climb& climb) {
    std::vector<Short> round;
    for (const StructurePool::Members& members : all) {
      if (is_longer(members, climb.step)) continue;
      const auto [at, is_new] = searches_.try_emplace(members);
      if (is_new) ++out_.search.structures;
      if (is_new || at->second) round.push_back({members, &at->second});
    }
    const Climb from = climb;
    in_parallel(round.size(),
                [&](std::size_t i) { estimate(round[i], from, kGlanceQuota * effort_); });
    keep_best(round, kMostLooks * static_cast<std::size_t>(effort_));
    in_parallel(round.size(),
                [&](std::size_t i) { estimate(round[i], from, kShortQuota * effort_); });
    keep_best(round, kMostLooks * static_cast<std::size_t>(effort_));
    for (Short& each : round) take(each, from, climb);
    if (request_.progress) {
      request_.progress({spent_.evaluations, request_.max_evaluations, best_step()});
    }
  }

  [[nodiscard]] static SearchSeed seed_of(const StructureSearch& in, const Climb& from) {
    if (from.choices.empty()) return {};
    return {in.choices_like(*from.in, from.choices), from.step.has_value()};
  }

  // What is found in it by the likely counter, if that is better.
  void take(Short& each, const Climb& from, Climb& climb) {
    StructureSearch& in = **each.search;
    in.evaluator().begin(spent_, {});
    Found found =
        in.solve(from.point, each.shortest,
                 {kShortQuota * effort_, kShortRounds, climb.step, seed_of(in, from), false},
                 std::move(each.found));
    spent_.add(in.evaluator().spent());
    if (found.step) {
      const Found::Counted& best = found.candidates.back();
      climb.in = &in;
      climb.members = each.members;
      climb.choices = best.choices;
      climb.step = found.step;
      climb.likely.emplace_back(&in, best.candidate);
    }
    if (in.evaluator().likely_is_exact()) offer(in, std::move(found));
  }

  // Those that found something, the shortest step first.
  void keep_best(std::vector<Short>& round, std::size_t most) {
    for (const Short& each : round) {
      if (*each.search != nullptr) spent_.add((*each.search)->evaluator().spent());
    }
    std::erase_if(round, [](const Short& each) { return each.step < 0; });
    std::stable_sort(round.begin(), round.end(),
                     [](const Short& a, const Short& b) { return a.step < b.step; });
    if (round.size() > most) round.resize(most);
  }

  // On any thread. The search is made when it is asked for first; null where it cannot be had.
  void estimate(Short& of, const Climb& from, std::int64_t quota) const {
    of.found.reset();
    of.step = -1;
    std::unique_ptr<StructureSearch>& search = *of.search;
    if (search == nullptr) {
      auto made =
          StructureSearch::make(index_.step().recording(), pool_.structure(of.members), request_);
      if (!made) return;
      search = std::move(made).value();
    }
    search->evaluator().begin(spent_, {});
    if (search->floor().bytes > from.point) return;
    of.shortest = shortest_step(search->footprints(), from.point, kFewPositions);
    if (from.step && of.shortest >= *from.step) return;
    of.found = search->estimate(from.point, of.shortest,
                                {quota, kShortRounds, {}, seed_of(*search, from)});
    if (of.found) of.step = of.found->candidate.result.step_ns;
  }

  // No step with it is shorter than that.
  [[nodiscard]] bool is_longer(const StructurePool::Members& members,
                               const std::optional<Nanoseconds>& step) const {
    const Ppm boost = simulator::rest_gain(index_.trace().calibration).boost;
    const Nanoseconds compute = index_.compute_until().back() + pool_.work(members);
    return step && Wide{compute} * kPpm / boost >= *step;
  }

  bool over() {
    if (request_.stop.stop_requested()) spent_.stopped = true;
    if (spent_.evaluations >= request_.max_evaluations) spent_.exhausted = true;
    return spent_.stopped || spent_.exhausted;
  }

  void search(Bytes budget, Bytes resident) {
    // The one that always fits comes first: a search that is stopped has an answer.
    base_.evaluator().begin(spent_, best_step());
    offer(base_, base_.tight_plan());
    spent_.add(base_.evaluator().spent());
    out_.search.candidates = base_.space().candidates();
    solve(budget, out_.lower_bound_step);
    const bool is_placed = request_.placement == simulator::PlacementMode::planned;
    if (!best_ && is_placed && !over()) {
      solve(budget - budget / kRestsOfPages, out_.lower_bound_step);
    }
    if (!reached(out_.lower_bound_step)) offer_rivals();
    const std::int64_t parts =
        pool_.empty() ? kGridParts : kGridPartsWithStructures * (effort_ == kMostEffort ? 4 : 1);
    for (std::int64_t part = parts; part-- > 0;) {
      const Bytes point = grid_budget(resident, part, parts);
      if (point >= budget) continue;
      if (point < out_.floor.bytes || over()) break;
      // No plan within this budget, or a smaller one, is faster.
      const Nanoseconds bound = shortest_step(bounding(), point);
      if (reached(bound)) break;
      solve(point, bound);
    }
    if (!pool_.empty()) look_again(budget);
    if (!best_ && any_structure_ && !over()) try_chain_schedule(budget);
  }

  // A climb that ended soon and far from the bound may have begun at the wrong start: in less
  // memory it takes another way.
  void look_again(Bytes budget) {
    const Bytes point = budget - budget / kLookAgainIn;
    if (!best_ || spent_.evaluations > kEndedSoon || point < out_.floor.bytes || over()) return;
    const Nanoseconds bound = shortest_step(bounding(), point);
    if (best_step() - bound > bound / kFarFromBound) solve(point, bound);
  }

  // Takes a step for each layer, so that it comes last.
  void try_chain_schedule(Bytes budget) {
    const PolicyBudget within{budget, request_.budget_on};
    const auto rules = policy_rules(index_, "checkpoint:schedule=optimal", within, &pool_);
    if (!rules || !admits(request_.allowed, *rules)) return;
    policies().emplace_back(*rules);
    Climb climb{budget, &base_, {}, {}, {}};
    start_from_policies(climb);
  }

  void offer_rivals() {
    base_.evaluator().begin(spent_, best_step());
    for (const std::string& spec : rivals()) {
      const auto rules = policy_rules(index_, spec);
      if (!rules || !admits(request_.allowed, *rules)) continue;
      Plan plan;
      plan.saved = rules->saved;
      plan.parameters = rules->parameters;
      plan.optimizer = rules->optimizer;
      plan.gradients = rules->gradients;
      plan.budget.automatic = rules->automatic;
      if (const auto decisions = simulator::resolve(index_.trace(), plan)) {
        offer(base_, base_.evaluator().evaluate(*decisions));
      }
    }
    spent_.add(base_.evaluator().spent());
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
    rules.saved.insert(rules.saved.end(), moved.begin(), moved.end());
    if (has_automatic_points(decisions)) rules.automatic = decisions.budget;
    rules.recompute = simulator::recompute_rules(recording, in.structure());
    rules.optimizer = simulator::to_optimizer_rules(trace, decisions.optimizer);
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
    plan.made_by = {"stowage " + std::string(kVersion), request_.policy, request_.seed,
                    request_.created};
    const Result<simulator::Step> step = simulator::unroll(index_.step().recording(), plan);
    if (!step) return step.error();
    return step->segments().empty() ? predict(index_) : predict(simulator::StepIndex(*step));
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
  const PlanRequest& request_;
  const std::optional<Nanoseconds> beats_;
  const std::int64_t effort_;
  Spent spent_;
  StructureSearch base_;                     // nothing runs again
  StructurePool pool_;                       // what could
  std::optional<Footprints> any_structure_;  // with a pool
  std::map<StructurePool::Members, std::unique_ptr<StructureSearch>> searches_;
  std::optional<std::vector<PolicyStart>> policies_;  // once they are asked for
  std::optional<Answer> best_;
  PlanOutcome out_;
};

}  // namespace

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
  return Planner(index, request, beats).run();
}

}  // namespace stowage::planner
