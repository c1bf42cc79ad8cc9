#include "gui/app/views.h"

#include "gui/app/main_window.h"

namespace stowage::gui {

void add_other_views(MainWindow&) {}

void arrange_other_views(MainWindow&) {}

}  // namespace stowage::gui
