// A row of a table that a click on a header sorts: by numbers where a cell has one, by its words
// else; what sums others up is the last row either way. And what such a row speaks of.
#pragma once

#include <QPoint>
#include <QString>
#include <QTreeWidgetItem>
#include <functional>

#include "gui/model/view_state.h"

namespace stowage::gui {

class SortedItem : public QTreeWidgetItem {
 public:
  explicit SortedItem(const QStringList& texts, const Selection& link = {});

  bool operator<(const QTreeWidgetItem& other) const override;

  // The number that a cell is sorted by, and its words to the right.
  void set_number(int column, std::int64_t number);
  void set_sum();  // it sums others up

  // Nothing: the row speaks of nothing that could be selected.
  [[nodiscard]] static Selection link_of(const QTreeWidgetItem* item);
};

// A right click into the rows, or the key for it: `select` gets the row there, null beside all of
// them, then `show_menu` the place on the screen.
void on_row_menu(QTreeWidget& rows, std::function<void(QTreeWidgetItem*)> select,
                 std::function<void(const QPoint&)> show_menu);

// Title and all rows of a table as text: a line each, columns with tabs between them.
[[nodiscard]] QString table_text(const QString& title, const QTreeWidget& rows);

}  // namespace stowage::gui
