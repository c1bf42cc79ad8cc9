#include "gui/app/named_action.h"

#include "gui/widgets/keys.h"

namespace stowage::gui {

void set_up_action(QAction& action, const QString& name, const QString& tip) {
  action.setObjectName(name);
  action.setShortcuts(shortcuts_of(name));
  const QString key = action.shortcut().toString(QKeySequence::NativeText);
  action.setStatusTip(tip);
  action.setToolTip(key.isEmpty() ? tip : QObject::tr("%1 (%2)").arg(tip, key));
}

}  // namespace stowage::gui
