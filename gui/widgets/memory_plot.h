// Memory over time, stacked by class, with its peak and the budget line, which can be dragged.
#pragma once

#include <QFontMetrics>
#include <optional>
#include <vector>

#include "gui/model/axis_ticks.h"
#include "gui/widgets/memory_image.h"
#include "gui/widgets/plot_view.h"
#include "simulator/plan/plan.h"

namespace stowage::gui {

class MemoryPlot : public PlotView {
  Q_OBJECT
 public:
  explicit MemoryPlot(ViewState& state, QWidget* parent = nullptr);

  // Absent: no budget; there is a handle to pull one down with. `kept`: the plan is within it.
  // `counted_peak`: of the step that is shown, in the counter that the budget is on, which need not
  // be the curve's; below 0 = not known.
  void set_budget(std::optional<Bytes> budget, simulator::PeakKind on, bool kept,
                  Bytes counted_peak);
  // What the step that is shown reserves in each memory, as lines over the curve; that of
  // `placement` is solid. Absent: the device has no such counter.
  struct ReservedLines {
    Bytes planned = 0;
    Bytes caching = 0;
    simulator::PlacementMode placement = simulator::PlacementMode::caching;
    bool operator==(const ReservedLines&) const = default;
  };
  void set_reserved(const std::optional<ReservedLines>& reserved);
  [[nodiscard]] const std::optional<ReservedLines>& reserved() const { return reserved_; }
  // The step before the last edit: its upper edge is drawn as a dash-dotted line where it is
  // another one. Null: none.
  void set_ghost(StepPicturePtr before);
  [[nodiscard]] const StepPicturePtr& ghost() const { return ghost_; }
  // What is written at the budget's line, and at the peak (precondition: there is a curve).
  [[nodiscard]] QString budget_words() const;
  [[nodiscard]] QString peak_words() const;
  // Which clock the curve's times are of, written beside its axis: "launch time", "device time";
  // empty where there is but one.
  [[nodiscard]] QString clock_words() const;
  [[nodiscard]] std::optional<Bytes> budget() const { return budget_; }

  // The part of the plot that bytes are mapped to, and how: the scale is that of the step with
  // nothing moved or of the one before the edit, where they are higher, so that it stays while
  // plans change.
  [[nodiscard]] QRect curve_rect() const;
  [[nodiscard]] ByteAxis byte_axis() const;
  // Its round numbers, all of one unit and precision.
  [[nodiscard]] std::vector<AxisTick> scale() const;
  // Where the budget line, or its handle, is.
  [[nodiscard]] int budget_y() const;

  // What is written over the curve: no label lies on a straight line of it, nor on another label.
  struct Label {
    QString text;
    QRect box;  // empty: there is no such label
  };
  struct Labels {
    Label budget;
    Label caching;
    Label planned;
    Label peak;
  };
  [[nodiscard]] Labels labels() const;
  // Rows of pixels that straight lines take: the budget's, and those of what is reserved.
  [[nodiscard]] std::vector<QRect> lines() const;

  [[nodiscard]] Selection hit(const QPoint& at) const override;
  [[nodiscard]] QString describe(const QPoint& at) const override;
  [[nodiscard]] QSize minimumSizeHint() const override;
  [[nodiscard]] QSize sizeHint() const override;

 Q_SIGNALS:
  // While the line moves, and where it is let go. `drag` counts the drags: one number a drag.
  void budget_dragged(stowage::Bytes budget, int drag);
  void budget_dropped(stowage::Bytes budget);

 protected:
  void render_still(QPainter& painter) override;
  void render(QPainter& painter, QImage& canvas) override;
  void overlay(QPainter& painter) override;
  [[nodiscard]] std::optional<TimeRange> selected_time() const override;
  bool begin_drag(const QPoint& at) override;
  void drag(const QPoint& at) override;
  void end_drag(const QPoint& at) override;
  // Ctrl+Up and Ctrl+Down move the budget without a mouse.
  void keyPressEvent(QKeyEvent* event) override;
  void mouseMoveEvent(QMouseEvent* event) override;

 private:
  [[nodiscard]] Bytes peak() const;
  [[nodiscard]] std::int64_t point_at(const QPoint& at) const;
  // The triangle above the peak; empty while the peak is not in sight.
  [[nodiscard]] QRect peak_mark() const;
  void paint_peak(QPainter& painter) const;
  void paint_reserved(QPainter& painter) const;
  void paint_label(QPainter& painter, const Label& label, const QColor& ink) const;
  void paint_budget_label(QPainter& painter, const Label& label) const;
  // What the allocator has handed out, and what it holds, as lines over the stack.
  void paint_counter(QPainter& painter, const MinMaxPyramid& counter, Qt::PenStyle style) const;
  // The band of what is selected, lowest in that of its class.
  void paint_lifetime(QPainter& painter) const;
  void paint_ghost(QPainter& painter) const;

  StepPicturePtr ghost_;
  std::optional<Bytes> budget_;
  simulator::PeakKind on_ = simulator::PeakKind::active;
  bool kept_ = true;
  Bytes counted_peak_ = 0;
  std::optional<ReservedLines> reserved_;
  std::optional<Bytes> frozen_top_;  // while the line is dragged the scale stays
  bool dragging_ = false;
  QPoint grabbed_at_;
  int drags_ = 0;
};

}  // namespace stowage::gui
