// "Verify on this machine": runs `stowage verify` for the plan as it is now, saved beside its
// result in a temporary folder, shows what came out and asks the window to open the result.
#pragma once

#include <QComboBox>
#include <QSpinBox>
#include <QTemporaryDir>

#include "gui/model/plan_document.h"
#include "gui/widgets/run_dialog.h"

namespace stowage::gui {

class VerifyDialog : public RunDialog {
  Q_OBJECT
 public:
  explicit VerifyDialog(PlanDocument& document, QWidget* parent = nullptr);
  ~VerifyDialog() override;

  [[nodiscard]] QString plan_file() const;
  [[nodiscard]] QString result_file() const;

 Q_SIGNALS:
  // Of the kind `stowage verify --json`; there as long as this dialog is.
  void verified(const QString& result_file);

 protected:
  [[nodiscard]] QStringList arguments(QString& why_not) const override;
  bool prepare() override;
  void finished(const CommandRun::End& end) override;

 private:
  PlanDocument& document_;
  QTemporaryDir folder_;
  QComboBox* device_;
  QSpinBox* steps_;
};

}  // namespace stowage::gui
