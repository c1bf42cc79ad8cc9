// The plan tree as Qt's item views see it. Rows are numbers of PlanTree::rows, so nothing is made
// a row until it is shown, and nothing when a replay comes in: its figures are read when painted.
#pragma once

#include <QAbstractItemModel>
#include <QSortFilterProxyModel>
#include <memory>

#include "gui/model/decision_kinds.h"
#include "gui/model/explained.h"
#include "gui/model/plan_document.h"
#include "gui/model/plan_tree.h"

namespace stowage::gui {

class PlanTreeModel : public QAbstractItemModel {
  Q_OBJECT
 public:
  enum Column {
    name_column,
    bytes_column,
    decision_column,
    pin_column,
    first_column,
    last_column,
    stall_column,
    columns
  };
  // SortRole: a number, or the place in forward order. KindRole: id of the decision, "mixed", or
  // empty. RowRole: row of PlanTree::rows. FilterRole: what a filter looks at.
  enum Role { sort_role = Qt::UserRole, kind_role, row_role, filter_role };

  PlanTreeModel(PlanDocument& document, Explanations& explanations, QObject* parent = nullptr);

  // Null while nothing is open.
  [[nodiscard]] const std::shared_ptr<const PlanTree>& tree() const { return tree_; }
  [[nodiscard]] QModelIndex index_of(std::int32_t row, int column = name_column) const;
  // Of how many saved tensors that can move a layer offloads how many, and how many of them are
  // made again in backward.
  struct Share {
    std::int32_t offloaded = 0;
    std::int32_t recomputed = 0;
    std::int32_t by_layer = 0;  // of these, not by ops
    std::int32_t all = 0;
    // Of how many layers in it, itself too, the parameters (the optimizer state) could stream, and
    // of how many they do.
    std::int32_t parameters = 0;
    std::int32_t parameters_away = 0;
    std::int32_t state = 0;
    std::int32_t state_away = 0;
    std::int32_t state_on_host = 0;  // of how many the host updates the parameters
    // Decisions that a search could leave alone, and that it does.
    std::int32_t decisions = 0;
    std::int32_t pinned = 0;
    void add(const Share& inner);
  };
  [[nodiscard]] Share share_of(std::int32_t layer_row) const;

  [[nodiscard]] QModelIndex index(int row, int column, const QModelIndex& parent) const override;
  [[nodiscard]] QModelIndex parent(const QModelIndex& child) const override;
  [[nodiscard]] int rowCount(const QModelIndex& parent) const override;
  [[nodiscard]] int columnCount(const QModelIndex& parent) const override;
  [[nodiscard]] QVariant data(const QModelIndex& index, int role) const override;
  [[nodiscard]] QVariant headerData(int section, Qt::Orientation orientation,
                                    int role) const override;
  [[nodiscard]] Qt::ItemFlags flags(const QModelIndex& index) const override;
  // Decision column, a kind's id; pin column, a Qt::CheckState as check role: an edit of the
  // document.
  bool setData(const QModelIndex& index, const QVariant& value, int role) override;

 Q_SIGNALS:
  // Decisions and figures of any row may be other ones: what is seen is to be painted again.
  // dataChanged() tells of the outermost rows alone, since views look at each row that it names.
  void refreshed();

 private:
  using DecisionsPtr = std::shared_ptr<const PlanDecisions>;
  void follow();
  void follow_document();
  void compute();
  void refresh();
  [[nodiscard]] DecisionsPtr wanted() const;
  [[nodiscard]] const PlanDecisions* decisions() const { return decisions_.get(); }
  [[nodiscard]] RowFigures figures_of(std::size_t row) const;
  [[nodiscard]] const PlanRow& row_at(const QModelIndex& index) const;
  [[nodiscard]] QString name(const PlanRow& row) const;
  [[nodiscard]] QString how_again(std::size_t row) const;
  [[nodiscard]] QString decision_text(const QModelIndex& index) const;
  [[nodiscard]] QString saved_text(const QModelIndex& index) const;
  [[nodiscard]] QString kind_id(const QModelIndex& index) const;
  [[nodiscard]] QVariant check_state(const QModelIndex& index) const;
  [[nodiscard]] static QStringList streaming_words(const Share& share);
  // Why a row of parameters or of optimizer state stays whatever is decided; empty for others.
  [[nodiscard]] std::string reason_to_stay(const PlanRow& row) const;
  [[nodiscard]] QString tip(const QModelIndex& index) const;
  [[nodiscard]] QVariant sort_value(const QModelIndex& index) const;
  [[nodiscard]] QString text(const QModelIndex& index) const;

  PlanDocument& document_;
  Explanations& explanations_;
  std::shared_ptr<const PlanTree> tree_;
  DecisionsPtr decisions_;     // shown; null: none for this tree
  std::vector<Share> shares_;  // by row
};

// Sorting by the numbers, and a filter: every word of `text` is in the row's name or decision, or
// in those of a row inside it.
class PlanTreeFilter : public QSortFilterProxyModel {
  Q_OBJECT
 public:
  explicit PlanTreeFilter(QObject* parent = nullptr);
  void set_text(const QString& text);
  // Without a filter no row of a folded layer is looked at.
  [[nodiscard]] bool hasChildren(const QModelIndex& parent) const override;

 protected:
  [[nodiscard]] bool filterAcceptsRow(int row, const QModelIndex& parent) const override;

 private:
  QStringList words_;
};

}  // namespace stowage::gui
