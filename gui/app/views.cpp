#include "gui/app/views.h"

#include <QAction>
#include <QMenu>

#include "gui/app/main_window.h"
#include "gui/model/explained.h"
#include "gui/widgets/alive_view.h"
#include "gui/widgets/compare_view.h"
#include "gui/widgets/details_view.h"
#include "gui/widgets/pareto_view.h"
#include "gui/widgets/plan_tree_view.h"
#include "gui/widgets/what_if_panel.h"

namespace stowage::gui {

void add_other_views(MainWindow& window) {
  PlanDocument& document = window.document();
  ViewState& state = window.state();
  auto* explanations = new Explanations(document, &window);
  const auto tr = [](const char* text) { return QObject::tr(text); };
  auto* plan = new PlanTreeView(document, state, *explanations);
  auto* details = new DetailsView(document, state, *explanations);
  auto* alive = new AliveView(document, state, *explanations);
  auto* what_if = new WhatIfPanel(document);
  auto* pareto = new ParetoView(document);
  auto* compare = new CompareView(document);
  window.add_view(QStringLiteral("plan"), tr("Plan"), plan, Qt::RightDockWidgetArea);
  window.add_view(QStringLiteral("details"), tr("Details"), details, Qt::RightDockWidgetArea);
  window.add_view(QStringLiteral("alive"), tr("Alive"), alive, Qt::RightDockWidgetArea);
  window.add_view(QStringLiteral("what_if"), tr("What if"), what_if, Qt::RightDockWidgetArea);
  window.add_view(QStringLiteral("pareto"), tr("Memory against time"), pareto,
                  Qt::RightDockWidgetArea);
  window.add_view(QStringLiteral("compare"), tr("Compare"), compare, Qt::RightDockWidgetArea);
  const auto show_error = [&window](const Error& error) { window.message().show_error(error); };
  QObject::connect(pareto, &ParetoView::failed, &window, show_error);
  QObject::connect(compare, &CompareView::failed, &window, show_error);
}

void arrange_other_views(MainWindow& window) {
  const auto dock = [&window](const char* id) {
    return window.findChild<QDockWidget*>(QStringLiteral("dock_") + QLatin1String(id));
  };
  window.addDockWidget(Qt::RightDockWidgetArea, dock("plan"));
  for (const char* id : {"what_if", "pareto", "compare"}) {
    window.tabifyDockWidget(dock("plan"), dock(id));
  }
  window.splitDockWidget(dock("plan"), dock("details"), Qt::Vertical);
  window.tabifyDockWidget(dock("details"), dock("alive"));
  dock("plan")->raise();
  dock("details")->raise();
}

}  // namespace stowage::gui
