// A view with the shared time axis below its pixels: zoom, pan, cursor, range, keys, and what is
// painted over the plot. Subclasses paint the plot into a cache that is made anew only when what it
// shows changes; moving the cursor costs a blit.
#pragma once

#include <QImage>
#include <QWidget>
#include <optional>

#include "gui/model/lifetime.h"
#include "gui/model/step_picture.h"
#include "gui/model/step_rows.h"
#include "gui/model/view_state.h"
#include "gui/widgets/theme.h"

namespace stowage::gui {

class PlotView : public QWidget {
  Q_OBJECT
 public:
  explicit PlotView(ViewState& state, QWidget* parent = nullptr);

  // Null: nothing is open. `trace` is what names are looked up in; `rows`: of the step that
  // selections are of, where that is not the recording.
  void show_step(TracePtr trace, StepPicturePtr view, StepRowsPtr rows = nullptr);
  [[nodiscard]] const StepPicturePtr& view() const { return view_; }
  // Of what is selected, in the step that is shown; absent: of nothing.
  void set_lifetime(const std::optional<Lifetime>& lifetime);
  [[nodiscard]] const std::optional<Lifetime>& lifetime() const { return lifetime_; }

  // Where times are mapped to: right of the gutter. The gutter is as wide in every view.
  [[nodiscard]] QRect plot() const;
  // The shared axis on this view's width.
  [[nodiscard]] TimeAxis axis() const;
  // What is at this place, a row of the step that is shown.
  [[nodiscard]] virtual Selection hit(const QPoint& at) const = 0;
  // Text of the tool tip there; empty = none.
  [[nodiscard]] virtual QString describe(const QPoint& at) const = 0;

 Q_SIGNALS:
  void peak_requested();
  void range_measured();  // a drag over the plot ended
  // A right click, or the menu key: what is there is selected, and the cursor is there.
  void menu_requested(const QPoint& global);

 protected:
  // Paint into a cache of the widget's size: first what stays while the time axis moves (gutter,
  // legend), only when that is to be made anew, then all the rest and its background, but for
  // cursor, range and focus. `canvas` is what the painter paints on, 32 opaque bits a pixel, for
  // what is faster written than drawn: its own pixels are device pixels.
  virtual void render_still(QPainter& painter) = 0;
  virtual void render(QPainter& painter, QImage& canvas) = 0;
  // Over the cache, below the cursor.
  virtual void overlay(QPainter& painter);
  [[nodiscard]] virtual QString why_empty() const;
  // Names are looked up elsewhere from now on: what a view keeps by StringId is of no use.
  virtual void forget_names() {}
  // What lies at the selection, to be centred on; nothing = it is not in this view.
  [[nodiscard]] virtual std::optional<TimeRange> selected_time() const { return std::nullopt; }
  // "measured", "predicted" or "assumed machine" in the upper right corner; where that is.
  void paint_source(QPainter& painter) const;
  [[nodiscard]] QRect source_box() const;
  // The step's events have the times at which the host launched them: a GPU's recording.
  [[nodiscard]] bool is_launch_time() const;
  void invalidate();  // all of the cache, and repaints

  [[nodiscard]] const Theme& theme() const { return theme_; }
  [[nodiscard]] ViewState& state() const { return state_; }
  [[nodiscard]] const TracePtr& trace() const { return trace_; }
  [[nodiscard]] std::string text_of(StringId name) const;
  // What is selected, as a row of the step that is shown.
  [[nodiscard]] Selection selected() const;
  // Of the step that selections are of; null: it is the recording.
  [[nodiscard]] const StepRowsPtr& rows() const { return rows_; }
  // A drag that the subclass takes for itself (the budget line), instead of measuring.
  virtual bool begin_drag(const QPoint&) { return false; }
  virtual void drag(const QPoint&) {}
  virtual void end_drag(const QPoint&) {}

  bool event(QEvent* event) override;
  void changeEvent(QEvent* event) override;
  void contextMenuEvent(QContextMenuEvent* event) override;
  void keyPressEvent(QKeyEvent* event) override;
  void leaveEvent(QEvent* event) override;
  void mouseDoubleClickEvent(QMouseEvent* event) override;
  void mouseMoveEvent(QMouseEvent* event) override;
  void mousePressEvent(QMouseEvent* event) override;
  void mouseReleaseEvent(QMouseEvent* event) override;
  void paintEvent(QPaintEvent* event) override;
  void resizeEvent(QResizeEvent* event) override;
  void wheelEvent(QWheelEvent* event) override;

 private:
  enum class Drag { none, pressed, measuring, taken };

  void invalidate_axis();
  void measure_font();
  void select_at(const QPoint& at);
  void zoom(double factor, double x);
  void pan(double pixels);
  void centre();
  [[nodiscard]] Nanoseconds time_at(int x) const;
  [[nodiscard]] double pointer_x() const;
  void paint_range(QPainter& painter);
  void paint_cursor(QPainter& painter);
  void paint_empty(QPainter& painter);

  ViewState& state_;
  TracePtr trace_;
  StepPicturePtr view_;
  StepRowsPtr rows_;
  std::optional<Lifetime> lifetime_;
  Theme theme_;
  QImage cache_;
  bool stale_ = true;        // what the axis moves
  bool still_stale_ = true;  // the rest
  int gutter_ = 0;           // px, by the font
  Drag drag_ = Drag::none;
  QPoint pressed_at_;
  std::optional<QPoint> pointer_;
};

}  // namespace stowage::gui
