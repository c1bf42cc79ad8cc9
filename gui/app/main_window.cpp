#include "gui/app/main_window.h"

#include <QApplication>
#include <QCloseEvent>
#include <QDialog>
#include <QDir>
#include <QDropEvent>
#include <QFileInfo>
#include <QMimeData>
#include <QMouseEvent>
#include <QPointer>
#include <QSettings>
#include <QStatusBar>
#include <QToolBar>
#include <QUrl>
#include <QVBoxLayout>
#include <algorithm>
#include <utility>

#include "gui/app/named_action.h"
#include "gui/app/recent_files.h"
#include "gui/app/views.h"
#include "gui/model/same_selection.h"
#include "gui/widgets/value_texts.h"
#include "planner/budget.h"
#include "planner/planner.h"

namespace stowage::gui {
namespace {

constexpr int kLayoutVersion = 3;

// Of the recorded step, or of the plan's.
std::optional<MemoryPlot::ReservedLines> reserved_lines(const Simulated& simulated, bool recorded) {
  const TraceData& trace = *simulated.trace;
  const simulator::PlacementMode placement = simulated.plan().placement;
  if (!simulated.reserved) return std::nullopt;
  if (recorded) {
    return MemoryPlot::ReservedLines{trace.resident_placed.peak_reserved,
                                     trace.resident_cached.peak_reserved, placement};
  }
  return MemoryPlot::ReservedLines{simulated.reserved->planned.bytes, simulated.reserved->caching,
                                   placement};
}

}  // namespace

MainWindow::MainWindow(QWidget* parent) : QMainWindow(parent) {
  setObjectName(QStringLiteral("main"));
  setAcceptDrops(true);
  setDockNestingEnabled(true);
  setWindowIcon(QIcon(QStringLiteral(":/stowage/stowage.svg")));

  timeline_ = new TimelinePlot(state_);
  memory_ = new MemoryPlot(state_);
  start_ = new StartPage(memory_);
  auto* over = new QVBoxLayout(memory_);
  over->setContentsMargins(0, 0, 0, 0);
  over->addWidget(start_);
  connect(start_, &StartPage::open_requested, this, [this] { ask_for_file(); });
  connect(start_, &StartPage::file_chosen, this, &MainWindow::open_file);
  // Messages and the search stand between the menus and the views.
  auto* top = new QWidget(this);
  menu_bar_ = new QMenuBar(top);
  message_ = new MessageBar(top);
  search_ = new SearchBar(document_, state_, top);
  search_->hide();
  auto* column = new QVBoxLayout(top);
  column->setContentsMargins(0, 0, 0, 0);
  column->setSpacing(0);
  for (QWidget* strip : {static_cast<QWidget*>(menu_bar_), static_cast<QWidget*>(message_),
                         static_cast<QWidget*>(search_)}) {
    column->addWidget(strip);
  }
  setMenuWidget(top);

  make_file_menu();
  make_edit_menu();
  make_view_menu();
  make_plan_menu();
  make_help_menu();
  make_toolbar();
  make_status();
  add_view(QStringLiteral("timeline"), tr("Timeline"), timeline_, Qt::LeftDockWidgetArea);
  add_view(QStringLiteral("memory"), tr("Memory"), memory_, Qt::LeftDockWidgetArea);
  add_other_views(*this);
  connect_views();
  default_layout();
  set_title();
  timeline_->setFocus();
}

MainWindow::~MainWindow() {
  // The focus moves while parts go, and docks that are gone are not asked about it.
  disconnect(qApp, nullptr, this, nullptr);
  // Fields hand over what was typed when they lose the focus: they go while there is a document.
  QList<QPointer<QWidget>> parts;
  for (QToolBar* bar : findChildren<QToolBar*>()) parts << bar;
  for (QDialog* dialog : findChildren<QDialog*>()) parts << dialog;
  for (QDockWidget* dock : docks_) parts << dock;
  for (const QPointer<QWidget>& part : parts) delete part.data();
}

QWidget* MainWindow::view(const QString& id) const {
  const QDockWidget* dock = docks_.value(id);
  return dock != nullptr ? dock->widget() : nullptr;
}

void MainWindow::raise_view(const QString& id) {
  QDockWidget* dock = docks_.value(id);
  if (dock == nullptr) return;
  dock->show();
  dock->raise();
}

QDockWidget* MainWindow::add_view(const QString& id, const QString& title, QWidget* widget,
                                  Qt::DockWidgetArea area) {
  auto* dock = new QDockWidget(title, this);
  dock->setObjectName(QStringLiteral("dock_") + id);
  dock->setWidget(widget);
  if (widget->accessibleName().isEmpty()) widget->setAccessibleName(title);
  addDockWidget(area, dock);
  docks_.insert(id, dock);
  view_menu_->addAction(dock->toggleViewAction());
  set_up_action(*dock->toggleViewAction(), QStringLiteral("view_") + id,
                tr("Show or hide the view %1").arg(title));
  return dock;
}

QAction* MainWindow::action(const QString& name) const {
  return findChild<QAction*>(name);
}

void MainWindow::connect_views() {
  connect(&document_, &PlanDocument::opened, this, [this] { refresh(true); });
  connect(&document_, &PlanDocument::changed, this, [this] { refresh(false); });
  connect(&document_, &PlanDocument::edited, this, &MainWindow::set_title);
  connect(&document_, &PlanDocument::failed, message_, &MessageBar::show_error);
  connect(&document_, &PlanDocument::searched, this,
          [this](const planner::PlanOutcome& outcome) { say_outcome(outcome); });
  connect(&document_, &PlanDocument::noted, message_, &MessageBar::show_note);
  connect(&state_, &ViewState::shown_changed, this, [this] { refresh(false); });
  for (const auto signal :
       {&ViewState::cursor_changed, &ViewState::range_changed, &ViewState::selection_changed}) {
    connect(&state_, signal, this, &MainWindow::say_status);
  }
  for (PlotView* plot : {static_cast<PlotView*>(timeline_), static_cast<PlotView*>(memory_)}) {
    connect(plot, &PlotView::peak_requested, this, &MainWindow::go_to_peak);
  }
  connect(search_, &SearchBar::found, this, [this](const SearchHit& hit) {
    const StepPicturePtr view = shown();
    if (!view || !hit.event.valid()) return;
    if (const auto time = time_of(hit.event)) state_.set_cursor(*time);
  });
  qApp->installEventFilter(this);
  connect(search_, &SearchBar::closed, timeline_, qOverload<>(&QWidget::setFocus));
  connect(memory_, &MemoryPlot::budget_dragged, this,
          [this](Bytes budget, int drag) { document_.set_budget(budget, counter(), drag); });
  connect(memory_, &MemoryPlot::budget_dropped, this, [this](Bytes budget) {
    // Three digits, as the label says.
    find_plan(budget, {});
  });
}

StepPicturePtr MainWindow::shown() const {
  return document_.shows_recorded(state_.shown()) ? document_.recorded() : document_.planned();
}

std::optional<Nanoseconds> MainWindow::time_of(EventId event) const {
  const SimulatedPtr& current = document_.current();
  if (!current || !event.valid()) return std::nullopt;
  if (shown() != document_.recorded()) return current->detail.time[event.index()];
  const Selection there = in_recording(current->rows, {Selection::Kind::event, event.value});
  if (there.row < 0) return std::nullopt;
  return current->trace->trace.events.time[static_cast<std::size_t>(there.row)];
}

void MainWindow::refresh(bool anew) {
  const StepPicturePtr view = shown();
  if (anew) {
    state_.clear();
    state_.set_cursor(std::nullopt);
    message_->hide();
    for (const QString& file : document_.files()) remember_file(file);
    recorded_.reset();
    if (document_.trace()) recorded_ = document_.trace()->trace.calibration;
  }
  TimeAxis axis = state_.axis();
  axis.set_length(view ? view->end : TimeAxis::kLeastSpan);
  if (anew) axis.fit();
  state_.set_axis(axis);
  const StepRowsPtr rows = document_.current() ? document_.current()->rows : nullptr;
  keep_place();
  if (!view) start_->refresh();
  start_->setVisible(!view);
  timeline_->show_step(document_.trace(), view, rows);
  memory_->show_step(document_.trace(), view, rows);
  if (const SimulatedPtr& current = document_.current()) {
    const simulator::PlanBudget& budget = current->plan().budget;
    const bool recorded = view == document_.recorded();
    const Bytes peak =
        recorded ? planner::peak_of(current->resident(), budget.on) : current->peak();
    const bool kept = recorded ? peak <= budget.device.value_or(peak) : current->device_kept;
    memory_->set_budget(budget.device, budget.on, kept, peak);
    memory_->set_reserved(reserved_lines(*current, recorded));
  } else {
    memory_->set_budget(std::nullopt, simulator::PeakKind::active, true, 0);
    memory_->set_reserved(std::nullopt);
  }
  if (anew) share_room();
  set_title();
  say_status();
}

// The curve ahead of an edit of the plan or of its machine, if that is another one. What is shown
// still is that one.
void MainWindow::show_ghost(const SimulatedPtr& before, const StepPicturePtr& now) {
  // A GPU's recorded curve is in the time in which the host launched its ops.
  if (now == document_.recorded()) return memory_->set_ghost(nullptr);
  if (before == current_) return;
  const bool is_of_it =
      before && current_ && now && memory_->view() &&
      before->trace->path == current_->trace->path &&
      before->trace->trace.run.uuid == current_->trace->trace.run.uuid &&
      (memory_->view() != document_.recorded() || current_->trace->trace.env.device == "cpu");
  if (!is_of_it) return memory_->set_ghost(nullptr);
  if (!same_curve(*memory_->view(), *now)) memory_->set_ghost(memory_->view());
}

// The selection, the cursor and the range in the replay that is shown now.
void MainWindow::keep_place() {
  const SimulatedPtr before = std::exchange(current_, document_.current());
  show_ghost(before, shown());
  if (before && current_ && before != current_) {
    const Selection was = state_.selection();
    const Selection now = same_in(*current_, *before, was);
    // A cursor that was put on what is selected goes along.
    const auto at = gui::time_of(*before, was);
    if (at && state_.cursor() == at) state_.set_cursor(gui::time_of(*current_, now));
    state_.select(now);
  }
  const Nanoseconds end = state_.axis().length();
  if (state_.cursor() && *state_.cursor() > end) state_.set_cursor(std::nullopt);
  if (!state_.range() || state_.range()->end <= end) return;
  const Nanoseconds begin = state_.range()->begin;
  state_.set_range(begin < end ? std::optional(TimeRange{begin, end}) : std::nullopt);
}

void MainWindow::set_title() {
  const QString file = QFileInfo(document_.file()).fileName();
  const bool unsaved = !document_.undo_stack().isClean();
  setWindowTitle(file.isEmpty() ? tr("Stowage")
                                : tr("%1%2 - Stowage").arg(file, unsaved ? tr(" (edited)") : ""));
  say_saved();
}

// A message says it too, but goes when the pointer moves over a menu.
void MainWindow::say_saved() {
  const bool clean = document_.undo_stack().isClean();
  const QString file = QString::fromStdString(document_.plan_file());
  const QString name = fontMetrics().elidedText(QFileInfo(file).fileName(), Qt::ElideMiddle,
                                                fontMetrics().averageCharWidth() * 40);
  saved_->setText(!file.isEmpty() ? (clean ? tr("plan: %1") : tr("plan: %1 (edited)")).arg(name)
                  : clean         ? QString()
                                  : tr("plan: not saved"));
  saved_->setToolTip(file.isEmpty() ? tr("Ctrl+S saves the plan") : QDir::toNativeSeparators(file));
}

void MainWindow::say_status() {
  const SimulatedPtr& current = document_.current();
  const StepPicturePtr view = shown();
  if (!current || !view) return status_->setText(tr("Nothing is open: Ctrl+O"));
  QStringList parts;
  if (state_.range()) {
    parts << range_text(measure(*view, *state_.range()));
  } else if (state_.cursor()) {
    const auto at = static_cast<double>(*state_.cursor());
    const MemoryView& memory = view->memory;
    parts << time_text(*state_.cursor());
    if (!memory.empty()) {
      // Of what happens at once the most counts: at the peak it is the peak.
      const MemoryView::Range points = memory.points(at, at + 1);
      const Bytes most = memory.total.extent(points.first, points.last).max;
      parts << tr("%1 requested").arg(bytes_text(most));
    }
  }
  if (!state_.range()) {
    const simulator::ReplayResult& result = current->result;
    parts << tr("step %1").arg(time_text(view->end))
          << tr("peak %1 (%2)").arg(bytes_text(view->memory.peak()), word_for(view->source));
    if (const auto reserved = reserved_lines(*current, view == document_.recorded())) {
      const bool is_planned = reserved->placement == simulator::PlacementMode::planned;
      parts << (is_planned ? tr("planned memory %1") : tr("reserved %1"))
                   .arg(bytes_text(is_planned ? reserved->planned : reserved->caching));
    }
    if (view->source != Source::measured) {
      parts << tr("stalls %1").arg(time_text(result.stall_ns))
            << tr("host %1").arg(bytes_text(result.host_bytes));
    }
  }
  const Selection& selection = state_.selection();
  if (selection.kind != Selection::Kind::none && !state_.range()) {
    parts.prepend(QString::fromStdString(name_of(current->step_trace(), selection)).left(80));
  }
  status_->setText(parts.join(QStringLiteral(" · ")));
}

void MainWindow::open_file(const QString& file) {
  document_.open(file);
}

void MainWindow::open_files(const QStringList& files) {
  document_.open(files);
}

void MainWindow::go_to_peak() {
  const StepPicturePtr view = shown();
  if (!view || view->memory.empty()) return;
  const MemoryView& memory = view->memory;
  const Nanoseconds time = memory.time[memory.peak_at];
  TimeAxis axis = state_.axis();
  axis.centre_on(static_cast<double>(time));
  state_.set_axis(axis);
  state_.set_cursor(time);
  const Selection peak{Selection::Kind::event, memory.event[memory.peak_at].value};
  const StepRowsPtr rows = current_ ? current_->rows : nullptr;
  state_.select(view == document_.recorded() ? in_step(rows, peak) : peak);
  Q_EMIT peak_shown();
}

void MainWindow::dragEnterEvent(QDragEnterEvent* event) {
  const QList<QUrl> urls = event->mimeData()->urls();
  const bool local =
      std::any_of(urls.begin(), urls.end(), [](const QUrl& url) { return url.isLocalFile(); });
  if (local) event->acceptProposedAction();
}

void MainWindow::dropEvent(QDropEvent* event) {
  QStringList files;
  for (const QUrl& url : event->mimeData()->urls()) {
    if (url.isLocalFile()) files << url.toLocalFile();
  }
  event->acceptProposedAction();
  if (may_drop_plan()) open_files(files);
}

void MainWindow::default_layout() {
  for (QDockWidget* dock : docks_) {
    dock->setFloating(false);
    dock->show();
  }
  QDockWidget* timeline = docks_.value(QStringLiteral("timeline"));
  QDockWidget* memory = docks_.value(QStringLiteral("memory"));
  addDockWidget(Qt::LeftDockWidgetArea, timeline);
  splitDockWidget(timeline, memory, Qt::Vertical);
  arrange_other_views(*this);
  shares_room_ = true;
  share_room();
}

// Sizes of docks are kept as shares of what there is, so they are given anew with the window.
void MainWindow::share_room() {
  if (!shares_room_) return;
  for (const char* const name : {"timeline", "memory", "plan"}) {
    const QDockWidget* const dock = docks_.value(QLatin1String(name));
    if (dock->isFloating() || dock->isHidden()) return;  // they are not beside each other
  }
  QDockWidget* timeline = docks_.value(QStringLiteral("timeline"));
  QDockWidget* memory = docks_.value(QStringLiteral("memory"));
  QDockWidget* plan = docks_.value(QStringLiteral("plan"));
  resizeDocks({timeline, plan}, {2 * width() / 3, width() / 3}, Qt::Horizontal);
  const int both = timeline->height() + memory->height();
  const int title = timeline->height() - timeline_->height();
  // Half of it at most: the curve wants to be seen, too.
  const int lanes = std::min(title + timeline_->sizeHint().height(), both / 2);
  resizeDocks({timeline, memory}, {lanes, both - lanes}, Qt::Vertical);
}

bool MainWindow::event(QEvent* event) {
  // Separators are the window's own.
  if (event->type() == QEvent::MouseButtonPress &&
      isSeparator(static_cast<QMouseEvent*>(event)->position().toPoint())) {
    shares_room_ = false;
  }
  const bool done = QMainWindow::event(event);
  if (event->type() == QEvent::Resize || event->type() == QEvent::Show) share_room();
  return done;
}

void MainWindow::restore_layout() {
  const QSettings settings;
  const QByteArray geometry = settings.value(QStringLiteral("geometry")).toByteArray();
  const QByteArray layout = settings.value(QStringLiteral("layout")).toByteArray();
  if (geometry.isEmpty() || !restoreGeometry(geometry)) resize(1280, 800);
  if (layout.isEmpty() || !restoreState(layout, kLayoutVersion)) return default_layout();
  shares_room_ = settings.value(QStringLiteral("layout_shares_room")).toBool();
  share_room();
}

QDockWidget* MainWindow::behind_a_tab(const QObject* object) const {
  const auto* const widget = qobject_cast<const QWidget*>(object);
  for (QDockWidget* dock : docks_) {
    if (widget == nullptr || !dock->isAncestorOf(widget)) continue;
    return dock->visibleRegion().isEmpty() ? dock : nullptr;
  }
  return nullptr;
}

bool MainWindow::eventFilter(QObject* watched, QEvent* event) {
  if (event->type() != QEvent::FocusIn) return QMainWindow::eventFilter(watched, event);
  if (QDockWidget* const dock = behind_a_tab(watched)) {
    const Qt::FocusReason reason = static_cast<QFocusEvent*>(event)->reason();
    if (reason != Qt::TabFocusReason && reason != Qt::BacktabFocusReason) {
      dock->raise();
      return false;
    }
    // Once it has the focus.
    QMetaObject::invokeMethod(
        this,
        [this, widget = QPointer<QObject>(watched), reason] {
          if (widget.isNull() || QApplication::focusWidget() != widget) return;
          if (behind_a_tab(widget) != nullptr) focusNextPrevChild(reason == Qt::TabFocusReason);
        },
        Qt::QueuedConnection);
  }
  return false;
}

void MainWindow::closeEvent(QCloseEvent* event) {
  if (!may_drop_plan()) return event->ignore();
  QSettings settings;
  settings.setValue(QStringLiteral("geometry"), saveGeometry());
  settings.setValue(QStringLiteral("layout"), saveState(kLayoutVersion));
  settings.setValue(QStringLiteral("layout_shares_room"), shares_room_);
  event->accept();
}

}  // namespace stowage::gui
