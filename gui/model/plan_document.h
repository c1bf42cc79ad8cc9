// The document of the window: a trace, a plan, its replay. Every change of the plan is a command on
// an undo stack and starts a replay in the background; views show `current()` and hear `changed`.
// Main thread only; nothing here blocks: files, replays and searches run in JobRunners.
#pragma once

#include <QObject>
#include <QString>
#include <QStringList>
#include <QUndoStack>
#include <optional>
#include <vector>

#include "gui/model/job_runner.h"
#include "gui/model/open_file.h"
#include "gui/model/pinned_rows.h"
#include "gui/model/plan_edits.h"
#include "gui/model/simulated.h"
#include "planner/planner.h"

namespace stowage::gui {

class PlanDocument : public QObject {
  Q_OBJECT
 public:
  explicit PlanDocument(QObject* parent = nullptr);

  // Null while nothing is open. What is seen is always one whole: current()->trace is the trace
  // that current() was replayed on.
  [[nodiscard]] const TracePtr& trace() const { return trace_; }
  [[nodiscard]] const SimulatedPtr& current() const { return current_; }
  // What is painted of current(), and of the recording.
  [[nodiscard]] const StepPicturePtr& planned() const { return planned_; }
  [[nodiscard]] const StepPicturePtr& recorded() const { return recorded_view_; }
  // Nothing is planned and nothing assumed: the recording itself is what to look at. Not so with a
  // GPU: there the CPU allocates far ahead of compute, and a replay shows both on one clock.
  [[nodiscard]] bool is_plain() const;
  // Which of the two pictures that choice shows.
  [[nodiscard]] bool shows_recorded(Shown shown) const {
    return shown == Shown::recorded || (shown == Shown::automatic && is_plain());
  }
  // The plan as last edited; current()->state, or newer while a replay runs.
  [[nodiscard]] const PlanStatePtr& state() const { return state_; }
  // What to compare with: the pinned result, else the one before the last change; null at first.
  [[nodiscard]] const SimulatedPtr& baseline() const { return pinned_ ? pinned_ : previous_; }
  [[nodiscard]] const SimulatedPtr& previous() const { return previous_; }
  [[nodiscard]] bool has_pin() const { return pinned_ != nullptr; }
  // Of a real run; absent unless one was opened. It is of the plan as opened, not of edits.
  [[nodiscard]] const std::optional<RunResult>& measured() const { return measured_; }
  // The last search's answer, for this trace; absent before the first one.
  [[nodiscard]] const std::optional<planner::PlanOutcome>& outcome() const { return outcome_; }
  [[nodiscard]] const QString& file() const { return file_; }  // as opened, for the title and F5
  [[nodiscard]] const QStringList& files() const { return files_; }  // opened with it
  // Where the plan was read from or last saved to; empty = nowhere yet. What is shown is that
  // file's while the undo stack is clean.
  [[nodiscard]] const std::string& plan_file() const { return plan_file_; }

  [[nodiscard]] QUndoStack& undo_stack() { return undo_; }
  [[nodiscard]] JobRunner& loading() { return loading_; }
  [[nodiscard]] JobRunner& simulating() { return simulating_; }
  [[nodiscard]] JobRunner& searching() { return searching_; }

  // Opens any file of ours; what is open stays until the new one is there, and on failure.
  void open(const QString& path);
  // Several at once, see open_files(); `noted` and `failed` follow `opened`.
  void open(const QStringList& paths);
  void open_trace(Trace trace, const QString& path);  // one that is in memory
  void reload();                                      // F5; nothing without a file
  void close();

