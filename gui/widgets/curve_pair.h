// Two memory curves over one another: before dashed and hatched below, after solid. Peaks are those
// of each column of pixels, so none is lost.
#pragma once

#include <QString>
#include <QWidget>

#include "gui/model/step_picture.h"
#include "gui/widgets/theme.h"

namespace stowage::gui {

class CurvePair : public QWidget {
  Q_OBJECT
 public:
  explicit CurvePair(QWidget* parent = nullptr);

  // Null: that one is left out.
  void show_curves(StepPicturePtr before, const QString& before_name, StepPicturePtr after,
                   const QString& after_name);
  [[nodiscard]] bool empty() const { return !before_ && !after_; }
  [[nodiscard]] QSize minimumSizeHint() const override;
  [[nodiscard]] QSize sizeHint() const override;

 protected:
  void changeEvent(QEvent* event) override;
  void paintEvent(QPaintEvent* event) override;

 private:
  [[nodiscard]] QPolygonF outline(const StepPicture& view, const QRectF& plot, double end,
                                  double top) const;

  Theme theme_;
  StepPicturePtr before_;
  StepPicturePtr after_;
  QString before_name_;
  QString after_name_;
};

}  // namespace stowage::gui
