#include "planner/climber.h"

#include <algorithm>
#include <utility>

#include "planner/bounds.h"
#include "planner/in_parallel.h"
#include "planner/pins.h"
#include "simulator/machine/rest_gain.h"
#include "simulator/step/plan_structure.h"

namespace stowage::planner {
namespace {

constexpr std::int64_t kGlanceQuota = 3;  // evaluations that say whether a structure is worth more
constexpr std::int64_t kShortQuota = 10;  // what it is worth
constexpr std::size_t kMostNeighbours = 10;  // that free more bytes, and that work less
constexpr std::size_t kMostLooks = 4;        // of a round, that are worth more
constexpr int kShortRounds = 4;
constexpr std::int64_t kMostClimbs = 5;
constexpr std::int64_t kFewClimbs = 1;
constexpr std::size_t kFewPositions = 3;  // of the bound that says that it is worth nothing

}  // namespace

std::int64_t evaluations_for(const simulator::StepIndex& index) {
  constexpr std::int64_t kEventsForAll = 1'700'000;
  return std::clamp<std::int64_t>(
      kEventsForAll / static_cast<std::int64_t>(index.event_count() + 1), 40, 250);
}

std::int64_t effort_for(const simulator::StepIndex& index) {
  constexpr std::int64_t kEventsOfALargeStep = 4'000;
  return std::clamp<std::int64_t>(
      kEventsOfALargeStep / static_cast<std::int64_t>(index.event_count() + 1), 1, kMostEffort);
}

Climber::Climber(const simulator::StepIndex& index, PlanRequest request, const StructurePool& pool,
                 BestPlan& best)
    : Climber({std::shared_ptr<void>(), &index}, std::move(request), pool, best) {}

Climber::Climber(std::shared_ptr<const simulator::StepIndex> index, PlanRequest request,
                 const StructurePool& pool, BestPlan& best)
    : index_(*index),
      request_(std::move(request)),
      pool_(pool),
      best_(best),
      effort_(effort_for(index_)),
      base_(index,
            index->step().is_recording() ? simulator::Structure()
                                         : simulator::structure_of(index->step()),
            request_) {
  // None of them has the host update, or what is pinned, besides.
  if (!index->step().is_recording()) policies_.emplace();
}

simulator::Structure Climber::with_base(simulator::Structure structure) const {
  if (request_.allowed.pinned) structure = request_.allowed.pinned->with_structure(structure);
  structure.host_updates = base_.structure().host_updates;
  return structure;
}

bool Climber::runs_again(const StructureSearch& in) const {
  const simulator::Structure& base = base_.structure();
  return in.structure().recompute.size() > base.recompute.size() ||
         in.structure().ops.size() > base.ops.size();
}

Climb Climber::solve(const SearchPoint& point, Nanoseconds bound) {
  Climb climb{point, &base_, {}, {}, {}};
  solve_in(climb, bound);
  if (!has_structures() || (climb.step && *climb.step <= bound)) return climb;
  if (!pool_.empty()) {
    const bool is_small = effort_ == kMostEffort;
    climb_structures(climb,
                     pool_.starts(is_small ? StructurePool::Starts::every_set_of_few
                                           : StructurePool::Starts::by_kind),
                     kMostClimbs);
  }
  start_from_policies(climb);
  return climb;
}

Climb Climber::solve_from(const Climb& climb, Nanoseconds bound) {
  StructureSearch* const in = search_like(*climb.in);
  if (in == nullptr) return climb;
  Climb here{climb.point, in, {}, in->choices_like(*climb.in, climb.choices), climb.step};
  solve_in(here, bound);
  if (pool_.empty() || !here.step || *here.step - bound <= bound / kFarFromBound) return here;
  here.members = climb.members;
  climb_structures(here, neighbours(here), kFewClimbs);
  return here;
}

Climb Climber::solve_beside(const Climb& climb, Nanoseconds bound) {
  if (!climb.step) return solve(climb.point, bound);
  if (runs_again(*climb.in)) {
    Climb here{climb.point, &base_, {}, base_.choices_like(*climb.in, climb.choices), {}};
    solve_in(here, bound);
    if (here.step && *here.step <= bound) return here;
  }
  return solve_from(climb, bound);
}

void Climber::go_on(Climb& climb, Nanoseconds bound) {
  climb.likely.clear();  // they are of the other point, and were offered there
  solve_in(climb, bound);
  if (!pool_.empty()) climb_structures(climb, neighbours(climb), kFewClimbs);
}

StructureSearch* Climber::search_like(const StructureSearch& other) {
  if (!runs_again(other)) return &base_;
  const auto known = std::find_if(like_.begin(), like_.end(),
                                  [&](const auto& each) { return each.first == &other; });
  if (known != like_.end()) return known->second.get();
  auto made =
      StructureSearch::make(index_.step().recording(), with_base(other.structure()), request_);
  if (!made) return nullptr;
  ++best_.structures;
  like_.emplace_back(&other, std::move(made).value());
  return like_.back().second.get();
}

void Climber::solve_from(const PolicyRules& rules, const SearchPoint& point) {
  policies().emplace_back(rules);
  Climb climb{point, &base_, {}, {}, {}};
  start_from_policies(climb);
}

StructureSearch& Climber::tightest() {
  StructureSearch* tightest = &base_;
  const auto take = [&](const auto& searches) {
    for (const auto& [key, each] : searches) {
      if (each && each->tight().peak < tightest->tight().peak) tightest = each.get();
    }
  };
  take(searches_);
  take(like_);
  return *tightest;
}

std::vector<PolicyStart>& Climber::policies() {
  if (!policies_) policies_ = policy_starts(index_, request_, pool_);
  return *policies_;
}

bool Climber::policies_run_again() {
  return std::any_of(policies().begin(), policies().end(),
                     [](const PolicyStart& each) { return each.runs_again(); });
}

StructureSearch::Effort Climber::long_search(const StructureSearch& in) const {
  const std::int64_t quota = evaluations_for(in.index());
  return {.quota = pool_.empty() ? quota : std::max<std::int64_t>(quota / 2, 40)};
}

void Climber::solve_in(Climb& climb, Nanoseconds bound) {
  StructureSearch& in = *climb.in;
  if (in.floor().bytes > climb.point.bytes) return;
  in.evaluator().begin(best_.spent, best_.step());
  StructureSearch::Effort effort = long_search(in);
  effort.seed.choices = climb.choices;
  if (climb.point.is_on_alive) effort.peak = StructureSearch::Peak::alive;
  StructureSearch::Found found = in.solve(climb.point.bytes, bound, effort);
  best_.spent.add(in.evaluator().spent());
  if (found.step) {
    climb.step = found.step;
    climb.choices = found.candidates.back().choices;
  }
  offer(in, climb.point, std::move(found));
}

// From the best of these to better neighbours.
void Climber::climb_structures(Climb& climb, std::vector<StructurePool::Members> next,
                               std::int64_t most) {
  StructureSearch* const from = climb.in;
  for (std::int64_t rounds = 0; rounds <= most * effort_ && !best_.over(); ++rounds) {
    const std::optional<Nanoseconds> before = climb.step;
    take_best(next, climb);
    if (climb.step == before && rounds > 0) break;
    next = neighbours(climb);
  }
  if (climb.in == from) return;
  for (auto each = climb.likely.rbegin(); each != climb.likely.rend(); ++each) {
    if (best_.offer(*each->first, std::move(each->second))) break;
  }
  solve_in(climb, shortest_step(climb.in->footprints(), climb.point.bytes));
}

std::vector<StructurePool::Members> Climber::neighbours(const Climb& climb) const {
  return pool_.neighbours(climb.members, kMostNeighbours * static_cast<std::size_t>(effort_));
}

// Where the plan of a policy is better than what was found within the point, from there.
void Climber::start_from_policies(Climb& climb) {
  const Trace& recording = index_.step().recording();
  StructureSearch* best = nullptr;
  for (PolicyStart& policy : policies()) {
    if (best_.over()) return;
    const std::optional<Nanoseconds> below =
        best_.answer() ? std::optional(best_.step()) : std::optional<Nanoseconds>();
    const Candidate* const plan = policy.plan(recording, request_, below, best_.spent);
    if (plan == nullptr) continue;
    if ((climb.point.is_on_alive ? plan->peak : policy.peak()) > climb.point.bytes) continue;
    const bool is_better = !climb.step || plan->result.step_ns < *climb.step;
    if (!best_.within_host_budget(plan->result)) continue;
    if (!is_better && best_.answer() && !plan->better_than(best_.answer()->candidate)) continue;
    StructureSearch* const in = policy.search(recording, request_);
    if (in == nullptr) continue;
    ++best_.structures;
    StructureSearch::Found found;
    found.candidates.push_back({*plan, policy.peak(), {}});
    best_.offer(*in, std::move(found));
    if (!is_better) continue;
    climb.step = plan->result.step_ns;
    best = in;
  }
  if (best == nullptr) return;
  climb.in = best;
  climb.members.clear();
  climb.choices.clear();
  solve_in(climb, shortest_step(best->footprints(), climb.point.bytes));
}

// A short search in each, at once, from the set of the best by now; one that is better is that
// then. Those of a round do not know of each other, so that any number of cores
// gives the same answer.
void Climber::take_best(const std::vector<StructurePool::Members>& all, Climb& climb) {
  std::vector<Short> round;
  for (const StructurePool::Members& members : all) {
    if (is_longer(members, climb.step)) continue;
    const auto [at, is_new] = searches_.try_emplace(members);
    if (is_new) ++best_.structures;
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
  best_.report();
}

SearchSeed Climber::seed_of(const StructureSearch& in, const Climb& from) {
  if (from.choices.empty()) return {};
  return {in.choices_like(*from.in, from.choices), from.step.has_value()};
}

// What is found in it by the likely counter, if that is better.
void Climber::take(Short& each, const Climb& from, Climb& climb) {
  StructureSearch& in = **each.search;
  in.evaluator().begin(best_.spent, {});
  StructureSearch::Found found = in.solve(
      from.point.bytes, each.shortest,
      {kShortQuota * effort_, kShortRounds, climb.step, seed_of(in, from),
       from.point.is_on_alive ? StructureSearch::Peak::alive : StructureSearch::Peak::likely},
      std::move(each.found));
  best_.spent.add(in.evaluator().spent());
  if (found.step) {
    const StructureSearch::Found::Counted& best = found.candidates.back();
    climb.in = &in;
    climb.members = each.members;
    climb.choices = best.choices;
    climb.step = found.step;
    climb.likely.emplace_back(&in, best.candidate);
  }
  if (in.evaluator().likely_is_exact()) best_.offer(in, std::move(found));
}

void Climber::offer(StructureSearch& in, const SearchPoint& point, StructureSearch::Found found) {
  if (!point.is_on_alive) return best_.offer(in, std::move(found));
  for (StructureSearch::Found::Counted& each : found.candidates) {
    best_.offer(in, std::move(each.candidate));
  }
}

// Those that found something, the shortest step first.
void Climber::keep_best(std::vector<Short>& round, std::size_t most) {
  for (const Short& each : round) {
    if (*each.search != nullptr) best_.spent.add((*each.search)->evaluator().spent());
  }
  std::erase_if(round, [](const Short& each) { return each.step < 0; });
  std::stable_sort(round.begin(), round.end(),
                   [](const Short& a, const Short& b) { return a.step < b.step; });
  if (round.size() > most) round.resize(most);
}

// On any thread. The search is made when it is asked for first; null where it cannot be had.
void Climber::estimate(Short& of, const Climb& from, std::int64_t quota) const {
  of.found.reset();
  of.step = -1;
  std::unique_ptr<StructureSearch>& search = *of.search;
  if (search == nullptr) {
    auto made = StructureSearch::make(index_.step().recording(),
                                      with_base(pool_.structure(of.members)), request_);
    if (!made) return;
    search = std::move(made).value();
  }
  search->evaluator().begin(best_.spent, {});
  if (search->floor().bytes > from.point.bytes) return;
  of.shortest = shortest_step(search->footprints(), from.point.bytes, kFewPositions);
  if (from.step && of.shortest >= *from.step) return;
  of.found = search->estimate(from.point.bytes, of.shortest,
                              {quota, kShortRounds, {}, seed_of(*search, from)});
  if (of.found) of.step = of.found->candidate.result.step_ns;
}

// No step with it is shorter than that.
bool Climber::is_longer(const StructurePool::Members& members,
                        const std::optional<Nanoseconds>& step) const {
  const Ppm boost = simulator::rest_gain(index_.trace().calibration).boost;
  const Nanoseconds compute = index_.compute_until().back() + pool_.work(members);
  return step && Wide{compute} * kPpm / boost >= *step;
}

}  // namespace stowage::planner
