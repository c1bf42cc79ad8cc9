#include "gui/app/export_menu.h"

#include <QCoreApplication>
#include <QFileDialog>
#include <QFileInfo>

#include "gui/app/main_window.h"

namespace stowage::gui {
namespace {

struct Entry {
  const char* name;  // of the action
  const char* text;
  ExportKind kind;
  const char* file;
};
constexpr Entry kEntries[] = {
    {"export_svg", QT_TRANSLATE_NOOP("export", "Picture of memory and lanes (SVG)..."),
     ExportKind::svg, "step.svg"},
    {"export_csv_memory", QT_TRANSLATE_NOOP("export", "Memory curve (CSV)..."),
     ExportKind::csv_memory, "memory.csv"},
    {"export_csv_timeline", QT_TRANSLATE_NOOP("export", "Lanes (CSV)..."), ExportKind::csv_timeline,
     "timeline.csv"},
    {"export_csv_stalls", QT_TRANSLATE_NOOP("export", "Stalls and their reasons (CSV)..."),
     ExportKind::csv_stalls, "stalls.csv"},
    {"export_csv_storages", QT_TRANSLATE_NOOP("export", "Storages (CSV)..."),
     ExportKind::csv_storages, "storages.csv"},
    {"export_chrome", QT_TRANSLATE_NOOP("export", "Chrome trace for Perfetto (JSON)..."),
     ExportKind::chrome, "step.trace_events.json"},
    {"export_plan", QT_TRANSLATE_NOOP("export", "Plan (JSON)..."), ExportKind::plan, "plan.json"},
};

QString ask(MainWindow& window, const QString& proposed) {
  return QFileDialog::getSaveFileName(&window, MainWindow::tr("Export"), proposed);
}

}  // namespace

void fill_export_menu(QMenu& menu, MainWindow& window) {
  const auto add = [&](const QString& name, const QString& text, auto slot) {
    QAction* action = menu.addAction(text);
    action->setObjectName(name);
    action->setStatusTip(MainWindow::tr("Asks for a file and writes it"));
    QObject::connect(action, &QAction::triggered, &window, slot);
  };
  add(QStringLiteral("export_png"), MainWindow::tr("Picture of the window (PNG)..."), [&window] {
    const QString file = ask(window, QStringLiteral("stowage.png"));
    if (!file.isEmpty()) window.save_picture(file);
  });
  for (const Entry& entry : kEntries) {
    add(QLatin1String(entry.name), QCoreApplication::translate("export", entry.text),
        [&window, &entry] {
          const QString file = ask(window, QLatin1String(entry.file));
          if (!file.isEmpty()) window.export_file(entry.kind, file);
        });
  }
}

}  // namespace stowage::gui
