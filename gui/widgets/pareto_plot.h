// Plans as points of memory and step time, above the line below which no plan can be.
// Keys (gui/widgets/keys.h) go from point to point, Return or a click loads the plan, a pointer
// over a point shows its figures.
#pragma once

#include <QString>
#include <QWidget>
#include <optional>
#include <vector>

#include "gui/model/pareto_search.h"
#include "gui/model/scatter_scale.h"
#include "gui/widgets/theme.h"

namespace stowage::gui {

class ParetoPlot : public QWidget {
  Q_OBJECT
 public:
  explicit ParetoPlot(QWidget* parent = nullptr);

  struct Mark {
    enum class Kind : std::uint8_t { planned, policy, resident, current };
    Kind kind = Kind::planned;
    Bytes peak = 0;
    Nanoseconds step = 0;
    QString label;    // beside it; may be empty
    QString figures;  // of the tool tip, lines
    int point = -1;   // of ParetoSearch::points(), -1 = nothing to load
    bool best = true;
  };
  struct Content {
    std::vector<Mark> marks;  // in order of peaks
    std::vector<BoundPoint> bounds;
    Bytes floor = 0;
    std::optional<Bytes> budget;
    Nanoseconds resident_step = 0;
    QString memory_title;  // "peak active memory"
  };
  // The mark that is chosen stays so while it is there.
  void show_content(Content content);
  [[nodiscard]] const Content& content() const { return content_; }

  // Row of content().marks that keys and clicks are about, -1 = none.
  [[nodiscard]] int chosen() const { return chosen_; }
  void choose(int mark);
  [[nodiscard]] QPointF position(int mark) const;
  // Row of content().marks there, -1 = none.
  [[nodiscard]] int mark_at(const QPointF& where) const;

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
  [[nodiscard]] ScatterScale scale() const;
  [[nodiscard]] QRectF bound_label(const ScatterScale& scale) const;
  void paint_axes(QPainter& painter, const ScatterScale& scale) const;
  void paint_bound(QPainter& painter, const ScatterScale& scale) const;
  void paint_front(QPainter& painter, const ScatterScale& scale) const;
  void paint_marks(QPainter& painter, const ScatterScale& scale) const;
  void paint_labels(QPainter& painter, const ScatterScale& scale) const;

  Theme theme_;
  Content content_;
  int chosen_ = -1;
  int hovered_ = -1;
};

}  // namespace stowage::gui
