// Ctrl+F: a field, next and previous, and how many there are. The search runs in the background.
#pragma once

#include <QLabel>
#include <QLineEdit>
#include <QToolButton>
#include <QWidget>
#include <vector>

#include "gui/model/job_runner.h"
#include "gui/model/name_search.h"
#include "gui/model/plan_document.h"

namespace stowage::gui {

class SearchBar : public QWidget {
  Q_OBJECT
 public:
  SearchBar(PlanDocument& document, ViewState& state, QWidget* parent = nullptr);

  void open();   // shows it, with the text selected
  void close();  // hides it
  void next();
  void previous();
  [[nodiscard]] int count() const { return static_cast<int>(hits_.size()); }
  [[nodiscard]] int current() const { return current_; }  // -1 = none
  [[nodiscard]] QLineEdit& field() { return *field_; }
  [[nodiscard]] QString status() const { return status_->text(); }
  [[nodiscard]] bool busy() const { return runner_.busy(); }

 Q_SIGNALS:
  void found(const stowage::gui::SearchHit& hit);  // it is selected already
  void closed();

 protected:
  void keyPressEvent(QKeyEvent* event) override;

 private:
  void start();
  void look(bool goes_there);  // to the first hit
  void go_to(int row);
  void tell();

  PlanDocument& document_;
  ViewState& state_;
  QLineEdit* field_;
  QLabel* status_;
  QToolButton* next_;
  QToolButton* previous_;
  StepRowsPtr rows_;  // of the step that hits are of
  std::vector<SearchHit> hits_;
  int current_ = -1;
  JobRunner runner_;
};

}  // namespace stowage::gui
