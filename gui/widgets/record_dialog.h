// "Record...": runs `stowage profile` and asks the window to open what it recorded.
#pragma once

#include <QComboBox>
#include <QLineEdit>
#include <QSpinBox>

#include "gui/widgets/run_dialog.h"

namespace stowage::gui {

class RecordDialog : public RunDialog {
  Q_OBJECT
 public:
  explicit RecordDialog(QWidget* parent = nullptr);
  ~RecordDialog() override;

  [[nodiscard]] QComboBox& model() { return *model_; }
  [[nodiscard]] QComboBox& device() { return *device_; }
  [[nodiscard]] QComboBox& dtype() { return *dtype_; }
  [[nodiscard]] QComboBox& autocast() { return *autocast_; }
  [[nodiscard]] QComboBox& grad_scaler() { return *grad_scaler_; }
  [[nodiscard]] QComboBox& optimizer() { return *optimizer_; }
  [[nodiscard]] QSpinBox& batch() { return *batch_; }
  [[nodiscard]] QLineEdit& file() { return *file_; }

 Q_SIGNALS:
  void recorded(const QString& file);

 protected:
  [[nodiscard]] QStringList arguments(QString& why_not) const override;
  void finished(const CommandRun::End& end) override;

 private:
  QComboBox* model_;
  QComboBox* device_;
  QSpinBox* batch_;
  QSpinBox* seq_;
  QComboBox* dtype_;
  QComboBox* autocast_;
  QComboBox* optimizer_;
  QComboBox* grad_scaler_;
  QLineEdit* file_;
};

}  // namespace stowage::gui
