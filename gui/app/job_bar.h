// The running job in the status bar: what, how far, and Cancel. One that is done within 150 ms is
// not shown. Of several that run the first in order of follow() is: the one that a person waits for
// is followed first. Main thread only; nothing here waits for a job.
#pragma once

#include <QElapsedTimer>
#include <QLabel>
#include <QProgressBar>
#include <QTimer>
#include <QToolButton>
#include <QWidget>
#include <vector>

#include "gui/model/job_runner.h"

namespace stowage::gui {

class JobBar : public QWidget {
  Q_OBJECT
 public:
  explicit JobBar(QWidget* parent = nullptr);
  // Shows this runner's jobs from now on. It is not owned; one that goes is followed no more.
  void follow(JobRunner& runner);

  // Cancels the first runner that is busy, shown or not yet. What the job found so far is dropped
  // (JobRunner::finish_early() would keep it).
  void cancel();

 Q_SIGNALS:
  void cancelled(const QString& title);  // by cancel() or the button; empty: nothing was busy

 private:
  // Shows the first busy runner, or hides; waits while `patience_` runs.
  void look();
  // `fraction` in 0 ... 1, below 0 = not known; `text` may be empty.
  void show_progress(double fraction, const QString& text);

  std::vector<JobRunner*> runners_;  // in order of follow()
  JobRunner* shown_ = nullptr;       // null: nothing is shown
  QLabel* title_;
  QProgressBar* bar_;
  QToolButton* cancel_;
  QTimer patience_;  // from the start of a job until it is shown
};

}  // namespace stowage::gui
