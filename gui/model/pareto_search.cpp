#include "gui/model/pareto_search.h"

#include <algorithm>
#include <tuple>
#include <utility>

#include "planner/budget.h"
#include "planner/footprint.h"
#include "traces/size_text.h"

namespace stowage::gui {

namespace {

const TraceData& whole_of(const TraceData& data) {
  return data.whole ? *data.whole : data;
}

// The lowest of the step at once and in micro-batches.
Bytes floor_of(const TraceData& whole, simulator::PeakKind on) {
  const auto floor = [on](const simulator::StepIndex& index) {
    return planner::memory_floor(planner::Footprints(index, on, planner::Allowed{})).bytes;
  };
  Bytes least = floor(whole.index);
  for (const std::shared_ptr<const Trace>& part : whole.trace.divided) {
    least = std::min(least, floor(simulator::StepIndex(*part)));
  }
  return least;
}

ParetoPoint point_of(planner::PlanOutcome outcome, simulator::PeakKind on, std::string name,
                     ParetoPoint::Kind kind) {
  return {kind,
          std::move(name),
          planner::peak_of(outcome.predicted, on),
          outcome.predicted.step_ns,
          outcome.predicted.stall_ns,
          outcome.predicted.host_bytes,
          std::move(outcome.plan),
          true};
}

}  // namespace

// What one call of the planner gave.
struct ParetoSearch::Found {
  std::uint64_t run = 0;
  std::optional<ParetoPoint> point;
  std::optional<BoundPoint> bound;
  Bytes floor = 0;
};

void mark_best(std::vector<ParetoPoint>& points) {
  std::sort(points.begin(), points.end(), [](const ParetoPoint& a, const ParetoPoint& b) {
    return std::tie(a.peak, a.step, a.kind, a.name) < std::tie(b.peak, b.step, b.kind, b.name);
  });
  std::optional<Nanoseconds> fastest;
  for (ParetoPoint& point : points) {
    point.best = !fastest || point.step < *fastest;
    if (point.best) fastest = point.step;
  }
}

std::vector<Bytes> spread_budgets(Bytes floor, Bytes resident, int count) {
  std::vector<Bytes> budgets;
  if (resident <= floor || count < 2) return budgets;
  const auto last = static_cast<Wide>(count - 1);
  const auto budget = [&](int i) {
    return floor + static_cast<Bytes>(static_cast<Wide>(resident - floor) * i / last);
  };
  budgets = {budget(0), budget(count - 1)};
  // Halves, quarters, eighths ..: each step twice as fine.
  std::vector<bool> taken(static_cast<std::size_t>(count), false);
  taken.front() = taken.back() = true;
  for (int parts = 2; budgets.size() < static_cast<std::size_t>(count); parts *= 2) {
    for (int part = 1; part < parts; ++part) {
      const int i = part * (count - 1) / parts;
      if (taken[static_cast<std::size_t>(i)]) continue;
      taken[static_cast<std::size_t>(i)] = true;
      budgets.push_back(budget(i));
    }
  }
  return budgets;
}

ParetoSearch::ParetoSearch(PlanDocument& document, QObject* parent)
    : QObject(parent), document_(document), job_(this) {
  connect(&document_, &PlanDocument::changed, this, &ParetoSearch::follow);
  connect(&job_, &JobRunner::finished, this, &ParetoSearch::changed);
  // Whoever cancels the job: what it handed over last is not wanted any more.
  connect(&job_, &JobRunner::cancelled, this, [this] {
    ++run_;
    stopped_ = true;
    Q_EMIT changed();
  });
}

void ParetoSearch::follow() {
  const PlanStatePtr& state = document_.state();
  const bool other_counter =
      state && (state->plan.budget.on != on_ || state->plan.placement != placement_);
  const bool other_file =
      trace_ && (!document_.trace() || &whole_of(*document_.trace()) != &whole_of(*trace_));
  if (trace_ && (other_file || other_counter)) clear();
}

void ParetoSearch::clear() {
  job_.cancel();
  ++run_;
  trace_.reset();
  points_.clear();
  bounds_.clear();
  floor_ = 0;
  complete_ = false;
  stopped_ = false;
  Q_EMIT changed();
}

void ParetoSearch::cancel() {
  job_.cancel();
}

void ParetoSearch::start(int budgets) {
  if (!document_.trace()) return;
  clear();
  trace_ = document_.trace();
  on_ = document_.state()->plan.budget.on;
  placement_ = document_.state()->plan.placement;
  const auto work = [this, trace = trace_, on = on_, placement = placement_, budgets, run = run_,
                     pins = document_.pins(),
                     pinned = document_.pinned_rows().size()](const JobContext& job) {
    // This object waits for the job before it goes.
    const auto hand_over = [this, run](Found found) {
      found.run = run;
      QMetaObject::invokeMethod(
          this, [this, found = std::move(found)] { add(found); }, Qt::QueuedConnection);
    };
    const Bytes resident = planner::peak_of(trace->at_once(placement), on);
    const TraceData& whole = whole_of(*trace);
    const Bytes floor = floor_of(whole, on);
    hand_over(Found{0, {}, BoundPoint{resident, trace->at_once(placement).step_ns}, floor});
    const std::vector<Bytes> all = spread_budgets(floor, resident, budgets);
    const auto& policies = planner::policies();
    const double steps = static_cast<double>(all.size() + policies.size());
    double done = 0;
    const auto next = [&](const std::string& what) {
      job.progress(done++ / steps, QString::fromStdString(what));
      return !job.stop().stop_requested();
    };
    planner::PlanRequest request;
    request.budget_on = on;
    request.placement = placement;
    request.stop = job.stop();
    for (const planner::PolicyInfo& policy : policies) {
      if (policy.name == "auto") continue;
      if (!next("policy " + policy.name)) return Status(Unit{});
      request.policy = policy.name;
      auto outcome = planner::make_plan(trace->index, request);
      // Not every recording has layers that can run again, or was made in micro-batches.
      if (!outcome && (policy.recomputes || policy.divides == planner::Divides::always)) continue;
      if (!outcome) return Status(outcome.error());
      hand_over(Found{0,
                      point_of(std::move(outcome).value(), on, "policy " + policy.name,
                               ParetoPoint::Kind::policy),
                      {},
                      0});
    }
    request.policy = "auto";
    request.pins = pins;
    const std::string with_pins = pinned == 0 ? "" : ", " + std::to_string(pinned) + " pinned";
    for (const Bytes budget : all) {
      if (!next("budget " + format_bytes(budget))) return Status(Unit{});
      request.budget = budget;
      auto outcome = planner::make_plan(whole.index, request);
      if (!outcome) return Status(outcome.error());
      if (outcome->search.stopped) return Status(Unit{});
      Found found;
      if (outcome->lower_bound_step > 0) found.bound = {budget, outcome->lower_bound_step};
      if (outcome->feasible()) {
        found.point =
            point_of(std::move(outcome).value(), on,
                     "planned for " + format_bytes(budget) + with_pins, ParetoPoint::Kind::planned);
      }
      hand_over(std::move(found));
    }
    return Status(Unit{});
  };
  job_.run<Status>(tr("Computing memory against time"), work, [this](const Status& status) {
    complete_ = status.ok();
    if (!status) Q_EMIT failed(status.error());
  });
}

void ParetoSearch::add(Found found) {
  if (found.run != run_) return;
  if (found.floor > 0) floor_ = found.floor;
  if (found.point) {
    points_.push_back(std::move(*found.point));
    mark_best(points_);
  }
  if (found.bound) {
    const auto at = std::lower_bound(
        bounds_.begin(), bounds_.end(), *found.bound,
        [](const BoundPoint& a, const BoundPoint& b) { return a.budget < b.budget; });
    bounds_.insert(at, *found.bound);
  }
  Q_EMIT changed();
}

bool ParetoSearch::load(std::size_t point) {
  if (point >= points_.size()) return false;
  const ParetoPoint& at = points_[point];
  const QString name = QString::fromStdString(at.name);
  return at.kind == ParetoPoint::Kind::policy ? document_.set_policy_plan(at.plan, name)
                                              : document_.set_plan(at.plan, name, trace_);
}

}  // namespace stowage::gui
