// The menu of a right click on an op, a copy, a stall, a block or a row of a table: what the menus
// and keys do, with what is selected.
#pragma once

#include <QPoint>

#include "gui/model/explained.h"

namespace stowage::gui {

class MainWindow;

// Shows it; it deletes itself when it closes. Entries that do nothing for the selection are left
// out; without any the menu has those of the moment at the cursor alone.
void show_selection_menu(MainWindow& window, const Explanations& explanations,
                         const QPoint& global);

}  // namespace stowage::gui
