#include "gui/model/job_runner.h"

#include <gtest/gtest.h>

#include <QSemaphore>
#include <QThread>
#include <atomic>
#include <vector>

#include "tests/gui_model/spin.h"

namespace stowage::gui {
namespace {

using stowage::testing::spin_until;

TEST(JobRunner, HandsTheResultToTheThreadThatItLivesOn) {
  JobRunner runner;
  QThread* worked_on = nullptr;
  QThread* done_on = nullptr;
  int result = 0;
  runner.run<int>(
      "seven",
      [&](const JobContext&) {
        worked_on = QThread::currentThread();
        return 7;
      },
      [&](int value) {
        done_on = QThread::currentThread();
        result = value;
      });
  EXPECT_TRUE(runner.busy());
  ASSERT_TRUE(spin_until([&] { return !runner.busy(); }));
  EXPECT_EQ(result, 7);
  EXPECT_EQ(done_on, QThread::currentThread());
  EXPECT_NE(worked_on, QThread::currentThread());
}

TEST(JobRunner, AnOldAnswerNeverReplacesANewerOne) {
  JobRunner runner;
  QSemaphore let_first_go;
  std::atomic<bool> first_returned = false;
  std::vector<int> answers;
  runner.run<int>(
      "first",
      [&](const JobContext&) {
        let_first_go.acquire();
        first_returned = true;
        return 1;
      },
      [&](int value) { answers.push_back(value); });
  runner.run<int>(
      "second", [](const JobContext&) { return 2; }, [&](int value) { answers.push_back(value); });
  ASSERT_TRUE(spin_until([&] { return !runner.busy(); }));
  let_first_go.release();
  // A third job behind it: by its end whatever the first one sent has come in.
  ASSERT_TRUE(spin_until([&] {
    QCoreApplication::processEvents();
    return first_returned.load();
  }));
  runner.run<int>(
      "third", [](const JobContext&) { return 3; }, [&](int value) { answers.push_back(value); });
  ASSERT_TRUE(spin_until([&] { return !runner.busy(); }));
  EXPECT_EQ(answers, (std::vector<int>{2, 3}));
}

TEST(JobRunner, CancelReachesTheJobAndItsResultIsNotHandedOver) {
  JobRunner runner;
  QSemaphore running;
  QSemaphore ended;
  bool handed_over = false;
  int cancelled = 0;
  QObject::connect(&runner, &JobRunner::cancelled, [&] { ++cancelled; });
  runner.run<int>(
      "endless",
      [&](const JobContext& job) {
        running.release();
        while (!job.stop().stop_requested()) QThread::yieldCurrentThread();
        ended.release();
        return 1;
      },
      [&](int) { handed_over = true; });
  running.acquire();
  runner.cancel();
  EXPECT_FALSE(runner.busy());
  EXPECT_EQ(cancelled, 1);
  ended.acquire();  // it heard of it
  runner.run<int>(
      "after", [](const JobContext&) { return 2; }, [](int) {});
  ASSERT_TRUE(spin_until([&] { return !runner.busy(); }));
  EXPECT_FALSE(handed_over);
  runner.cancel();  // nothing runs: nothing happens
  EXPECT_EQ(cancelled, 1);
}

TEST(JobRunner, FinishingEarlyHandsOverWhatThereIs) {
  JobRunner runner;
  QSemaphore running;
  int result = 0;
  runner.run<int>(
      "search",
      [&](const JobContext& job) {
        running.release();
        int best = 40;
        while (!job.stop().stop_requested()) QThread::yieldCurrentThread();
        return best + 2;
      },
      [&](int value) { result = value; });
  running.acquire();
  runner.finish_early();
  ASSERT_TRUE(spin_until([&] { return !runner.busy(); }));
  EXPECT_EQ(result, 42);
}

TEST(JobRunner, ProgressArrivesAheadOfTheEnd) {
  JobRunner runner;
  std::vector<double> fractions;
  QStringList texts;
  QObject::connect(&runner, &JobRunner::progressed, [&](double fraction, const QString& text) {
    fractions.push_back(fraction);
    texts << text;
  });
  runner.run<int>(
      "reports",
      [](const JobContext& job) {
        // Of many reports close together one is passed on.
        for (int i = 0; i < 1000; ++i) job.progress(0.25, "a quarter");
        return 0;
      },
      [](int) {});
  ASSERT_TRUE(spin_until([&] { return !runner.busy(); }));
  ASSERT_FALSE(fractions.empty());
  EXPECT_LT(fractions.size(), 1000U);
  EXPECT_EQ(fractions.front(), 0.25);
  EXPECT_EQ(texts.front(), "a quarter");
}

TEST(JobRunner, AnEndingRunnerWaitsForItsJobs) {
  std::atomic<bool> ended = false;
  QSemaphore running;
  {
    JobRunner runner;
    runner.run<int>(
        "stops late",
        [&](const JobContext& job) {
          running.release();
          while (!job.stop().stop_requested()) QThread::yieldCurrentThread();
          ended = true;
          return 1;
        },
        [](int) { FAIL() << "nobody waits for this"; });
    running.acquire();
  }
  EXPECT_TRUE(ended);
}

}  // namespace
}  // namespace stowage::gui
