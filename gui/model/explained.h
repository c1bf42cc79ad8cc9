// Why a planned step is as it is: the story of each storage, the reason of each stall, what is
// alive when. Made once a replay in the background and shared by all views that explain.
#pragma once

#include <QObject>
#include <memory>
#include <string>
#include <unordered_map>
#include <vector>

#include "gui/model/job_runner.h"
#include "gui/model/plan_document.h"
#include "gui/model/plan_edits.h"
#include "gui/model/plan_tree.h"
#include "gui/model/prices.h"
#include "gui/model/stall_waits.h"
#include "report/alive.h"
#include "report/stalls.h"
#include "report/storage_story.h"
#include "report/storage_uses.h"

namespace stowage::gui {

// Of a row of the plan tree, in the planned step. Uses of a layer are those of what it saves
// itself: storages that were made in the step and that nothing outside of the layer saves too.
// (What all layers share, such as the angles of rotary embeddings, would give all of them the same
// uses.)
struct RowFigures {
  Nanoseconds first = -1;  // use; -1 = none
  Nanoseconds last = -1;
  Nanoseconds stall = 0;
  void add_uses(const RowFigures& of);
};

struct Explained {
  // `before`: of the replay before it, if any: what does not hang on the plan is shared with it.
  // Cost: O(trace + spans log spans).
  explicit Explained(SimulatedPtr of, const Explained* before = nullptr);
  Explained(const Explained&) = delete;
  Explained& operator=(const Explained&) = delete;

  const SimulatedPtr simulated;
  const report::StorageStories stories;
  const std::vector<report::StallRow> stalls;  // longest first
  const StallWaits waits;
  const std::shared_ptr<const report::AliveIndex> planned;
  const std::shared_ptr<const report::StorageUses> uses;     // of the planned step
  const std::shared_ptr<const report::AliveIndex> recorded;  // nothing moves: the same as planned
  // When each event of the recording is on the device, the step's end behind them: recorded times
  // of a GPU are those of launches, so they are replayed, with nothing moved.
  const std::shared_ptr<const std::vector<Nanoseconds>> device_times;
  const std::shared_ptr<const Prices> prices;
  std::vector<std::int32_t> stall_row;   // by row of ReplayResult::stalls, the row of `stalls`
  std::vector<Nanoseconds> saved_stall;  // by row of Trace::saved: of the offload that serves it
  const std::shared_ptr<const PlanTree> tree;
  std::vector<RowFigures> figures;  // by row of the tree
  // What the lowering has to say of a site, and of everything else under "".
  std::unordered_map<std::string, std::vector<std::string>> notes;

  // Of the planned step, which its rows are of.
  [[nodiscard]] const Trace& trace() const { return simulated->step_trace(); }

 private:
  void add_figures();
  [[nodiscard]] std::vector<RowFigures> figures_of_storages() const;
  [[nodiscard]] std::int32_t parent_of(std::int32_t row) const;
};
using ExplainedPtr = std::shared_ptr<const Explained>;

// Follows a document. Main thread only.
class Explanations : public QObject {
  Q_OBJECT
 public:
  explicit Explanations(PlanDocument& document, QObject* parent = nullptr);

  // Of document.current(), or of the replay before it while `busy()`; null while nothing is open.
  [[nodiscard]] const ExplainedPtr& current() const { return current_; }
  [[nodiscard]] bool busy() const { return job_.busy(); }

 Q_SIGNALS:
  void changed();  // current() is another one

 private:
  void follow();

  PlanDocument& document_;
  ExplainedPtr current_;
  JobRunner job_;  // last: it waits for its thread ahead of everything else's end
};

}  // namespace stowage::gui
