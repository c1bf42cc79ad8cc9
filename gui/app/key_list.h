// The `?` list: what the keys and the mouse do.
#pragma once

#include <QDialog>
#include <QList>
#include <QPair>

namespace stowage::gui {

// Keys, and what they do.
[[nodiscard]] QList<QPair<QString, QString>> key_list();

// Opens the list beside the window; does not block. Its parent owns it.
QDialog* show_key_list(QWidget* parent);

}  // namespace stowage::gui
