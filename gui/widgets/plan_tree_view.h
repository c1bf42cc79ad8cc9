// The plan as a tree: layers, their parameters, optimizer state and saved tensors, and what is
// decided about each.
// Decisions are changed by row, by layer or for all rows that are selected; each change is an edit
// of the document that is replayed at once.
//
// Keys are those of KeyPlace::plan and ::filter (gui/widgets/keys.h); Left and Right fold, the menu
// key has all of it.
#pragma once

#include <QLabel>
#include <QLineEdit>
#include <QMenu>
#include <QTreeView>
#include <QWidget>

#include "gui/model/plan_tree_model.h"
#include "gui/model/view_state.h"
#include "gui/widgets/empty_stack.h"

namespace stowage::gui {

class PlanTreeView : public QWidget {
  Q_OBJECT
 public:
  PlanTreeView(PlanDocument& document, ViewState& state, Explanations& explanations,
               QWidget* parent = nullptr);

  [[nodiscard]] QTreeView& tree() { return *tree_; }
  [[nodiscard]] QLineEdit& filter() { return *filter_; }
  [[nodiscard]] PlanTreeModel& model() { return model_; }
  [[nodiscard]] QString summary() const { return summary_->text(); }
  // Where a row of PlanTree::rows is in the view; invalid when it is filtered out.
  [[nodiscard]] QModelIndex view_index(std::int32_t row,
                                       int column = PlanTreeModel::name_column) const;
  // Rows of PlanTree::rows that are selected, in order.
  [[nodiscard]] std::vector<std::int32_t> chosen() const;
  // What can be decided about the selected rows: the context menu, and for a menu of the window.
  void fill_menu(QMenu& menu);
  // A search leaves all that the selected rows decide as it is, or where it does already, none of
  // it any more; false = nothing changed.
  bool toggle_pins();
  // To the selected rows (apply_key); false = nothing changed.
  bool apply(QChar key, PlanRowKind of_layers);

 protected:
  bool eventFilter(QObject* watched, QEvent* event) override;

 private:
  bool key_pressed(QKeyEvent& event);
  void add_pin_entries(QMenu& menu);
  // Of the selected rows how many decisions can be pinned, and are.
  [[nodiscard]] PlanTreeModel::Share pins_of_chosen() const;
  void tell();
  [[nodiscard]] StepRowsPtr rows() const;  // of the step that selections are of
  void select_in_state();
  void show_selection();
  void expand_found();
  // What the other columns leave of the width, and where that is little a name's begin at least.
  void give_names_the_rest();

  PlanDocument& document_;
  ViewState& state_;
  PlanTreeModel model_;
  PlanTreeFilter filtered_;
  QLineEdit* filter_;
  QTreeView* tree_;
  EmptyStack* stack_;
  QLabel* summary_;
  bool selecting_ = false;  // this view changes the selection: it need not follow
};

}  // namespace stowage::gui
