#include "gui/widgets/sorted_item.h"

#include <QHeaderView>
#include <QTreeWidget>
#include <utility>

namespace stowage::gui {
namespace {

constexpr int kLinkRole = Qt::UserRole;  // its kind in column 0, its row in column 1
constexpr int kNumberRole = Qt::UserRole + 1;
constexpr int kSumRole = Qt::UserRole + 2;

}  // namespace

SortedItem::SortedItem(const QStringList& texts, const Selection& link) : QTreeWidgetItem(texts) {
  setData(0, kLinkRole, static_cast<int>(link.kind));
  setData(1, kLinkRole, link.row);
}

bool SortedItem::operator<(const QTreeWidgetItem& other) const {
  const bool is_sum = data(0, kSumRole).toBool();
  if (is_sum != other.data(0, kSumRole).toBool()) {
    const bool up = treeWidget()->header()->sortIndicatorOrder() == Qt::AscendingOrder;
    return is_sum != up;
  }
  const int column = treeWidget()->sortColumn();
  const QVariant mine = data(column, kNumberRole);
  const QVariant theirs = other.data(column, kNumberRole);
  if (mine.isValid() && theirs.isValid()) return mine.toLongLong() < theirs.toLongLong();
  return text(column).localeAwareCompare(other.text(column)) < 0;
}

void SortedItem::set_number(int column, std::int64_t number) {
  setData(column, kNumberRole, QVariant::fromValue<qlonglong>(number));
  setTextAlignment(column, Qt::AlignRight | Qt::AlignVCenter);
}

void SortedItem::set_sum() {
  setData(0, kSumRole, true);
}

Selection SortedItem::link_of(const QTreeWidgetItem* item) {
  if (item == nullptr || item->data(1, kLinkRole).toInt() < 0) return {};
  return {static_cast<Selection::Kind>(item->data(0, kLinkRole).toInt()),
          item->data(1, kLinkRole).toInt()};
}

void on_row_menu(QTreeWidget& rows, std::function<void(QTreeWidgetItem*)> select,
                 std::function<void(const QPoint&)> show_menu) {
  rows.setContextMenuPolicy(Qt::CustomContextMenu);
  QObject::connect(
      &rows, &QWidget::customContextMenuRequested, &rows,
      [&rows, select = std::move(select), show = std::move(show_menu)](const QPoint& at) {
        select(rows.itemAt(at));
        show(rows.viewport()->mapToGlobal(at));
      });
}

QString table_text(const QString& title, const QTreeWidget& rows) {
  QString text = title + QLatin1Char('\n');
  for (int i = 0; i < rows.topLevelItemCount(); ++i) {
    const QTreeWidgetItem& item = *rows.topLevelItem(i);
    QStringList columns;
    for (int column = 0; column < item.columnCount(); ++column) columns << item.text(column);
    text += columns.join(QLatin1Char('\t')) + QLatin1Char('\n');
  }
  return text;
}

}  // namespace stowage::gui
