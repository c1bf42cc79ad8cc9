// Plans as points of memory and step time, above the line below which no plan can be
// (ParetoPainter draws them).
// Keys (gui/widgets/keys.h) go from point to point, Return or a click loads the plan, a pointer
// over a point shows its figures.
#pragma once

#include <QString>
#include <QWidget>
#include <optional>
#include <vector>

#include "gui/widgets/pareto_painter.h"

namespace stowage::gui {

class ParetoPlot : public QWidget {
  Q_OBJECT
 public:
  explicit ParetoPlot(QWidget* parent = nullptr);

  using Mark = ParetoMark;
  using Content = ParetoContent;
  // The mark that is chosen stays so while it is there.
  void show_content(Content content);
  [[nodiscard]] const Content& content() const { return content_; }

  // Row of content().marks that keys and clicks are about, -1 = none.
  [[nodiscard]] int chosen() const { return chosen_; }
  void choose(int mark);
  [[nodiscard]] QPointF position(int mark) const;
  // Row of content().marks there, -1 = none.
  [[nodiscard]] int mark_at(const QPointF& where) const;

  // Of the plot as it is now; not for longer than that.
  [[nodiscard]] ParetoPainter painter_of() const;

  [[nodiscard]] QSize minimumSizeHint() const override;
  [[nodiscard]] QSize sizeHint() const override;

 Q_SIGNALS:
  void load_requested(int point);
  void chosen_changed(int mark);

 protected:
  bool event(QEvent* event) override;
  void changeEvent(QEvent* event) override;
  void keyPressEvent(QKeyEvent* event) override;
  void leaveEvent(QEvent* event) override;
  void mouseMoveEvent(QMouseEvent* event) override;
  void mousePressEvent(QMouseEvent* event) override;
  void paintEvent(QPaintEvent* event) override;

 private:
  Theme theme_;
  Content content_;
  int chosen_ = -1;
  int hovered_ = -1;
};

}  // namespace stowage::gui
