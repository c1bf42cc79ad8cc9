#include "gui/app/selection_menu.h"

#include <QMenu>
#include <functional>
#include <optional>

#include "gui/app/main_window.h"
#include "gui/model/keep_instead.h"
#include "gui/widgets/alive_view.h"
#include "gui/widgets/blocks_view.h"

namespace stowage::gui {
namespace {

using Kind = Selection::Kind;

QAction* add_entry(QMenu& menu, const char* name, const QString& text,
                   const std::function<void()>& run) {
  QAction* action = menu.addAction(text);
  action->setObjectName(QLatin1String(name));
  QObject::connect(action, &QAction::triggered, &menu, [run] { run(); });
  return action;
}

// Of this moment: the pointer leaves the plot for the menu, and the cursor goes with it.
void add_moment(QMenu& menu, MainWindow& window) {
  const std::optional<Nanoseconds> time = window.state().cursor();
  if (!time) return;
  add_entry(menu, "menu_alive", QObject::tr("What is &alive then"), [&window, time] {
    window.state().set_cursor(time);
    window.raise_view(QStringLiteral("alive"));
    qobject_cast<AliveView*>(window.view(QStringLiteral("alive")))->show_cursor();
  });
  add_entry(menu, "menu_blocks", QObject::tr("&Blocks then"), [&window, time] {
    window.state().set_cursor(time);
    window.raise_view(QStringLiteral("blocks"));
    qobject_cast<BlocksView*>(window.view(QStringLiteral("blocks")))->moment().setCurrentIndex(1);
  });
}

}  // namespace

void show_selection_menu(MainWindow& window, const Explanations& explanations,
                         const QPoint& global) {
  const ExplainedPtr& now = explanations.current();
  if (!now) return;
  auto* menu = new QMenu(&window);
  menu->setObjectName(QStringLiteral("selection_menu"));
  menu->setAttribute(Qt::WA_DeleteOnClose);
  const Selection selection = window.state().selection();
  if (selection.kind != Kind::none) {
    add_entry(*menu, "menu_details", QObject::tr("&Details"),
              [&window] { window.raise_view(QStringLiteral("details")); });
    add_entry(*menu, "menu_centre", QObject::tr("&Centre in the timeline"),
              [&window] { window.state().centre_selection(); });
    if (const auto range = window.timeline().range_of_selection()) {
      add_entry(*menu, "menu_range", QObject::tr("What &runs within it"), [&window, range] {
        window.state().set_range(range);
        window.raise_view(QStringLiteral("range"));
      });
    }
    const KeepInstead keeps = now->simulated == window.document().current()
                                  ? keep_instead(*now, selection)
                                  : KeepInstead{};
    if (!keeps.empty()) {
      add_entry(*menu, "menu_keep",
                QObject::tr("&Keep %1 on the device").arg(QString::fromStdString(keeps.name)),
                [&window, keeps] {
                  if (keep(window.document(), keeps)) window.state().select(keeps.then);
                });
    }
    menu->addSeparator();
  }
  add_moment(*menu, window);
  menu->addAction(window.action(QStringLiteral("go_to_peak")));
  menu->addAction(window.action(QStringLiteral("fit")));
  menu->popup(global);
}

}  // namespace stowage::gui
