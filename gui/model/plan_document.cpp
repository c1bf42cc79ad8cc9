#include "gui/model/plan_document.h"

#include <QUndoCommand>
#include <cstdlib>
#include <utility>

#include "planner/budget.h"
#include "report/words.h"
#include "simulator/plan/plan_json.h"
#include "simulator/step/plan_structure.h"
#include "simulator/step/unroll.h"
#include "traces/file_io.h"

namespace stowage::gui {
namespace {

// "11 saved tensors"
template <class Row>
QString counted(const std::vector<Row>& rows, const char* one) {
  return QString::fromStdString(report::count_of(static_cast<std::int64_t>(rows.size()), one));
}

// The rules that pins were made of are in no file.
Error of_pins(Error error, bool is_pinned) {
  if (!is_pinned || error.pointer.empty()) return error;
  error.pointer.clear();
  error.message = "what is pinned cannot be kept: " + error.message;
  error.hint = "unpin it";
  return error;
}

// What a search proved was for other budgets.
void forget_bound(PlanState& state) {
  state.plan.lower_bound_step.reset();
  state.plan.gap_ppm.reset();
}

}  // namespace

// From one state of the plan to another: states are small beside the trace, and shared.
class StateCommand : public QUndoCommand {
 public:
  StateCommand(PlanDocument& document, PlanStatePtr after, const QString& text, int drag)
      : QUndoCommand(text),
        document_(document),
        before_(document.state_),
        after_(std::move(after)),
        drag_(drag) {}

  void undo() override {
    document_.keeps_previous_ = false;
    setObsolete(document_.is_taking_back_);  // it is on the stack no more then
    document_.set_state(before_);
  }
  void redo() override {
    // While a value is dragged, the baseline stays what it was when the drag began.
    document_.keeps_previous_ = drag_ >= 0 && drag_ == document_.drag_;
    document_.drag_ = drag_;
    document_.set_state(after_);
  }
  [[nodiscard]] int id() const override { return drag_ < 0 ? -1 : 1; }
  bool mergeWith(const QUndoCommand* other) override {
    const auto* next = static_cast<const StateCommand*>(other);
    if (next->drag_ != drag_) return false;
    after_ = next->after_;
    setText(next->text());
    return true;
  }

 private:
  PlanDocument& document_;
  PlanStatePtr before_;
  PlanStatePtr after_;
  int drag_;
};

class PinCommand : public QUndoCommand {
 public:
  PinCommand(PlanDocument& document, PinnedRows after, const QString& text)
      : QUndoCommand(text),
        document_(document),
        before_(document.pinned_rows_),
        after_(std::move(after)) {}

  void undo() override { put(before_); }
  void redo() override { put(after_); }

 private:
  void put(const PinnedRows& rows) {
    document_.pinned_rows_ = rows;
    Q_EMIT document_.pinned();
  }

