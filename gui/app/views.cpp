#include "gui/app/views.h"

#include <QAction>
#include <QMenu>
#include <algorithm>

#include "gui/app/main_window.h"
#include "gui/app/named_action.h"
#include "gui/app/selection_menu.h"
#include "gui/model/explained.h"
#include "gui/model/lifetime.h"
#include "gui/widgets/alive_view.h"
#include "gui/widgets/blocks_view.h"
#include "gui/widgets/compare_view.h"
#include "gui/widgets/details_view.h"
#include "gui/widgets/pareto_view.h"
#include "gui/widgets/plan_tree_view.h"
#include "gui/widgets/range_view.h"
#include "gui/widgets/record_dialog.h"
#include "gui/widgets/verify_dialog.h"
#include "gui/widgets/what_if_panel.h"

namespace stowage::gui {

namespace {

// Into the menu that holds the action `before`, ahead of it.
QAction* add_action(MainWindow& window, const char* before, const char* name, const QString& text,
                    const QString& tip) {
  auto* action = new QAction(text, &window);
  set_up_action(*action, QLatin1String(name), tip);
  QAction* next = window.action(QLatin1String(before));
  for (QObject* place : next->associatedObjects()) {
    if (auto* menu = qobject_cast<QMenu*>(place)) menu->insertAction(next, action);
  }
  return action;
}

// The first time it is asked for; then the same one again.
template <class Dialog, class Make>
void open_dialog(MainWindow& window, Make make) {
  auto* dialog = window.findChild<Dialog*>();
  if (dialog == nullptr) dialog = make();
  dialog->show();
  dialog->raise();
  dialog->activateWindow();
}

// The longest stall of the plan, and from a stall the next shorter one, until the longest again.
void go_to_stall(MainWindow& window, const Explanations& explanations) {
  const ExplainedPtr& now = explanations.current();
  if (!now || now->stalls.empty()) {
    window.message().show_note(
        !now ? QObject::tr("Nothing is open: there are no stalls.")
             : QObject::tr("This plan has no stalls: compute never waits for a copy."));
    return;
  }
  ViewState& state = window.state();
  // Neighbours of one cause are one.
  std::vector<StallGroup> groups = now->waits.groups;
  std::stable_sort(groups.begin(), groups.end(), [](const StallGroup& a, const StallGroup& b) {
    return a.duration > b.duration;
  });
  std::size_t rank = 0;
  const auto selected = static_cast<std::size_t>(std::max(0, state.selection().row));
  if (state.selection().kind == Selection::Kind::stall && selected < now->waits.wait_of.size()) {
    const StallGroup& of = now->waits.group_of(state.selection().row);
    while (groups[rank].first != of.first) ++rank;
    rank = (rank + 1) % groups.size();
  }
  const std::int32_t longest = groups[rank].longest;
  state.select({Selection::Kind::stall, longest});
  state.set_cursor(now->simulated->result.stalls[static_cast<std::size_t>(longest)].start);
  state.centre_selection();
  window.raise_view(QStringLiteral("details"));
}

// The lifetime of what is selected into the lanes and the curve.
void show_lifetime(MainWindow& window, const Explanations& explanations) {
  const ExplainedPtr& now = explanations.current();
  const StepPicturePtr& view = window.timeline().view();
  std::optional<Lifetime> life;
  // Rows of the replay that is explained now may be other ones.
  if (now && view && now->simulated == window.document().current()) {
    life =
        lifetime_of(*now, window.state().selection(), view->source == Source::measured, view->end);
  }
  window.timeline().set_lifetime(life);
  window.memory().set_lifetime(life);
}

void add_dialogs(MainWindow& window) {
  QAction* record = add_action(window, "reload", "record", QObject::tr("&Record a step..."),
                               QObject::tr("Run stowage profile and open what it recorded"));
  QObject::connect(record, &QAction::triggered, &window, [&window] {
    open_dialog<RecordDialog>(window, [&window] {
      auto* dialog = new RecordDialog(&window);
      QObject::connect(dialog, &RecordDialog::recorded, &window, &MainWindow::open_file);
      return dialog;
    });
  });
  QAction* verify =
      add_action(window, "pin", "verify", QObject::tr("&Verify on this machine..."),
                 QObject::tr("Run the plan and compare what it does with what was predicted"));
  QObject::connect(verify, &QAction::triggered, &window, [&window] {
    open_dialog<VerifyDialog>(window, [&window] {
      auto* dialog = new VerifyDialog(window.document(), &window);
      QObject::connect(dialog, &VerifyDialog::verified, &window, &MainWindow::open_file);
      return dialog;
    });
  });
}

}  // namespace

void add_other_views(MainWindow& window) {
  PlanDocument& document = window.document();
  ViewState& state = window.state();
  auto* explanations = new Explanations(document, &window);
  const auto tr = [](const char* text) { return QObject::tr(text); };
  auto* plan = new PlanTreeView(document, state, *explanations);
  auto* details = new DetailsView(document, state, *explanations);
  auto* alive = new AliveView(document, state, *explanations);
  auto* blocks = new BlocksView(document, state);
  auto* range = new RangeView(document, state);
  auto* what_if = new WhatIfPanel(document);
  auto* pareto = new ParetoView(document);
  auto* compare = new CompareView(document, state);
  window.add_view(QStringLiteral("plan"), tr("Plan"), plan, Qt::RightDockWidgetArea);
  window.add_view(QStringLiteral("details"), tr("Details"), details, Qt::RightDockWidgetArea);
  window.add_view(QStringLiteral("alive"), tr("Alive"), alive, Qt::RightDockWidgetArea);
  window.add_view(QStringLiteral("blocks"), tr("Blocks"), blocks, Qt::RightDockWidgetArea);
  window.add_view(QStringLiteral("range"), tr("Range"), range, Qt::RightDockWidgetArea);
  window.add_view(QStringLiteral("what_if"), tr("What if"), what_if, Qt::RightDockWidgetArea);
  window.add_view(QStringLiteral("pareto"), tr("Memory against time"), pareto,
                  Qt::RightDockWidgetArea);
  window.add_view(QStringLiteral("compare"), tr("Compare"), compare, Qt::RightDockWidgetArea);
  const auto show_error = [&window](const Error& error) { window.message().show_error(error); };
  QObject::connect(pareto, &ParetoView::failed, &window, show_error);
  QObject::connect(compare, &CompareView::failed, &window, show_error);
  window.follow(pareto->search().job());
  window.follow(compare->job());
  window.follow(blocks->job());
  add_dialogs(window);
  const auto relight = [&window, explanations] { show_lifetime(window, *explanations); };
  // Behind whatever else follows these: the plots show another step by then.
  QObject::connect(&state, &ViewState::selection_changed, &window, relight, Qt::QueuedConnection);
  QObject::connect(&state, &ViewState::shown_changed, &window, relight, Qt::QueuedConnection);
  QObject::connect(&document, &PlanDocument::changed, &window, relight, Qt::QueuedConnection);
  QObject::connect(explanations, &Explanations::changed, &window, relight, Qt::QueuedConnection);
  QObject::connect(&window, &MainWindow::peak_shown, alive, [&window, alive] {
    window.raise_view(QStringLiteral("alive"));
    alive->show_peak();
  });
  const auto show_menu = [&window, explanations](const QPoint& global) {
    show_selection_menu(window, *explanations, global);
  };
  QObject::connect(&window.timeline(), &PlotView::menu_requested, &window, show_menu);
  QObject::connect(&window.memory(), &PlotView::menu_requested, &window, show_menu);
  QObject::connect(blocks, &BlocksView::menu_requested, &window, show_menu);
  QObject::connect(alive, &AliveView::menu_requested, &window, show_menu);
  QObject::connect(range, &RangeView::menu_requested, &window, show_menu);
  QObject::connect(&window.timeline(), &PlotView::range_measured, &window,
                   [&window] { window.raise_view(QStringLiteral("range")); });
  QObject::connect(blocks, &BlocksView::peak_requested, &window, &MainWindow::go_to_peak);
  QObject::connect(range, &RangeView::peak_requested, &window, &MainWindow::go_to_peak);
  QObject::connect(alive, &AliveView::peak_requested, &window, &MainWindow::go_to_peak);
  QObject::connect(details, &DetailsView::peak_requested, &window, &MainWindow::go_to_peak);
  QAction* stall = add_action(
      window, "fit", "go_to_stall", tr("Go to the &longest stall"),
      tr("Selects the longest wait for a copy, then the next one; the details say its cause"));
  QObject::connect(stall, &QAction::triggered, &window,
                   [&window, explanations] { go_to_stall(window, *explanations); });
  QObject::connect(what_if, &WhatIfPanel::find_plan_requested, window.action("plan"),
                   &QAction::trigger);
}

void arrange_other_views(MainWindow& window) {
  const auto dock = [&window](const char* id) {
    return window.findChild<QDockWidget*>(QStringLiteral("dock_") + QLatin1String(id));
  };
  window.addDockWidget(Qt::RightDockWidgetArea, dock("plan"));
  window.splitDockWidget(dock("plan"), dock("details"), Qt::Vertical);
  for (const char* id : {"what_if", "pareto", "compare"}) {
    window.tabifyDockWidget(dock("plan"), dock(id));
  }
  for (const char* id : {"alive", "blocks", "range"})
    window.tabifyDockWidget(dock("details"), dock(id));
  window.resizeDocks({dock("plan"), dock("details")}, {3, 2}, Qt::Vertical);
  dock("plan")->raise();
  dock("details")->raise();
}

}  // namespace stowage::gui
