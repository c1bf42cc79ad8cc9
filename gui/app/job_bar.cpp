#include "gui/app/job_bar.h"

#include <QHBoxLayout>
#include <algorithm>

namespace stowage::gui {
namespace {

constexpr int kPatienceMs = 150;
constexpr int kParts = 1000;

}  // namespace

JobBar::JobBar(QWidget* parent)
    : QWidget(parent),
      title_(new QLabel(this)),
      bar_(new QProgressBar(this)),
      cancel_(new QToolButton(this)) {
  setObjectName(QStringLiteral("jobs"));
  auto* layout = new QHBoxLayout(this);
  layout->setContentsMargins(0, 0, 0, 0);
  layout->addWidget(title_);
  layout->addWidget(bar_);
  layout->addWidget(cancel_);
  title_->setAccessibleName(tr("Running job"));
  bar_->setAccessibleName(tr("Progress of the running job"));
  bar_->setToolTip(tr("Progress of what runs behind the window"));
  bar_->setFixedWidth(140);
  bar_->setTextVisible(true);
  cancel_->setText(tr("Cancel"));
  cancel_->setToolTip(tr("Stop it; what is shown stays as it is"));
  cancel_->setAccessibleName(tr("Cancel the running job"));
  connect(cancel_, &QToolButton::clicked, this, &JobBar::cancel);
  patience_.setSingleShot(true);
  patience_.setInterval(kPatienceMs);
  connect(&patience_, &QTimer::timeout, this, &JobBar::look);
  hide();
}

void JobBar::follow(JobRunner& runner) {
  runners_.push_back(&runner);
  connect(&runner, &JobRunner::started, this, [this] {
    if (isHidden() && !patience_.isActive()) patience_.start();
  });
  connect(&runner, &JobRunner::progressed, this,
          [this, &runner](double fraction, const QString& text) {
            if (shown_ == &runner) show_progress(fraction, text);
          });
  connect(&runner, &JobRunner::finished, this, &JobBar::look);
  connect(&runner, &JobRunner::cancelled, this, &JobBar::look);
  connect(&runner, &QObject::destroyed, this, [this, gone = &runner] {
    runners_.erase(std::remove(runners_.begin(), runners_.end(), gone), runners_.end());
    if (shown_ == gone) look();
  });
}

void JobBar::look() {
  if (patience_.isActive()) return;
  const auto busy = std::find_if(runners_.begin(), runners_.end(),
                                 [](const JobRunner* runner) { return runner->busy(); });
  if (busy == runners_.end()) {
    shown_ = nullptr;
    return hide();
  }
  if (shown_ != *busy) {
    shown_ = *busy;
    title_->setText(fontMetrics().elidedText(shown_->title(), Qt::ElideMiddle, 360));
    show_progress(-1, {});
  }
  show();
}

void JobBar::show_progress(double fraction, const QString& text) {
  // Without an end in sight the bar moves to and fro.
  bar_->setRange(0, fraction < 0 ? 0 : kParts);
  bar_->setValue(static_cast<int>(fraction * kParts));
  bar_->setToolTip(text);
  if (shown_ != nullptr && !text.isEmpty()) {
    title_->setText(
        fontMetrics().elidedText(tr("%1: %2").arg(shown_->title(), text), Qt::ElideMiddle, 360));
  }
}

void JobBar::cancel() {
  const auto busy = std::find_if(runners_.begin(), runners_.end(),
                                 [](const JobRunner* runner) { return runner->busy(); });
  const QString title = busy == runners_.end() ? QString() : (*busy)->title();
  if (busy != runners_.end()) (*busy)->cancel();
  Q_EMIT cancelled(title);
}

}  // namespace stowage::gui
