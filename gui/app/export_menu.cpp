#include "gui/app/export_menu.h"

#include <QCoreApplication>
#include <QFileInfo>

#include "gui/app/main_window.h"
#include "gui/app/named_action.h"
#include "gui/widgets/save_dialog.h"

namespace stowage::gui {
namespace {

struct Entry {
  const char* name;  // of the action
  const char* text;
  const char* tip;
  ExportKind kind;
  const char* file;
};
constexpr Entry kEntries[] = {
    {"export_svg", QT_TRANSLATE_NOOP("export", "Picture of memory and lanes (SVG)..."),
     QT_TRANSLATE_NOOP("export", "Draw the step's memory curve and lanes, for a document"),
     ExportKind::svg, "step.svg"},
    {"export_csv_memory", QT_TRANSLATE_NOOP("export", "Memory curve (CSV)..."),
     QT_TRANSLATE_NOOP("export", "Write the bytes on the device at each event"),
     ExportKind::csv_memory, "memory.csv"},
    {"export_csv_timeline", QT_TRANSLATE_NOOP("export", "Lanes (CSV)..."),
     QT_TRANSLATE_NOOP("export", "Write the begin and end of all work, copies and stalls"),
     ExportKind::csv_timeline, "timeline.csv"},
    {"export_csv_stalls", QT_TRANSLATE_NOOP("export", "Stalls and their reasons (CSV)..."),
     QT_TRANSLATE_NOOP("export", "Write what compute waited for, how long and why"),
     ExportKind::csv_stalls, "stalls.csv"},
    {"export_csv_storages", QT_TRANSLATE_NOOP("export", "Storages (CSV)..."),
     QT_TRANSLATE_NOOP("export", "Write each storage with its size, uses and moves"),
     ExportKind::csv_storages, "storages.csv"},
    {"export_chrome", QT_TRANSLATE_NOOP("export", "Chrome trace for Perfetto (JSON)..."),
     QT_TRANSLATE_NOOP("export", "Write the step as ui.perfetto.dev and chrome://tracing open it"),
     ExportKind::chrome, "step.trace_events.json"},
    {"export_memory_viz",
     QT_TRANSLATE_NOOP("export", "Blocks for PyTorch's memory_viz (pickle)..."),
     QT_TRANSLATE_NOOP("export", "Write the step's memory as docs.pytorch.org/memory_viz opens it"),
     ExportKind::memory_viz, "step.pickle"},
    {"export_plan", QT_TRANSLATE_NOOP("export", "Plan (JSON)..."),
     QT_TRANSLATE_NOOP("export", "Write a copy of the plan; Save plan remembers its file"),
     ExportKind::plan, "plan.json"},
};

QString ask(MainWindow& window, const QString& proposed) {
  return ask_where_to_save(&window, MainWindow::tr("Export"), proposed,
                           QFileInfo(proposed).suffix());
}

}  // namespace

void fill_export_menu(QMenu& menu, MainWindow& window) {
  menu.setToolTipsVisible(true);
  const auto add = [&](const QString& name, const QString& text, const QString& tip, auto slot) {
    QAction* action = menu.addAction(text);
    set_up_action(*action, name, tip);
    QObject::connect(action, &QAction::triggered, &window, slot);
  };
  add(QStringLiteral("export_png"), MainWindow::tr("Picture of the window (PNG)..."),
      MainWindow::tr("Save what the window shows now as an image"), [&window] {
        const QString file = ask(window, QStringLiteral("stowage.png"));
        if (!file.isEmpty()) window.save_picture(file);
      });
  for (const Entry& entry : kEntries) {
    add(QLatin1String(entry.name), QCoreApplication::translate("export", entry.text),
        QCoreApplication::translate("export", entry.tip), [&window, &entry] {
          const QString file = ask(window, QLatin1String(entry.file));
          if (!file.isEmpty()) window.export_file(entry.kind, file);
        });
  }
}

}  // namespace stowage::gui
