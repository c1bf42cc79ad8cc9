// The views beside the timeline and the memory curve, and where they stand. One place to add a
// view.
#pragma once

namespace stowage::gui {

class MainWindow;

// Makes the views and adds them to the window: MainWindow::add_view(). Called once, by its
// constructor.
void add_other_views(MainWindow& window);

// Puts their docks where they are by default; all docks are visible and docked when it is called.
void arrange_other_views(MainWindow& window);

}  // namespace stowage::gui