  // Edits. Nothing happens (false) while there is no replay whose rows could be changed.
  // An empty or unchanging edit is none.
  [[nodiscard]] bool can_edit() const;
  bool set_decision(const std::vector<SavedId>& rows, simulator::Decision decision);
  bool set_decision(const std::vector<SavedId>& rows, const simulator::SavedDecision& decision);
  // These layers run again in backward, and ops make these rows again. What cannot be done so is
  // told by `failed` with its reason when it is replayed, and the edit is taken back; so is any
  // other edit of rows that cannot be replayed.
  bool set_recompute(const std::vector<LayerId>& layers, const std::vector<SavedId>& rows);
  bool set_streaming(const std::vector<StreamingLayer>& layers, bool stream);
  // Of streaming_state_of().
  bool set_state_place(const std::vector<StreamingLayer>& layers, simulator::StatePlace place);
  // Edits with the same `drag` >= 0 undo as one. `text`: as somebody wrote it ("60%"); may be
  // empty.
  bool set_budget(std::optional<Bytes> device, simulator::PeakKind on, int drag = -1,
                  const std::string& text = {});
  // The memory that the plan runs in. The bytes of a budget stay.
  bool set_placement(simulator::PlacementMode placement);
  bool set_host_budget(std::optional<Bytes> host);
  // A plan in other micro-batches opens the step in them, like a file.
  bool set_plan(simulator::Plan plan, const QString& what, const TracePtr& searched = nullptr);
  // An earlier state of this trace's plan, as one undo step; false when it is the one that is
  // there.
  bool return_to(const PlanStatePtr& state, const QString& what);
  // The same as set_plan() for a policy's plan, which knows no budget: those that are set stay, and
  // it has no lower bound.
  bool set_policy_plan(simulator::Plan plan, const QString& what);

  // Rows that find_plan() and ParetoSearch leave as they are then, whatever else changes; none of
  // another trace or of a plan that is opened. An edit, but nothing is replayed. False: they are
  // so.
  [[nodiscard]] const PinnedRows& pinned_rows() const { return pinned_rows_; }
  bool set_pinned_rows(PinnedRows rows);
  // As planner::PlanRequest::pins has them. A trace must be open.
  [[nodiscard]] simulator::Plan pins() const;

  [[nodiscard]] bool is_assumed() const { return recorded_.has_value(); }
  // Another link or device. Not on the undo stack: it is no part of a plan.
  void set_calibration(const Calibration& calibration);
  void restore_calibration();  // the recorded one

  // Plans for `request.budget` in the background (`stop`, `progress` and `pins` are not the
  // caller's), then set_plan(). An answer without a plan within the budget goes to `searched`
  // alone.
  void find_plan(planner::PlanRequest request);
  // The plan of a policy ("torchtune:stash=5") in the background, whatever the budget is.
  void try_policy(const std::string& policy);
  // The best plan so far, now.
  void finish_search() { searching_.finish_early(); }

  // Keeps `current()` as the baseline; null-safe. unpin(): the previous one again.
  void pin();
  void unpin();

  // Writes the plan (atomically) and remembers the file. A trace must be open.
  [[nodiscard]] Status save_plan(const QString& path);

 Q_SIGNALS:
  void opened();   // another trace: every view starts anew. `changed` follows
  void changed();  // current(), baseline() or measured() is another one
  void edited();   // state() is another one; `changed` follows when it is replayed
  void pinned();   // pinned_rows() are other ones
  void searched(const stowage::planner::PlanOutcome& outcome);
  void noted(const QString& text);           // what was opened is not quite what was asked for
  void failed(const stowage::Error& error);  // what was open is as before

 private:
  friend class StateCommand;
  friend class PinCommand;
  void adopt(Opened opened, const QString& path);
  bool push(PlanState state, const QString& what, int drag = -1);
  void open_parts(PlanState state, const QString& what);
  bool push_rows(PlanDecisions decisions, const QString& what);
  [[nodiscard]] const PlanDecisions& rows_now() const;  // can_edit()
  void take_back();
  void set_state(PlanStatePtr state);
  void replay();

  struct OtherMachine {
    Calibration calibration;
    MachineKind machine;
  };

  TracePtr trace_;
  std::optional<Calibration> recorded_;  // while another one is assumed
  std::optional<OtherMachine> wanted_;   // not replayed yet
  int drag_ = -1;                        // of the last edit
  bool keeps_previous_ = false;
  bool is_taking_back_ = false;
  PlanStatePtr state_;
  SimulatedPtr current_;
  SimulatedPtr previous_;
  StepPicturePtr planned_;
  StepPicturePtr recorded_view_;
  SimulatedPtr pinned_;
  PinnedRows pinned_rows_;
  std::optional<RunResult> measured_;
  std::optional<planner::PlanOutcome> outcome_;
  QString file_;
  QStringList files_;
  std::string plan_file_;
  QUndoStack undo_;
  // Last: they wait for their threads ahead of everything else's end.
  JobRunner loading_;
  JobRunner simulating_;
  JobRunner searching_;
};

}  // namespace stowage::gui
