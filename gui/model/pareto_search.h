// Memory against time: the planner's plans for a number of budgets between the floor and the
// resident peak, and the known policies, computed in the background; points come as they are found.
#pragma once

#include <QObject>
#include <QString>
#include <optional>
#include <vector>

#include "gui/model/job_runner.h"
#include "gui/model/plan_document.h"
#include "planner/planner.h"

namespace stowage::gui {

struct ParetoPoint {
  enum class Kind : std::uint8_t { planned, policy };
  Kind kind = Kind::planned;
  std::string name;  // "planned for 36.0 GB", ".., 3 pinned", "policy save_on_cpu"
  Bytes peak = 0;    // in the counter that was asked for
  Nanoseconds step = 0;
  Nanoseconds stall = 0;
  Bytes host = 0;
  simulator::Plan plan;
  bool best = true;  // no other point has less of one and not more of the other
};

// No plan within `budget` is faster than `step`.
struct BoundPoint {
  Bytes budget = 0;
  Nanoseconds step = 0;
};

// Sets `best` of each. O(n log n).
void mark_best(std::vector<ParetoPoint>& points);

// `count` budgets from the floor to the resident peak, ends included, in an order in which the
// first ones are spread over the whole range. Empty when resident <= floor.
[[nodiscard]] std::vector<Bytes> spread_budgets(Bytes floor, Bytes resident, int count);

class ParetoSearch : public QObject {
  Q_OBJECT
 public:
  static constexpr int kBudgets = 13;

  explicit ParetoSearch(PlanDocument& document, QObject* parent = nullptr);

  // In order of peaks, then times.
  [[nodiscard]] const std::vector<ParetoPoint>& points() const { return points_; }
  [[nodiscard]] const std::vector<BoundPoint>& bounds() const { return bounds_; }  // by budget
  [[nodiscard]] Bytes floor() const { return floor_; }                             // 0 = not known
  [[nodiscard]] simulator::PeakKind counter() const { return on_; }
  [[nodiscard]] JobRunner& job() { return job_; }
  [[nodiscard]] bool busy() const { return job_.busy(); }
  // Every budget was looked at, for the document's trace and machine.
  [[nodiscard]] bool complete() const { return complete_; }
  // It was cancelled, and nothing was begun or cleared since.
  [[nodiscard]] bool stopped() const { return stopped_; }

  // Starts anew. Peaks are in the memory of the plan and the counter of its budget; what is planned
  // has what is pinned now, and bounds are of such plans. Nothing without a trace.
  void start(int budgets = kBudgets);
  // Points that were found stay.
  void cancel();
  // As one undo step; false without that point.
  bool load(std::size_t point);

 Q_SIGNALS:
  void changed();
  void failed(const stowage::Error& error);

 private:
  struct Found;
  void follow();
  void clear();
  void add(Found found);

  PlanDocument& document_;
  TracePtr trace_;  // that the points are of
  simulator::PeakKind on_ = simulator::PeakKind::active;
  simulator::PlacementMode placement_ = simulator::PlacementMode::caching;
  std::vector<ParetoPoint> points_;
  std::vector<BoundPoint> bounds_;
  Bytes floor_ = 0;
  bool complete_ = false;
  bool stopped_ = false;
  std::uint64_t run_ = 0;
  JobRunner job_;  // last: it waits for its thread ahead of everything else's end
};

}  // namespace stowage::gui
