// Work behind the window: one thing at a time, the newest wins. A job runs on a thread of its own;
// its result is handed over on the runner's thread, unless the job was cancelled or another one was
// started since: a generation number decides, so a late answer never replaces a newer one.
//
//   runner.run<Plan>(tr("Planning"), [..](const JobContext& job) { .. return plan; },
//                    [this](Plan plan) { show(plan); });
//
// `work` sees only what it captured by value or by shared pointer: the document may have moved on.
#pragma once

#include <QObject>
#include <QString>
#include <QThreadPool>
#include <cstdint>
#include <functional>
#include <memory>
#include <stop_token>
#include <utility>

namespace stowage::gui {

// What a job knows of the one who waits for it. Thread-safe, cheap to copy.
class JobContext {
 public:
  using Report = std::function<void(double, const QString&)>;
  JobContext(std::stop_token stop, Report report)
      : stop_(std::move(stop)), report_(std::move(report)) {}

  [[nodiscard]] const std::stop_token& stop() const { return stop_; }
  // `fraction` in 0 ... 1, below 0 = not known. May be called often: the runner passes on at most
  // one in 30 ms.
  void progress(double fraction, const QString& text) const { report_(fraction, text); }

 private:
  std::stop_token stop_;
  Report report_;
};

class JobRunner : public QObject {
  Q_OBJECT
 public:
  explicit JobRunner(QObject* parent = nullptr);
  // Asks the running jobs to stop and waits for them; nothing is handed over any more.
  ~JobRunner() override;

  // Stops what runs, then runs `work(JobContext)` -> T and hands its result to `done(T)`. A job
  // that does not look at its stop token goes on without anybody waiting for it.
  template <class T, class Work, class Done>
  void run(const QString& title, Work work, Done done) {
    start(title, [work = std::move(work), done = std::move(done)](const JobContext& job) mutable {
      auto result = std::make_shared<T>(work(job));
      return std::function<void()>(
          [result = std::move(result), done = std::move(done)] { done(std::move(*result)); });
    });
  }

  // The running job's result is not wanted any more. Emits `cancelled` if there was one.
  void cancel();
  // Asks the job to come to an end; its result is still handed over.
  void finish_early() { stop_.request_stop(); }
  [[nodiscard]] bool busy() const { return busy_; }
  [[nodiscard]] const QString& title() const { return title_; }

 Q_SIGNALS:
  void started(const QString& title);
  void progressed(double fraction, const QString& text);
  void finished();   // behind `done`
  void cancelled();  // by cancel(); a job that replaces another one gives `started` alone

 private:
  using Deliver = std::function<void()>;
  void start(const QString& title, std::function<Deliver(const JobContext&)> job);

  QThreadPool pool_;
  std::stop_source stop_;
  std::uint64_t generation_ = 0;
  bool busy_ = false;
  QString title_;
};

}  // namespace stowage::gui
