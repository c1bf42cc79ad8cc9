// Another machine than the recorded one: a field for each calibration value of `stowage simulate
// --set` (which knows no other device's compute speed), known links, and the way back. The link
// that was chosen stays shown as long as its rates hold, whatever is planned on it. A value that is
// not the recorded one is marked "assumed" and replayed at once. The machine is no part of the
// plan: it has Reset instead of undo.
#pragma once

#include <QComboBox>
#include <QDoubleSpinBox>
#include <QGroupBox>
#include <QLabel>
#include <QPushButton>
#include <QToolButton>
#include <vector>

#include "gui/model/plan_document.h"
#include "simulator/machine/calibration_settings.h"

namespace stowage::gui {

class MachinePanel : public QGroupBox {
  Q_OBJECT
 public:
  explicit MachinePanel(PlanDocument& document, QWidget* parent = nullptr);
  ~MachinePanel() override;

  [[nodiscard]] QComboBox& link() { return *link_; }
  // Of a setting: "link.h2d_gbps"; null = there is none.
  [[nodiscard]] QDoubleSpinBox* field(const QString& name) const;
  [[nodiscard]] bool is_marked(const QString& name) const;
  [[nodiscard]] QPushButton& reset_button() { return *reset_; }

 Q_SIGNALS:
  void taken();
  void refused(const stowage::Error& error);

 private:
  struct Row {
    const simulator::CalibrationSetting* setting;
    QDoubleSpinBox* field;
    QLabel* mark;
    QToolButton* back;
  };
  [[nodiscard]] Row make_row(const simulator::CalibrationSetting& setting);
  [[nodiscard]] const Row* row_of(const QString& name) const;
  // Whether its field shows another value than the recorded one; what a field cannot show is none.
  [[nodiscard]] bool differs(const Row& row) const;
  // Entry of the list of links whose rates the fields show, 0 = none.
  [[nodiscard]] int known_link() const;
  void take_link();
  void take_settings();
  void reset();
  void refresh();

  PlanDocument& document_;
  QComboBox* link_;
  QPushButton* reset_;
  QLabel* state_;
  std::vector<Row> rows_;
  Calibration recorded_;
};

}  // namespace stowage::gui
