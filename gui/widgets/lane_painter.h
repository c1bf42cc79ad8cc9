// Paints the spans of one lane's row: folded runs as one rectangle, names where there is room.
#pragma once

#include <QFont>
#include <QFontMetrics>
#include <QHash>
#include <QImage>
#include <QPainter>
#include <QRect>
#include <QStaticText>
#include <functional>
#include <string>
#include <vector>

#include "gui/model/step_picture.h"
#include "gui/widgets/theme.h"

namespace stowage::gui {

// What is written into a copy: the first of these that `width` px have room for: "layers.3.mlp#2,
// 268 MB at 52.1 GB/s", "268 MB at 52.1 GB/s", "268 MB"; else nothing.
[[nodiscard]] QString copy_text(const QFontMetrics& metrics, int width, const QString& name,
                                Bytes bytes, Nanoseconds duration);

class LanePainter {
 public:
  using NameOf = std::function<std::string(StringId)>;

  // The part of a row's area that spans fill. All of it gets what its uppermost row of pixels has.
  [[nodiscard]] static QRect spans_rect(const QRect& area) { return area.adjusted(0, 1, 0, -1); }

  // `area`: the row's part of the plot; the axis maps to its width. Spans go into the canvas
  // itself, into one row of pixels that is then copied to the others: a few thousand rectangles
  // would take ten times as long. What is selected has a frame around each of its spans (a layer:
  // forward and backward). O(runs + pixels / 8).
  void paint(QPainter& painter, QImage& canvas, const QRect& area, LaneKind kind,
             const LaneRow& row, const TimeAxis& axis, const Theme& theme,
             const Selection& selection, const NameOf& name_of);

  // Names are kept by StringId: for when `name_of` is of other strings from now on.
  void forget_names() {
    names_.clear();
    families_.clear();
  }

 private:
  struct Text {
    QStaticText text;
    int width = 0;
  };
  // A name is laid out once for a font; "aten::mm" without its namespace. `last` is what is behind
  // the last dot, for where the whole has no room: "layers.3.mlp#2" -> "mlp#2".
  struct Name {
    Text whole;
    Text last;
  };
  struct Label {
    QRect box;
    QColor color;
    StringId name;
    bool again;
    std::size_t span;
  };
  // A hatch over what runs again, below the names.
  static void paint_again(QPainter& painter, const QRect& area, LaneKind kind, const LaneRow& row,
                          const TimeAxis& axis, const Theme& theme);
  report::WorkFamily family(StringId id, const NameOf& name_of);
  const Name& name(QPainter& painter, StringId id, const NameOf& name_of);
  // `paper` below the name, over the hatch; not valid: none.
  void label(QPainter& painter, const QRect& box, const QColor& ink, const QColor& paper,
             StringId id, const NameOf& name_of);

  void label_copy(QPainter& painter, const Label& each, const QColor& ink, const LaneRow& row,
                  const NameOf& name_of);

  QFont font_;
  QHash<std::int32_t, Name> names_;
  QHash<std::int32_t, report::WorkFamily> families_;
  std::vector<SpanRun> runs_;
  std::vector<Label> labels_;
  std::vector<QRect> selected_;
};

}  // namespace stowage::gui
