// File > Export: a picture of the window's views, and what gui/model/export_step.h writes.
#pragma once

#include <QMenu>

namespace stowage::gui {

class MainWindow;

void fill_export_menu(QMenu& menu, MainWindow& window);

}  // namespace stowage::gui
