#include "gui/model/job_runner.h"

#include <QElapsedTimer>
#include <QMetaObject>

namespace stowage::gui {
namespace {

constexpr int kReportMs = 30;
// A job that replaces another one starts at once, though that one may take its time to stop.
constexpr int kThreads = 3;

}  // namespace

JobRunner::JobRunner(QObject* parent) : QObject(parent) {
  pool_.setMaxThreadCount(kThreads);
}

JobRunner::~JobRunner() {
  ++generation_;
  stop_.request_stop();
  pool_.clear();
  pool_.waitForDone();
}

void JobRunner::start(const QString& title, std::function<Deliver(const JobContext&)> job) {
  stop_.request_stop();
  // Replaced before they began.
  pool_.clear();
  stop_ = std::stop_source();
  const std::uint64_t mine = ++generation_;
  busy_ = true;
  title_ = title;
  Q_EMIT started(title);
  pool_.start([this, mine, stop = stop_.get_token(), job = std::move(job)]() mutable {
    QElapsedTimer since;
    bool reported = false;
    const JobContext context(stop, [&, this](double fraction, const QString& text) {
      if (stop.stop_requested() || (reported && since.elapsed() < kReportMs)) return;
      reported = true;
      since.start();
      QMetaObject::invokeMethod(
          this,
          [this, mine, fraction, text] {
            if (mine == generation_) Q_EMIT progressed(fraction, text);
          },
          Qt::QueuedConnection);
    });
    Deliver deliver = job(context);
    job = nullptr;  // what it holds goes on this thread, not on the window's
    QMetaObject::invokeMethod(
        this,
        [this, mine, deliver = std::move(deliver)] {
          if (mine != generation_) return;
          busy_ = false;
          deliver();
          Q_EMIT finished();
        },
        Qt::QueuedConnection);
  });
}

void JobRunner::cancel() {
  if (!busy_) return;
  stop_.request_stop();
  pool_.clear();
  ++generation_;
  busy_ = false;
  Q_EMIT cancelled();
}

}  // namespace stowage::gui
