#include "gui/app/key_list.h"

#include <QCoreApplication>
#include <QDialogButtonBox>
#include <QHeaderView>
#include <QPushButton>
#include <QTableWidget>
#include <QVBoxLayout>

#include "gui/widgets/keys.h"

namespace stowage::gui {
namespace {

QString tr(const char* text) {
  return QCoreApplication::translate("keys", text);
}

QTableWidgetItem* heading(const QString& text) {
  auto* item = new QTableWidgetItem(text);
  QFont font = item->font();
  font.setBold(true);
  item->setFont(font);
  return item;
}

QTableWidget* make_table(QWidget* parent) {
  auto* table = new QTableWidget(0, 2, parent);
  table->setAccessibleName(tr("Keys and what they do"));
  table->setHorizontalHeaderLabels({tr("Key"), tr("What it does")});
  table->verticalHeader()->hide();
  table->setEditTriggers(QAbstractItemView::NoEditTriggers);
  table->setSelectionMode(QAbstractItemView::NoSelection);
  table->setShowGrid(false);
  std::optional<KeyPlace> place;
  for (const KeyRow& row : key_table()) {
    int at = table->rowCount();
    if (place != row.place) {
      place = row.place;
      table->insertRow(at);
      table->setItem(at, 0, heading(name_of(row.place)));
      table->setSpan(at, 0, 1, 2);
      ++at;
    }
    table->insertRow(at);
    table->setItem(at, 0, new QTableWidgetItem(keys_text(row)));
    table->setItem(at, 1, new QTableWidgetItem(row.text));
  }
  table->resizeColumnsToContents();
  table->horizontalHeader()->setStretchLastSection(true);
  return table;
}

}  // namespace

QDialog* show_key_list(QWidget* parent) {
  auto* dialog = new QDialog(parent);
  dialog->setObjectName(QStringLiteral("keys_dialog"));
  dialog->setAttribute(Qt::WA_DeleteOnClose);
  dialog->setWindowTitle(tr("Keys"));
  auto* buttons = new QDialogButtonBox(QDialogButtonBox::Close, dialog);
  buttons->button(QDialogButtonBox::Close)->setToolTip(tr("Close this list (Esc)"));
  QObject::connect(buttons, &QDialogButtonBox::rejected, dialog, &QDialog::reject);
  auto* layout = new QVBoxLayout(dialog);
  layout->addWidget(make_table(dialog));
  layout->addWidget(buttons);
  const int em = dialog->fontMetrics().height();
  dialog->resize(48 * em, 40 * em);
  dialog->show();
  return dialog;
}

}  // namespace stowage::gui