  PlanDocument& document_;
  PinnedRows before_;
  PinnedRows after_;
};

PlanDocument::PlanDocument(QObject* parent) : QObject(parent) {}

void PlanDocument::open(const QString& path) {
  open(QStringList{path});
}

void PlanDocument::open(const QStringList& paths) {
  if (paths.isEmpty()) return;
  std::vector<std::string> files;
  for (const QString& path : paths) files.push_back(path.toStdString());
  loading_.run<OpenedFiles>(
      paths.size() == 1 ? tr("Opening %1").arg(paths.front())
                        : tr("Opening %1 files").arg(paths.size()),
      [files = std::move(files), trace = recorded_ ? TracePtr() : trace_](const JobContext& job) {
        return open_files(files, trace, job);
      },
      [this](OpenedFiles opened) {
        files_.clear();
        for (const std::string& file : opened.files) files_ << QString::fromStdString(file);
        if (opened.opened) adopt(std::move(*opened.opened), files_.back());
        if (!opened.note.empty()) Q_EMIT noted(QString::fromStdString(opened.note));
        if (opened.error) Q_EMIT failed(*opened.error);
      });
}

void PlanDocument::open_trace(Trace trace, const QString& path) {
  auto shared = std::make_shared<Trace>(std::move(trace));
  files_.clear();
  loading_.run<Result<Opened>>(
      tr("Opening %1").arg(path),
      [file = path.toStdString(), shared](const JobContext& job) {
        return gui::open_trace(std::move(*shared), file, "", job);
      },
      [this, path](Result<Opened> opened) {
        if (!opened) return Q_EMIT failed(opened.error());
        adopt(std::move(opened).value(), path);
      });
}

void PlanDocument::reload() {
  if (file_.isEmpty()) return;
  // A plan's trace is read again too.
  loading_.run<Result<Opened>>(
      tr("Opening %1").arg(file_),
      [file = file_.toStdString()](const JobContext& job) { return open_file(file, {}, job); },
      [this, path = file_](Result<Opened> opened) {
        if (!opened) return Q_EMIT failed(opened.error());
        adopt(std::move(opened).value(), path);
      });
}

void PlanDocument::close() {
  loading_.cancel();
  simulating_.cancel();
  searching_.cancel();
  trace_.reset();
  recorded_.reset();
  wanted_.reset();
  state_.reset();
  current_.reset();
  planned_.reset();
  recorded_view_.reset();
  previous_.reset();
  pinned_.reset();
  pinned_rows_ = {};
  measured_.reset();
  outcome_.reset();
  file_.clear();
  files_.clear();
  plan_file_.clear();
  undo_.clear();
  Q_EMIT opened();
  Q_EMIT changed();
}

void PlanDocument::adopt(Opened opened, const QString& path) {
  simulating_.cancel();
  searching_.cancel();
  const bool same_trace = trace_ == opened.trace;
  trace_ = std::move(opened.trace);
  current_ = std::move(opened.simulated);
  planned_ = std::move(opened.planned);
  recorded_view_ = std::move(opened.recorded);
  state_ = current_->state;
  measured_ = std::move(opened.measured);
  file_ = path;
  plan_file_ = state_->file;
  undo_.clear();
  pinned_rows_ = {};
  previous_.reset();
  if (!same_trace) {
    recorded_.reset();
    pinned_.reset();
    outcome_.reset();
  }
  wanted_.reset();
  drag_ = -1;
  Q_EMIT this->opened();
  Q_EMIT changed();
}

bool PlanDocument::is_plain() const {
  return current_ && current_->schedule.instructions.empty() && !is_assumed() &&
         trace_->trace.gpu.size() == 0;
}

bool PlanDocument::can_edit() const {
  return state_ && (state_->decisions || (current_ && current_->state == state_));
}

bool PlanDocument::push(PlanState state, const QString& what, int drag) {
  undo_.push(
      new StateCommand(*this, std::make_shared<const PlanState>(std::move(state)), what, drag));
  return true;
}

const PlanDecisions& PlanDocument::rows_now() const {
  return state_->decisions ? *state_->decisions : *current_->decisions;
}

bool PlanDocument::push_rows(PlanDecisions decisions, const QString& what) {
  const PlanDecisions& before = rows_now();
  if (decisions.saved == before.saved && decisions.parameters == before.parameters &&
      decisions.optimizer == before.optimizer && decisions.gradients == before.gradients &&
      decisions.segments == before.segments) {
    return false;
  }
  PlanState state = *state_;
  state.decisions = std::make_shared<const PlanDecisions>(std::move(decisions));
  return push(std::move(state), what);
}

bool PlanDocument::set_decision(const std::vector<SavedId>& rows, simulator::Decision decision) {
  if (!can_edit() || rows.empty()) return false;
  const bool keep = decision == simulator::Decision::keep;
  return push_rows(with_saved(*trace_, rows_now(), rows, decision),
                   (keep ? tr("Keep %1") : tr("Offload %1")).arg(counted(rows, "saved tensor")));
}

bool PlanDocument::set_decision(const std::vector<SavedId>& rows,
                                const simulator::SavedDecision& decision) {
  if (!can_edit() || rows.empty()) return false;
  return push_rows(with_saved(*trace_, rows_now(), rows, decision),
                   tr("Change %1").arg(counted(rows, "saved tensor")));
}

bool PlanDocument::set_recompute(const std::vector<LayerId>& layers,
                                 const std::vector<SavedId>& rows) {
  if (!can_edit() || (layers.empty() && rows.empty())) return false;
  PlanDecisions changed = with_segments(*trace_, rows_now(), layers);
  changed = with_saved(*trace_, changed, rows, simulator::Decision::recompute);
  const QString what =
      layers.empty() ? counted(rows, "saved tensor")
      : rows.empty() ? counted(layers, "layer")
                     : tr("%1 and %2").arg(counted(layers, "layer"), counted(rows, "saved tensor"));
  return push_rows(std::move(changed), tr("Recompute %1").arg(what));
}

bool PlanDocument::set_streaming(const std::vector<StreamingLayer>& layers, bool stream) {
  if (!can_edit() || layers.empty()) return false;
  return push_rows(with_streaming(trace_->trace, rows_now(), layers, stream),
                   (stream ? tr("Stream the parameters of %1") : tr("Keep the parameters of %1"))
                       .arg(counted(layers, "layer")));
}

bool PlanDocument::set_state_place(const std::vector<StreamingLayer>& layers,
                                   simulator::StatePlace place) {
  if (!can_edit() || layers.empty()) return false;
  const QString words = place == simulator::StatePlace::host ? tr("Update %1 on the host")
                        : place == simulator::StatePlace::stream
                            ? tr("Stream the optimizer state of %1")
                            : tr("Keep the optimizer state of %1");
  return push_rows(with_state_place(trace_->trace, rows_now(), layers, place),
                   words.arg(counted(layers, "layer")));
}

bool PlanDocument::set_pinned_rows(PinnedRows rows) {
  if (!trace_ || rows == pinned_rows_) return false;
  const auto before = static_cast<std::int64_t>(pinned_rows_.size());
  const auto change = static_cast<std::int64_t>(rows.size()) - before;
  const QString count = QString::fromStdString(report::count_of(std::abs(change), "decision"));
  undo_.push(new PinCommand(*this, std::move(rows),
                            (change < 0 ? tr("Unpin %1") : tr("Pin %1")).arg(count)));
  return true;
}

bool PlanDocument::set_budget(std::optional<Bytes> device, simulator::PeakKind on, int drag,
                              const std::string& text) {
  if (!state_) return false;
  const simulator::PlanBudget& now = state_->plan.budget;
  if (now.device == device && now.on == on) return false;
  PlanState state = *state_;
  state.plan.budget.device = device;
  state.plan.budget.device_text = text;
  state.plan.budget.on = on;
  state.plan.budget.automatic.reset();
  forget_bound(state);
  if (state.decisions) {
    // What automatic points stay within follows the budget, as in resolve().
    auto decisions = std::make_shared<PlanDecisions>(*state.decisions);
    decisions->budget = device;
    state.decisions = std::move(decisions);
  }
  return push(std::move(state), tr("Change the budget"), drag);
}

bool PlanDocument::set_host_budget(std::optional<Bytes> host) {
  if (!state_ || state_->plan.budget.host == host) return false;
  PlanState state = *state_;
  state.plan.budget.host = host;
  state.plan.budget.host_text.clear();
  forget_bound(state);
  return push(std::move(state), tr("Change the host's budget"));
}

bool PlanDocument::set_placement(simulator::PlacementMode placement) {
  if (!state_ || state_->plan.placement == placement) return false;
  PlanState state = *state_;
  planner::move_to(placement, state.plan);
  forget_bound(state);
  return push(std::move(state), placement == simulator::PlacementMode::planned
                                    ? tr("Run in planned memory")
                                    : tr("Run in PyTorch's allocator"));
}

bool PlanDocument::set_plan(simulator::Plan plan, const QString& what, const TracePtr& searched) {
  if (!trace_) return false;
  PlanState state;
  state.plan = std::move(plan);
  if (!state.plan.target.fingerprint.empty()) {
    state.plan.target.fingerprint = trace_->fingerprint();
  }
  state.proved_on =
      std::make_shared<const Calibration>((searched ? searched : trace_)->trace.calibration);
  if (!simulator::is_in_parts(trace_->trace, simulator::parts_of(state.plan))) {
    open_parts(std::move(state), what);
    return true;
  }
  return push(std::move(state), what);
}

// Another recording of the same file: the views begin anew, and there is nothing to undo.
void PlanDocument::open_parts(PlanState state, const QString& what) {
  loading_.run<Result<Opened>>(
      what,
      [trace = trace_, plan = std::make_shared<const PlanState>(std::move(state))](
          const JobContext& job) { return open_plan(trace, plan, job); },
      [this](Result<Opened> opened) {
        if (!opened) return Q_EMIT failed(opened.error());
        const std::optional<Calibration> recorded = recorded_;
        const std::optional<planner::PlanOutcome> outcome = outcome_;
        adopt(std::move(opened).value(), file_);
        recorded_ = recorded;
        outcome_ = outcome;
      });
}

bool PlanDocument::set_policy_plan(simulator::Plan plan, const QString& what) {
  if (!state_) return false;
  simulator::PlanBudget budget = state_->plan.budget;
  budget.automatic = plan.budget.automatic;
  plan.budget = std::move(budget);
  plan.placement = state_->plan.placement;
  plan.lower_bound_step.reset();
  plan.gap_ppm.reset();
  return set_plan(std::move(plan), what);
}

bool PlanDocument::return_to(const PlanStatePtr& state, const QString& what) {
  if (!trace_ || state == state_) return false;
  return push(*state, what);
}

void PlanDocument::set_state(PlanStatePtr state) {
  state_ = std::move(state);
  Q_EMIT edited();
  replay();
}

void PlanDocument::replay() {
  struct Answer {
    TracePtr trace;
    Result<SimulatedPtr> simulated;
    StepPicturePtr view;
  };
  simulating_.run<Answer>(
      wanted_ ? tr("Replaying on another machine") : tr("Replaying"),
      [trace = trace_, recorded = recorded_view_, wanted = wanted_, state = state_,
       before = current_](const JobContext& job) {
        const TracePtr on =
            wanted ? on_machine(*trace, wanted->calibration, wanted->machine) : trace;
        Answer answer{on, simulate(on, state, job.stop(), before), nullptr};
        if (answer.simulated) answer.view = planned_view(**answer.simulated, recorded);
        return answer;
      },
      [this, keeps_previous = keeps_previous_, state = state_](Answer answer) {
        if (!answer.simulated) {
          if (state_ == state) take_back();
          return Q_EMIT failed(answer.simulated.error());
        }
        if (!keeps_previous) previous_ = current_;
        if (wanted_) outcome_.reset();  // it was about another machine
        wanted_.reset();
        trace_ = std::move(answer.trace);
        current_ = std::move(answer.simulated).value();
        planned_ = std::move(answer.view);
        // The bytes of a budget in percent are known now.
        if (state_ == state) state_ = current_->state;
        Q_EMIT changed();
      });
}

// An edit of rows that cannot be replayed: the plan is what it was ahead of it.
void PlanDocument::take_back() {
  const bool is_replayed = current_ && current_->state == state_;
  if (!state_->decisions || is_replayed || !undo_.canUndo()) return;
  is_taking_back_ = true;
  undo_.undo();
  is_taking_back_ = false;
}

void PlanDocument::set_calibration(const Calibration& calibration) {
  if (!trace_) return;
  if (!recorded_) recorded_ = trace_->trace.calibration;
  searching_.cancel();
  wanted_ = OtherMachine{calibration, MachineKind::assumed};
  keeps_previous_ = false;
  replay();
}

void PlanDocument::restore_calibration() {
  if (!recorded_) return;
  searching_.cancel();
  wanted_ = OtherMachine{*recorded_, MachineKind::recorded};
  recorded_.reset();
  keeps_previous_ = false;
  replay();
}

simulator::Plan PlanDocument::pins() const {
  const auto& decisions = state_->decisions ? state_->decisions : current_->decisions;
  return rules_of(*trace_, *decisions, pinned_rows_);
}

void PlanDocument::find_plan(planner::PlanRequest request) {
  if (!trace_) return;
  request.pins = pins();
  const QString what = request.budget_text.empty()
                           ? tr("Plan")
                           : tr("Plan for %1").arg(QString::fromStdString(request.budget_text));
  searching_.run<Result<planner::PlanOutcome>>(
      what,
      [trace = trace_, request = std::move(request)](const JobContext& job) mutable {
        request.stop = job.stop();
        request.progress = [&job](const planner::Progress& progress) {
          job.progress(progress.max_evaluations > 0
                           ? static_cast<double>(progress.evaluations) /
                                 static_cast<double>(progress.max_evaluations)
                           : -1,
                       PlanDocument::tr("%1 plans tried").arg(progress.evaluations));
        };
        return planner::make_plan(trace->whole ? trace->whole->index : trace->index, request);
      },
      [this, what, trace = trace_,
       is_pinned = !pinned_rows_.empty()](Result<planner::PlanOutcome> outcome) {
        if (!outcome) return Q_EMIT failed(of_pins(outcome.error(), is_pinned));
        outcome_ = std::move(outcome).value();
        if (outcome_->feasible()) set_plan(outcome_->plan, what, trace);
        Q_EMIT searched(*outcome_);
      });
}

void PlanDocument::try_policy(const std::string& policy) {
  if (!trace_) return;
  const QString what = tr("Policy %1").arg(QString::fromStdString(policy));
  searching_.run<Result<planner::PlanOutcome>>(
      what,
      [trace = trace_, policy, placement = state_->plan.placement](const JobContext& job) {
        planner::PlanRequest request;
        request.placement = placement;
        request.policy = policy;
        request.stop = job.stop();
        return planner::make_plan(trace->index, request);
      },
      [this, what](Result<planner::PlanOutcome> outcome) {
        if (!outcome) return Q_EMIT failed(outcome.error());
        set_policy_plan(std::move(outcome->plan), what);
      });
}

void PlanDocument::pin() {
  pinned_ = current_;
  Q_EMIT changed();
}

void PlanDocument::unpin() {
  pinned_.reset();
  Q_EMIT changed();
}

Status PlanDocument::save_plan(const QString& path) {
  if (!current_) return Error{ErrorCode::usage, "there is no plan to save", "", "", "open a trace"};
  const std::string file = path.toStdString();
  const Status written =
      write_file(file, simulator::plan_to_json(plan_for_writing(*current_, file)));
  if (!written) return written;
  plan_file_ = file;
  undo_.setClean();
  return written;
}

}  // namespace stowage::gui
