// Two results beside each other: the plan and what it was before, or a step in which nothing moves,
// what was measured, or another file's plan or trace. Figures with their differences, and both
// memory curves.
#pragma once

#include <QComboBox>
#include <QLabel>
#include <QPushButton>
#include <QTreeWidget>
#include <QWidget>
#include <functional>
#include <memory>
#include <optional>

#include "gui/model/comparison.h"
#include "gui/model/plan_document.h"
#include "gui/widgets/curve_pair.h"
#include "gui/widgets/empty_stack.h"
#include "gui/widgets/late_refresh.h"

namespace stowage::gui {

class CompareView : public QWidget {
  Q_OBJECT
 public:
  enum class What : std::uint8_t { baseline, resident, measured, file };

  CompareView(PlanDocument& document, ViewState& state, QWidget* parent = nullptr);

  void compare_with(What what);
  // A plan for the open trace, a trace, or a result; errors come by failed().
  void compare_with_file(const QString& file);
  [[nodiscard]] QComboBox& choice() { return *choice_; }
  [[nodiscard]] QTreeWidget& rows() { return *rows_; }
  [[nodiscard]] CurvePair& curves() { return *curves_; }
  [[nodiscard]] JobRunner& job() { return job_; }
  [[nodiscard]] QString reason() const { return stack_->reason(); }
  [[nodiscard]] const std::vector<ComparedRow>& compared_rows() const { return compared_; }

 Q_SIGNALS:
  void failed(const stowage::Error& error);

 private:
  struct Side {
    QString name;
    std::vector<report::Fact> facts;
    StepPicturePtr view;  // none: there is no curve
  };
  void ask_for_file();
  void refresh();
  struct Replayed {
    SimulatedPtr simulated;
    StepPicturePtr view;
  };
  // `made_` is then what `make` makes of `of`, behind the window; until it is there, nothing.
  void make_side(std::shared_ptr<const void> of, std::function<Replayed(const JobContext&)> make);
  // The other file beside the plan, or why there is none.
  void show_other(const Side& current);
  void show_sides(const Side& before, const Side& after);
  void fill(const std::vector<ComparedRow>& rows, const QString& before, const QString& after);

  PlanDocument& document_;
  QComboBox* choice_;
  QPushButton* pin_;
  QTreeWidget* rows_;
  CurvePair* curves_;
  EmptyStack* stack_;
  std::vector<ComparedRow> compared_;
  std::shared_ptr<const void> made_of_;
  Replayed made_;
  std::optional<Opened> other_;
  QString other_file_;
  LateRefresh late_{*this, [this] { refresh(); }};
  JobRunner job_;  // last: it waits for its thread ahead of everything else's end
};

}  // namespace stowage::gui
