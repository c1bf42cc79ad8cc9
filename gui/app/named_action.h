// What every action of the window has, whoever makes it.
#pragma once

#include <QAction>
#include <QString>

namespace stowage::gui {

// Its name, the shortcuts that the table of keys has for that name, and what it does: in the status
// bar and, with the key, as its tool tip.
void set_up_action(QAction& action, const QString& name, const QString& tip);

}  // namespace stowage::gui
