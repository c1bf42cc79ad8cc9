// Measures the desktop program against its goals: a frame at a million events while zooming and
// panning, from opening to the first picture, bytes an event, from an edit to the repainted result.
#include <malloc.h>
#include <unistd.h>

#include <QApplication>
#include <QEventLoop>
#include <QStandardPaths>
#include <QTemporaryDir>
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <ctime>
#include <fstream>
#include <functional>
#include <random>
#include <vector>

#include "gui/app/main_window.h"
#include "tests/traces/synthetic_trace.h"
#include "traces/trace_file.h"

namespace stowage {
namespace {

double ms_of(const std::function<void()>& work) {
  const auto begin = std::chrono::steady_clock::now();
  work();
  return std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - begin)
      .count();
}

// The window's thread alone: a busy machine changes nothing.
double cpu_ms() {
  timespec now{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
  return static_cast<double>(now.tv_sec) * 1e3 + static_cast<double>(now.tv_nsec) / 1e6;
}

double percentile(std::vector<double> values, double share) {
  std::sort(values.begin(), values.end());
  const double at = share * static_cast<double>(values.size() - 1);
  return values[static_cast<std::size_t>(at + 0.5)];
}

double resident_bytes() {
  malloc_trim(0);
  std::ifstream statm("/proc/self/statm");
  double pages = 0;
  double resident = 0;
  statm >> pages >> resident;
  return resident * static_cast<double>(sysconf(_SC_PAGESIZE));
}

void row(const char* what, double value, const char* unit, const char* goal) {
  std::printf("%-52s %10.2f %-12s goal %s\n", what, value, unit, goal);
  std::fflush(stdout);
}

// Both plots, made anew, as they share a 1920 x 1080 screen.
// CPU time in ms of each.
std::pair<double, double> paint(QWidget& timeline, QWidget& memory, QImage& image) {
  const double begin = cpu_ms();
  timeline.render(&image, {}, {}, QWidget::DrawChildren);
  const double between = cpu_ms();
  memory.render(&image, {0, 540}, {}, QWidget::DrawChildren);
  return {between - begin, cpu_ms() - between};
}

constexpr std::size_t kFrames = 600;
struct Series {
  std::vector<double> lanes;
  std::vector<double> curve;
};

Series one_series(gui::MainWindow& window) {
  gui::TimelinePlot timeline(window.state());
  gui::MemoryPlot memory(window.state());
  for (gui::PlotView* plot :
       {static_cast<gui::PlotView*>(&timeline), static_cast<gui::PlotView*>(&memory)}) {
    plot->setAttribute(Qt::WA_DontShowOnScreen);
    plot->resize(1920, 540);
    plot->show_step(window.document().trace(), window.document().planned());
    plot->show();
  }
  QImage image(1920, 1080, QImage::Format_RGB32);
  std::mt19937 random(1);
  std::uniform_real_distribution<double> place(0, 1800);
  gui::TimeAxis axis(window.document().planned()->end, 1800);
  paint(timeline, memory, image);
  Series series;
  for (std::size_t i = 0; i < kFrames; ++i) {
    // In, along, out, along: every zoom between the whole step and single ops.
    if (i % 60 == 0) axis.fit();
    if (i % 60 < 40) {
      axis.zoom(i % 40 < 25 ? 1.3 : 1 / 1.3, place(random));
    } else {
      axis.pan(place(random) / 5);
    }
    window.state().set_axis(axis);
    const auto [first, second] = paint(timeline, memory, image);
    series.lanes.push_back(first);
    series.curve.push_back(second);
  }
  return series;
}

void frames() {
  const double nothing = resident_bytes();
  {
    const auto data = std::make_shared<const gui::TraceData>(
        testing::SyntheticTrace(98'000, 100).trace(), "", "");
    row("memory: trace and index alone",
        (resident_bytes() - nothing) / static_cast<double>(data->trace.events.size()),
        "bytes/event", "");
  }
  gui::MainWindow window;
  const double before = resident_bytes();
  window.document().open_trace(testing::SyntheticTrace(98'000, 100).trace(), "million");
  window.settle();
  const auto events = static_cast<double>(window.document().trace()->trace.events.size());
  row("memory: trace, index, replay and views", (resident_bytes() - before) / events, "bytes/event",
      "<= 200");
  // The same frames three times, each with views that have painted nothing yet: what else the
  // machine did is in one of the times, what a frame costs is in all of them.
  std::vector<double> times;
  std::vector<double> lanes;
  std::vector<double> curve;
  std::vector<double> least(kFrames, 1e9);
  for (int i = 0; i < 3; ++i) {
    Series series = one_series(window);
    for (std::size_t f = 0; f < kFrames; ++f) {
      least[f] = std::min(least[f], series.lanes[f] + series.curve[f]);
      times.push_back(series.lanes[f] + series.curve[f]);
    }
    lanes.insert(lanes.end(), series.lanes.begin(), series.lanes.end());
    curve.insert(curve.end(), series.curve.begin(), series.curve.end());
  }
  row("  of it the lanes: p99", percentile(lanes, 0.99), "ms CPU", "");
  row("  of it the memory curve: p99", percentile(curve, 0.99), "ms CPU", "");
  row("frame at 10^6 events, 1920x1080: median", percentile(times, 0.5), "ms CPU", "");
  row("frame at 10^6 events, 1920x1080: p99", percentile(times, 0.99), "ms CPU", "<= 8");
  row("  of the least of 3 for each frame: p99", percentile(least, 0.99), "ms CPU", "<= 8");
  // Nothing is shared now but what hangs on the trace alone, and the step before is there too.
  std::vector<SavedId> half;
  for (std::size_t i = 0; i < window.document().trace()->trace.saved.size(); i += 2) {
    half.emplace_back(i);
  }
  window.document().set_decision(half, simulator::Decision::offload);
  window.settle();
  row("memory: after every second saved tensor is offloaded", (resident_bytes() - before) / events,
      "bytes/event", "");
}

// All threads of the program: what the wall clock would show were there one free processor.
double process_cpu_ms() {
  timespec now{};
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
  return static_cast<double>(now.tv_sec) * 1e3 + static_cast<double>(now.tv_nsec) / 1e6;
}

void open_once(const QString& file, std::vector<double>& picture, std::vector<double>& all,
               std::vector<double>& cpu) {
  gui::MainWindow window;
  window.resize(1920, 1080);
  window.setAttribute(Qt::WA_DontShowOnScreen);
  window.show();
  window.settle();
  const double cpu_begin = process_cpu_ms();
  const double first = ms_of([&] {
    window.open_files({file});
    QEventLoop loop;
    QObject::connect(&window.document().loading(), &gui::JobRunner::finished, &loop,
                     &QEventLoop::quit);
    loop.exec();
    window.grab();
  });
  cpu.push_back((process_cpu_ms() - cpu_begin) / 1e3);
  picture.push_back(first / 1e3);
  all.push_back((first + ms_of([&] { window.settle(); })) / 1e3);
}

void opening() {
  const QTemporaryDir folder;
  for (const char* name : {"million.trace.json", "million.trace.json.gz"}) {
    const QString file = folder.filePath(QLatin1String(name));
    if (!save_trace(file.toStdString(), testing::SyntheticTrace(98'000, 100).trace())) return;
    std::vector<double> picture;
    std::vector<double> all;
    std::vector<double> cpu;
    for (int i = 0; i < 5; ++i) open_once(file, picture, all, cpu);
    std::printf("%s, the best of 5\n", name);
    row("  opening 10^6 events to the first picture", percentile(picture, 0), "s", "<= 2");
    row("  to the last explanation", percentile(all, 0), "s", "");
    row("  first picture: all threads", percentile(cpu, 0), "s CPU", "");
  }
}

// Counts how often a widget paints itself.
class Painted : public QObject {
 public:
  explicit Painted(QWidget& of) { of.installEventFilter(this); }
  int times = 0;

 protected:
  bool eventFilter(QObject*, QEvent* event) override {
    if (event->type() == QEvent::Paint) ++times;
    return false;
  }
};

// From the edit to the window in which everything of it is painted (plots, tree, details), for each
// third saved tensor of the sample, one after the other. All of it begins with the file opened
// anew.
struct Edits {
  std::vector<double> wall;  // ms
  std::vector<double> cpu;   // ms of all threads
  std::vector<double> yard;  // ms of yardstick(), behind each edit
};

// What takes about as long as an edit and does nothing but multiply: its p99 is the machine's own.
double yardstick() {
  static volatile double factor = 1.0000001;
  constexpr int kTimes = 8'000'000;
  double product = 1;
  const double ms = ms_of([&] {
    for (int i = 0; i < kTimes; ++i) product *= factor;
  });
  if (product <= 1) std::puts("the yardstick did nothing");
  return ms;
}

Edits edit_series(gui::MainWindow& window) {
  window.open_files({QStringLiteral(STOWAGE_SOURCE_DIR
                                    "/traces/samples/llama3-8b-l9-fp32-math-h200.trace.json.gz")});
  window.settle();
  const std::size_t saved = window.document().trace()->trace.saved.size();
  Painted timeline(window.timeline());
  Painted memory(window.memory());
  Edits series;
  for (std::size_t i = 0; i < saved; i += 3) {
    timeline.times = memory.times = 0;
    const double cpu_begin = process_cpu_ms();
    series.wall.push_back(ms_of([&] {
      const bool edited =
          window.document().set_decision({SavedId(i)}, simulator::Decision::offload);
      if (!edited) std::puts("an edit was refused");
      window.settle();
    }));
    series.cpu.push_back(process_cpu_ms() - cpu_begin);
    series.yard.push_back(yardstick());
    if (timeline.times == 0 || memory.times == 0) std::puts("an edit was not painted");
  }
  return series;
}

// The same edits three times, as the frames are: what else the machine did is in one of the times.
void edits() {
  gui::MainWindow window;
  window.resize(1920, 1080);
  window.setAttribute(Qt::WA_DontShowOnScreen);
  window.show();
  Edits all;
  Edits least;
  for (int i = 0; i < 3; ++i) {
    const Edits series = edit_series(window);
    if (i == 0) least = series;
    for (std::size_t e = 0; e < series.wall.size(); ++e) {
      least.wall[e] = std::min(least.wall[e], series.wall[e]);
      least.cpu[e] = std::min(least.cpu[e], series.cpu[e]);
    }
    all.wall.insert(all.wall.end(), series.wall.begin(), series.wall.end());
    all.cpu.insert(all.cpu.end(), series.cpu.begin(), series.cpu.end());
    all.yard.insert(all.yard.end(), series.yard.begin(), series.yard.end());
  }
  row("edit to the repainted result, Llama sample: median", percentile(all.wall, 0.5), "ms", "");
  row("edit to the repainted result, Llama sample: p99", percentile(all.wall, 0.99), "ms", "<= 30");
  row("  of the least of 3 for each edit: p99", percentile(least.wall, 0.99), "ms", "<= 30");
  row("  a loop that only multiplies, in turn with them: median", percentile(all.yard, 0.5), "ms",
      "");
  row("  a loop that only multiplies, in turn with them: p99", percentile(all.yard, 0.99), "ms",
      "");
  row("  all threads: median", percentile(all.cpu, 0.5), "ms CPU", "");
  row("  all threads: p99", percentile(all.cpu, 0.99), "ms CPU", "");
  row("  all threads, of the least of 3: p99", percentile(least.cpu, 0.99), "ms CPU", "");
}

}  // namespace
}  // namespace stowage

int main(int argc, char** argv) {
  qputenv("QT_QPA_PLATFORM", "offscreen");
  QStandardPaths::setTestModeEnabled(true);
  QApplication::setApplicationName("stowage-gui-bench");
  const QApplication application(argc, argv);
  // One of them alone: for a profiler.
  const QString only = argc > 1 ? QString::fromLocal8Bit(argv[1]) : QString();
  if (only.isEmpty() || only == "frames") stowage::frames();
  if (only.isEmpty() || only == "opening") stowage::opening();
  if (only.isEmpty() || only == "edits") stowage::edits();
}
