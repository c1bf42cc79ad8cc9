#include "gui/app/key_list.h"

#include <QCoreApplication>
#include <QDialogButtonBox>
#include <QHeaderView>
#include <QTableWidget>
#include <QVBoxLayout>

namespace stowage::gui {
namespace {

QString tr(const char* text) {
  return QCoreApplication::translate("keys", text);
}

}  // namespace

QList<QPair<QString, QString>> key_list() {
  return {
      {tr("W, Up, Ctrl+wheel"), tr("closer, at the pointer")},
      {tr("S, Down, Ctrl+wheel"), tr("farther, at the pointer")},
      {tr("A, D, Left, Right, Shift+wheel"), tr("earlier, later")},
      {tr("Home"), tr("the whole step")},
      {tr("Left drag"), tr("measure a range: time, bytes copied, GB/s, memory")},
      {tr("Click"), tr("select what is there")},
      {tr("F"), tr("centre the selection")},
      {tr("P"), tr("go to the memory peak and list what is alive there")},
      {tr("Esc"), tr("no selection, no range")},
      {tr("Ctrl+F, F3, Shift+F3"), tr("find; next and previous hit")},
      {tr("Drag the budget line, Ctrl+Up, Ctrl+Down"), tr("another budget, replayed at once")},
      {tr("Ctrl+P"), tr("plan for the budget")},
      {tr("Ctrl+Z, Ctrl+Shift+Z"), tr("undo and redo edits of the plan")},
      {tr("Ctrl+O, Ctrl+S, F5"), tr("open a file, save the plan, read the file again")},
      {tr("Ctrl+Shift+C"), tr("copy the command line that gives what is shown")},
      {tr("Ctrl+."), tr("cancel what runs")},
      {tr("?"), tr("this list")},
  };
}

QDialog* show_key_list(QWidget* parent) {
  auto* dialog = new QDialog(parent);
  dialog->setObjectName(QStringLiteral("keys_dialog"));
  dialog->setAttribute(Qt::WA_DeleteOnClose);
  dialog->setWindowTitle(tr("Keys"));
  const auto keys = key_list();
  auto* table = new QTableWidget(static_cast<int>(keys.size()), 2, dialog);
  table->setAccessibleName(tr("Keys and what they do"));
  table->setHorizontalHeaderLabels({tr("Key"), tr("What it does")});
  table->verticalHeader()->hide();
  table->setEditTriggers(QAbstractItemView::NoEditTriggers);
  table->setSelectionMode(QAbstractItemView::NoSelection);
  for (int i = 0; i < keys.size(); ++i) {
    table->setItem(i, 0, new QTableWidgetItem(keys[i].first));
    table->setItem(i, 1, new QTableWidgetItem(keys[i].second));
  }
  table->resizeColumnsToContents();
  table->horizontalHeader()->setStretchLastSection(true);
  auto* buttons = new QDialogButtonBox(QDialogButtonBox::Close, dialog);
  QObject::connect(buttons, &QDialogButtonBox::rejected, dialog, &QDialog::reject);
  auto* layout = new QVBoxLayout(dialog);
  layout->addWidget(table);
  layout->addWidget(buttons);
  dialog->resize(640, 560);
  dialog->show();
  return dialog;
}

}  // namespace stowage::gui
