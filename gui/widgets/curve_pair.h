// Two memory curves over one another: before dashed and hatched below, after solid. Peaks are those
// of each column of pixels, so none is lost. The cursor is that of all views.
#pragma once

#include <QPainter>
#include <QString>
#include <QWidget>

#include "gui/model/step_picture.h"
#include "gui/model/view_state.h"
#include "gui/widgets/theme.h"

namespace stowage::gui {

class CurvePair : public QWidget {
  Q_OBJECT
 public:
  explicit CurvePair(ViewState& state, QWidget* parent = nullptr);

  // Null: that one is left out.
  void show_curves(StepPicturePtr before, const QString& before_name, StepPicturePtr after,
                   const QString& after_name);
  [[nodiscard]] bool empty() const { return !before_ && !after_; }
  // "1.05 s: before 55.2 GB, now 35.9 GB" at the cursor; empty without one.
  [[nodiscard]] QString cursor_words() const;
  [[nodiscard]] QSize minimumSizeHint() const override;
  [[nodiscard]] QSize sizeHint() const override;

 protected:
  void changeEvent(QEvent* event) override;
  void mouseMoveEvent(QMouseEvent* event) override;
  void paintEvent(QPaintEvent* event) override;

 private:
  struct Scale {
    QRectF plot;
    double end = 1;  // ns at its right
    double top = 1;  // bytes at its upper edge
  };
  // An empty plot where there is no room.
  [[nodiscard]] Scale scale() const;
  void paint_axes(QPainter& painter, const Scale& scale) const;
  void paint_cursor(QPainter& painter, const Scale& scale) const;
  [[nodiscard]] QPolygonF outline(const StepPicture& view, const QRectF& plot, double end,
                                  double top) const;

  ViewState& state_;
  Theme theme_;
  StepPicturePtr before_;
  StepPicturePtr after_;
  QString before_name_;
  QString after_name_;
};

}  // namespace stowage::gui
