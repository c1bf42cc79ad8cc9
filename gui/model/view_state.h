// What all views share and none owns: the selection, the cursor that runs through all of them, the
// part of the step that is seen, the range being measured. Main thread only.
#pragma once

#include <QObject>
#include <cstdint>
#include <optional>

#include "gui/model/time_axis.h"

namespace stowage::gui {

struct Selection {
  // The table that `row` is of: of the trace, of the current replay for the last three.
  enum class Kind : std::uint8_t {
    none,
    op,
    gpu,
    layer,
    saved,
    storage,
    event,
    transfer,
    stall,
    update,  // on the host
  };
  Kind kind = Kind::none;
  std::int32_t row = -1;
  bool operator==(const Selection&) const = default;
};

struct TimeRange {
  Nanoseconds begin = 0;
  Nanoseconds end = 0;
  [[nodiscard]] Nanoseconds duration() const { return end - begin; }
  bool operator==(const TimeRange&) const = default;
};

// Which step the lanes and the memory curve show.
enum class Shown : std::uint8_t {
  automatic,  // the planned step; a CPU's recording while nothing is planned or assumed
  recorded,
  planned,
};

class ViewState : public QObject {
  Q_OBJECT
 public:
  using QObject::QObject;

  [[nodiscard]] const Selection& selection() const { return selection_; }
  [[nodiscard]] const std::optional<Nanoseconds>& cursor() const { return cursor_; }
  [[nodiscard]] const std::optional<TimeRange>& range() const { return range_; }
  [[nodiscard]] const TimeAxis& axis() const { return axis_; }

  // Each emits its signal when something changed, and only then.
  void select(const Selection& selection);
  void set_cursor(std::optional<Nanoseconds> time);
  void set_range(std::optional<TimeRange> range);  // begin and end are put in order
  void set_axis(const TimeAxis& axis);
  [[nodiscard]] Shown shown() const { return shown_; }
  void set_shown(Shown shown);
  // Esc: no selection, no range.
  void clear();
  // A view that can (the timeline) brings the selection to its centre.
  void centre_selection() { Q_EMIT centre_requested(); }

 Q_SIGNALS:
  void selection_changed();
  void cursor_changed();
  void range_changed();
  void axis_changed();
  void shown_changed();
  void centre_requested();

 private:
  Selection selection_;
  std::optional<Nanoseconds> cursor_;
  std::optional<TimeRange> range_;
  TimeAxis axis_;
  Shown shown_ = Shown::automatic;
};

}  // namespace stowage::gui
