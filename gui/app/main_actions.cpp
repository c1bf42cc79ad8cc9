// What the menus of the main window do.
#include <QApplication>
#include <QClipboard>
#include <QPixmap>
#include <QStatusBar>
#include <QTimer>
#include <algorithm>

#include "gui/app/main_window.h"
#include "gui/app/screenshot.h"
#include "gui/model/command_text.h"
#include "gui/widgets/value_texts.h"
#include "planner/budget.h"

namespace stowage::gui {
namespace {

constexpr int kWatchMs = 100;

}  // namespace

simulator::PeakKind MainWindow::counter() const {
  return document_.state() ? document_.state()->plan.budget.on : simulator::PeakKind::active;
}

void MainWindow::plan_for_budget() {
  if (!document_.trace()) {
    return message_->show_note(tr("Open a trace first: a budget is for its step."));
  }
  if (!budget_->take()) return;
  const simulator::PlanBudget& now = document_.state()->plan.budget;
  if (now.device) return find_plan(*now.device, now.device_text);
  budget_->setFocus();
  message_->show_note(
      tr("Say the budget: 36GB, 24GiB or 60%, or drag the line in the memory curve."));
}

void MainWindow::find_plan(Bytes budget, const std::string& text) {
  message_->hide();
  const simulator::PlanBudget& now = document_.state()->plan.budget;
  planner::PlanRequest request;
  request.budget = budget;
  request.budget_text = text;
  request.budget_on = counter();
  request.placement = document_.state()->plan.placement;
  request.host_budget = now.host;
  request.host_budget_text = now.host_text;
  document_.find_plan(std::move(request));
}

void MainWindow::say_outcome(const planner::PlanOutcome& outcome) {
  const Bytes floor = outcome.floor.bytes;
  const QString budget =
      outcome.plan.budget.device ? bytes_text(*outcome.plan.budget.device) : tr("the budget");
  switch (outcome.kind) {
    case planner::PlanKind::planned:
    case planner::PlanKind::fits_already:
      message_->hide();
      return statusBar()->showMessage(outcome.kind == planner::PlanKind::fits_already
                                          ? tr("The step fits into %1 as it is").arg(budget)
                                          : tr("Planned for %1: step %2, lower bound %3")
                                                .arg(budget, time_text(outcome.predicted.step_ns),
                                                     time_text(outcome.lower_bound_step)),
                                      8000);
    case planner::PlanKind::infeasible:
      return message_->show_note(
          tr("No plan keeps %1: the floor is %2, at %3 in %4. The lowest peak of any plan known is "
             "%5.")
              .arg(budget, bytes_text(floor), QString::fromStdString(outcome.floor.op_name),
                   QString::fromStdString(outcome.floor.layer),
                   bytes_text(planner::peak_of(outcome.predicted, outcome.plan.budget.on))));
    case planner::PlanKind::offload_cannot_help:
      return message_->show_note(
          tr("No decision lowers the peak, and it is above %1: the floor is %2.")
              .arg(budget, bytes_text(floor)));
    case planner::PlanKind::policy_over_budget:
    case planner::PlanKind::not_found:
      if (outcome.pinned > 0) {
        return message_->show_note(
            tr("No plan within %1 with what is pinned was found: the tightest needs %2. Unpin some "
               "of it, or give more.")
                .arg(budget, bytes_text(outcome.kept_from)));
      }
      return message_->show_note(
          tr("No plan within %1 was found, and nothing proves that there is none (floor %2).")
              .arg(budget, bytes_text(floor)));
  }
}

// Views keep their jobs as children.
bool MainWindow::views_busy() const {
  const QList<JobRunner*> jobs = findChildren<JobRunner*>();
  return std::any_of(jobs.begin(), jobs.end(), [](const JobRunner* job) { return job->busy(); });
}

bool MainWindow::busy() {
  return document_.loading().busy() || document_.simulating().busy() ||
         document_.searching().busy() || exporting_.busy() || search_->busy() || views_busy();
}

void MainWindow::settle() {
  // Sleeps until something happens (given a time, processEvents() spins); the timer is for what
  // becomes idle without an event.
  QTimer watch;
  watch.start(kWatchMs);
  while (busy()) {
    QApplication::processEvents(QEventLoop::AllEvents | QEventLoop::WaitForMoreEvents);
  }
  QApplication::sendPostedEvents();
  QApplication::processEvents();
}

void MainWindow::copy_command() {
  const SimulatedPtr& current = document_.current();
  if (!current) return message_->show_note(tr("Nothing is open: there is no command for that."));
  const bool saved = document_.undo_stack().isClean();
  copy(command_text(*current, saved ? document_.plan_file() : std::string(),
                    recorded_.value_or(current->trace->trace.calibration),
                    !document_.pinned_rows().empty()));
}

void MainWindow::copy_run_command() {
  const SimulatedPtr& current = document_.current();
  if (!current) return message_->show_note(tr("Nothing is open: there is no command for that."));
  if (!document_.undo_stack().isClean() || document_.plan_file().empty()) {
    return message_->show_note(tr("Save the plan first (Ctrl+S): the command names its file."));
  }
  copy(run_command_text(*current, document_.plan_file()));
}

void MainWindow::copy(const std::string& command) {
  QApplication::clipboard()->setText(QString::fromStdString(command));
  statusBar()->showMessage(tr("Copied: %1").arg(QString::fromStdString(command)), 8000);
}

void MainWindow::export_file(ExportKind kind, const QString& file) {
  const SimulatedPtr current = document_.current();
  if (!current) return message_->show_note(tr("Nothing is open: there is nothing to export."));
  const bool recorded = shown() == document_.recorded();
  exporting_.run<Status>(
      tr("Writing %1").arg(file),
      [current, recorded, kind, path = file.toStdString()](const JobContext&) {
        return export_step(*current, recorded, kind, path);
      },
      [this, file](const Status& written) {
        if (!written) return message_->show_error(written.error());
        statusBar()->showMessage(tr("Wrote %1").arg(file), 5000);
      });
}

void MainWindow::save_picture(const QString& file) {
  const QPixmap picture = grab();
  if (!picture.save(file, "PNG")) {
    return message_->show_error(cannot_write_picture(file));
  }
  statusBar()->showMessage(tr("Wrote %1").arg(file), 5000);
}

}  // namespace stowage::gui
