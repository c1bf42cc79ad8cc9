// The program's command line, as values: read before there is an application or a display.
#pragma once

#include <QSize>
#include <QString>
#include <QStringList>

#include "traces/result.h"

namespace stowage::gui {

struct Options {
  bool help = false;
  bool version = false;
  QString screenshot;  // file; empty = a window
  QString view;        // the view to photograph; empty = the whole window
  QSize size{1280, 800};
  QStringList files;  // a trace, a plan or a result for it, in any order
};

// Errors (usage): an unknown option (with the nearest one), a missing or bad value, --view or
// --size without --screenshot, --screenshot without a file.
[[nodiscard]] Result<Options> parse_options(const QStringList& arguments);

// What --help prints; ends with a newline.
[[nodiscard]] QString help_text();

// Ids that --view takes: all views of the window, by MainWindow::view().
[[nodiscard]] QStringList view_ids();

}  // namespace stowage::gui
