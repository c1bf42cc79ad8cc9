#include "gui/widgets/save_dialog.h"

#include <QFileDialog>

namespace stowage::gui {

QString ask_where_to_save(QWidget* parent, const QString& title, const QString& proposed,
                          const QString& suffix, const QString& filter) {
  // Not getSaveFileName(), which knows no suffix.
  QFileDialog dialog(parent, title, proposed, filter);
  dialog.setAcceptMode(QFileDialog::AcceptSave);
  dialog.setFileMode(QFileDialog::AnyFile);
  dialog.setDefaultSuffix(suffix);
  return dialog.exec() == QDialog::Accepted ? dialog.selectedFiles().value(0) : QString();
}

}  // namespace stowage::gui
