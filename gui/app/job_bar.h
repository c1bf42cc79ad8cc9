// The running job in the status bar: what, how far, and Cancel. Short jobs are not shown.
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
  void follow(JobRunner& runner);

  // Cancels whatever is shown, or runs: the first runner that is busy.
  void cancel();

 private:
  void look();
  void show_progress(double fraction, const QString& text);

  std::vector<JobRunner*> runners_;
  JobRunner* shown_ = nullptr;
  QLabel* title_;
  QProgressBar* bar_;
  QToolButton* cancel_;
  QTimer patience_;
};

}  // namespace stowage::gui
