// The `?` list: what the keys and the mouse do, made of the table of keys.
#pragma once

#include <QDialog>

namespace stowage::gui {

// Opens the list beside the window; does not block. Its parent owns it.
QDialog* show_key_list(QWidget* parent);

}  // namespace stowage::gui
