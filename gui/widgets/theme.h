// Colours and hatches of everything that is painted, from the palette: light, dark and high
// contrast. Colour never carries a meaning alone: stalls are hatched, classes have hatches and
// stand in the order of the legend, sources have words.
#pragma once

#include <QBrush>
#include <QColor>
#include <QPalette>

#include "gui/model/step_picture.h"
#include "report/work_family.h"
#include "traces/trace.h"

namespace stowage::gui {

struct Theme {
  bool dark = false;
  bool contrast = false;  // black on white or white on black: no soft colours
  QColor background;      // of a plot
  QColor gutter;          // beside it
  QColor text;
  QColor faint;  // secondary text; still 4.5 : 1 on `background`
  QColor grid;
  QColor frame;
  QColor cursor;
  QColor range;      // of the measured range, translucent
  QColor selection;  // outline
  QColor budget;
  QColor stall;
  QColor over;  // above the budget

  [[nodiscard]] static Theme of(const QPalette& palette);

  [[nodiscard]] QColor lane(LaneKind kind) const;
  // Names get one of a few shades of their lane, always the same.
  static constexpr std::size_t kShades = 4;
  [[nodiscard]] static std::size_t shade_of(StringId name);
  [[nodiscard]] QColor span(LaneKind kind, std::size_t shade) const;
  // Of an op in the compute lane; matrix products have the lane's colour.
  [[nodiscard]] QColor family(report::WorkFamily family, std::size_t shade) const;
  [[nodiscard]] QColor storage(StorageClass storage_class) const;
  // Every other class is hatched, so that neighbours differ without colour.
  [[nodiscard]] bool hatched(StorageClass storage_class) const;
  // A band of the memory curve: a class, or what was made again, which is hatched darker.
  struct Fill {
    QColor color;
    QColor line;  // of its hatch; `color` without one
  };
  [[nodiscard]] Fill band(const MemoryView& memory, std::size_t row) const;
  // Of the hatch over spans of a lane that run again.
  [[nodiscard]] QColor again(LaneKind kind) const;
  [[nodiscard]] QColor source(Source source) const;
  // Black or white, whichever is read better on `on`.
  [[nodiscard]] static QColor ink(const QColor& on);
};

// Contrast of two opaque colours, 1 ... 21 (WCAG 2.1).
[[nodiscard]] double contrast_ratio(const QColor& a, const QColor& b);

// The palette with hints of fields and with what is disabled that can be read, 4.5 : 1 and 3 : 1:
// some desktops give a dark palette without these roles, and Qt's own are for a light one.
[[nodiscard]] QPalette readable(QPalette palette);

// Black on white or white on black, in what is active.
[[nodiscard]] bool is_high_contrast(const QPalette& palette);

// `share` of `top` over `bottom`, opaque.
[[nodiscard]] QColor mix(const QColor& top, const QColor& bottom, double share);

}  // namespace stowage::gui
