// The lanes over time: layers, CPU launch, compute, both copy lanes, stalls; a ruler and the phases
// above them.
#pragma once

#include <vector>

#include "gui/widgets/lane_painter.h"
#include "gui/widgets/plot_view.h"

namespace stowage::gui {

class TimelinePlot : public PlotView {
  Q_OBJECT
 public:
  explicit TimelinePlot(ViewState& state, QWidget* parent = nullptr);

  // Where a lane's row is painted, for tests and tool tips.
  [[nodiscard]] QRect row_rect(LaneKind kind, std::size_t row = 0) const;

  // From the copy, or the update, that a stall waits for to that stall; as painted. Of those that
  // are selected, and of stalls that are wide enough to be told apart.
  struct WaitArrow {
    QPoint from;  // where the copy ends
    QPoint to;    // where the stall ends
    std::int32_t stall = -1;
    bool is_selected = false;
  };
  [[nodiscard]] std::vector<WaitArrow> wait_arrows() const;

  // Below the lanes: the lifetime of what is selected, and below that how much of the link is used.
  [[nodiscard]] QRect lifetime_rect() const;
  [[nodiscard]] QRect link_rect() const;
  // Below the link: the bytes on the host, as high as the larger of what the plan takes there and
  // its budget for that, if that is near. Empty: the plan has nothing there.
  [[nodiscard]] QRect host_rect() const;
  // The lowest row: all of the step, however little of it is seen above, and which part that is. A
  // press or a drag in it goes there.
  [[nodiscard]] QRect minimap_rect() const;
  // When what is selected happens; of a layer the span nearest to the cursor. Absent: it is in no
  // lane.
  [[nodiscard]] std::optional<TimeRange> range_of_selection() const { return selected_time(); }

  [[nodiscard]] Selection hit(const QPoint& at) const override;
  [[nodiscard]] QString describe(const QPoint& at) const override;
  [[nodiscard]] QSize minimumSizeHint() const override;
  // Of the step that is shown: its header and all rows of its lanes.
  [[nodiscard]] QSize sizeHint() const override;

 protected:
  void render_still(QPainter& painter) override;
  void render(QPainter& painter, QImage& canvas) override;
  void overlay(QPainter& painter) override;
  void forget_names() override { lane_painter_.forget_names(); }
  [[nodiscard]] std::optional<TimeRange> selected_time() const override;
  [[nodiscard]] bool begin_drag(const QPoint& at) override;
  void drag(const QPoint& at) override;

 private:
  struct Found {
    const LaneView* lane = nullptr;
    const LaneRow* row = nullptr;
    std::size_t span = 0;
  };
  [[nodiscard]] int header_height() const;
  [[nodiscard]] int line_height() const;
  [[nodiscard]] int total_rows() const;
  [[nodiscard]] int rows_below() const;  // the lanes
  [[nodiscard]] QString original_words(const SpanInfo& info) const;
  [[nodiscard]] QString link_words(const QPoint& at) const;
  [[nodiscard]] QString stall_words(const SpanInfo& info, const QString& name) const;
  // What is selected, as the lanes have it: of an op inside others the outermost one.
  [[nodiscard]] Selection in_lanes() const;
  [[nodiscard]] std::optional<Found> find(const QPoint& at) const;
  [[nodiscard]] int row_height() const;
  void paint_lifetime(QPainter& painter, const TimeAxis& axis);
  void paint_link(QPainter& painter, const TimeAxis& axis);
  void paint_host(QPainter& painter, const TimeAxis& axis);
  [[nodiscard]] QString host_words(const QPoint& at) const;
  [[nodiscard]] TimeAxis whole_step() const;
  void paint_minimap(QPainter& painter, const TimeAxis& axis);
  void paint_background(QPainter& painter);
  void paint_waits(QPainter& painter);
  void paint_ruler(QPainter& painter, const TimeAxis& axis);
  void paint_phases(QPainter& painter, const TimeAxis& axis);

  LanePainter lane_painter_;
};

}  // namespace stowage::gui
