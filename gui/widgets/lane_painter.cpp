#include "gui/widgets/lane_painter.h"

#include <QObject>
#include <algorithm>
#include <array>
#include <cmath>

#include "gui/widgets/value_texts.h"

namespace stowage::gui {
namespace {

constexpr int kLeastLabel = 16;    // px: below that no name can be read
constexpr int kLeastCut = 64;      // px: below that a name that is cut says too little for its cost
constexpr int kMostNames = 20000;  // kept laid out
constexpr int kLeastAgain = 3;     // px: what runs again is hatched, as short as it may be
constexpr double kFaintest = 0.3;  // of a folded run that is hardly busy

// The uppermost row of pixels of a box, over what is there, and then all rows below it the same.
class Line {
 public:
  Line(QImage& canvas, const QRect& box)
      : canvas_(canvas),
        ratio_(canvas.devicePixelRatio()),
        left_(pixel(box.left(), canvas.width())),
        right_(pixel(box.right() + 1, canvas.width())),
        top_(pixel(box.top(), canvas.height())),
        bottom_(pixel(box.bottom() + 1, canvas.height())) {
    if (top_ < bottom_) line_ = reinterpret_cast<QRgb*>(canvas_.scanLine(top_));
  }

  // [x0, x1), in logical pixels.
  void fill(int x0, int x1, QRgb color) {
    if (line_ == nullptr) return;
    const int first = std::clamp(pixel(x0, right_), left_, right_);
    std::fill(line_ + first, line_ + std::max(first, pixel(x1, right_)), color);
  }

  void copy_down() {
    for (int y = top_ + 1; y < bottom_ && left_ < right_; ++y) {
      std::copy(line_ + left_, line_ + right_,
                reinterpret_cast<QRgb*>(canvas_.scanLine(y)) + left_);
    }
  }

 private:
  [[nodiscard]] int pixel(int logical, int most) const {
    return std::clamp(static_cast<int>(std::lround(logical * ratio_)), 0, most);
  }

  QImage& canvas_;
  double ratio_;
  int left_;
  int right_;
  int top_;
  int bottom_;
  QRgb* line_ = nullptr;
};

}  // namespace

QString copy_text(const QFontMetrics& metrics, int width, const QString& name, Bytes bytes,
                  Nanoseconds duration) {
  const QString moved =
      QObject::tr("%1 at %2")
          .arg(bytes_text(bytes), rate_text(gigabytes_per_second(bytes, duration)));
  for (const QString& text : {QObject::tr("%1, %2").arg(name, moved), moved, bytes_text(bytes)}) {
    if (metrics.horizontalAdvance(text) <= width) return text;
  }
  return {};
}

// Few are wide enough, so their words are not kept.
void LanePainter::label_copy(QPainter& painter, const Label& each, const QColor& ink,
                             const LaneRow& row, const NameOf& name_of) {
  const QString name = QString::fromStdString(name_of(each.name)).left(200);
  const QString text =
      copy_text(painter.fontMetrics(), each.box.width() - 6, name, row.bytes_of(each.span),
                row.spans.end(each.span) - row.spans.begin(each.span));
  painter.setPen(ink);
  painter.drawText(each.box.adjusted(3, 0, -3, 0), Qt::AlignVCenter | Qt::AlignLeft, text);
}

report::WorkFamily LanePainter::family(StringId id, const NameOf& name_of) {
  if (!id.valid()) return report::WorkFamily::other;
  const auto found = families_.constFind(id.value);
  if (found != families_.constEnd()) return *found;
  return *families_.insert(id.value, report::family_of(name_of(id)));
}

const LanePainter::Name& LanePainter::name(QPainter& painter, StringId id, const NameOf& name_of) {
  const auto found = names_.constFind(id.value);
  if (found != names_.constEnd()) return *found;
  if (names_.size() > kMostNames) names_.clear();
  QString text = QString::fromStdString(name_of(id)).left(200);
  if (text.startsWith(QLatin1String("aten::"))) text = text.mid(6);
  const auto lay_out = [&painter](const QString& words) {
    Text made;
    made.text = QStaticText(words);
    made.text.setTextFormat(Qt::PlainText);
    made.text.setPerformanceHint(QStaticText::AggressiveCaching);
    made.text.prepare({}, painter.font());
    made.width = static_cast<int>(std::ceil(made.text.size().width()));
    return made;
  };
  return *names_.insert(id.value, {lay_out(text), lay_out(text.section('.', -1))});
}

void LanePainter::label(QPainter& painter, const QRect& box, const QColor& ink, const QColor& paper,
                        StringId id, const NameOf& name_of) {
  if (box.width() < kLeastLabel || !id.valid()) return;
  const Name& name = this->name(painter, id, name_of);
  const Text& text = name.whole.width <= box.width() - 4 ? name.whole : name.last;
  if (paper.isValid() && (text.width <= box.width() - 4 || box.width() >= kLeastCut)) {
    const int right = std::min(box.width() - 2, text.width + 4);
    painter.fillRect(QRect(box.left() + 1, box.top(), right, box.height()), paper);
  }
  painter.setPen(ink);
  const int y = box.top() + (box.height() - static_cast<int>(text.text.size().height())) / 2;
  if (text.width <= box.width() - 4) {
    painter.drawStaticText(box.left() + 3, y, text.text);
    return;
  }
  if (box.width() < kLeastCut) return;
  // Cut where the span ends; the tool tip has all of it.
  painter.save();
  painter.setClipRect(box.adjusted(2, 0, -2, 0), Qt::IntersectClip);
  painter.drawStaticText(box.left() + 3, y, text.text);
  painter.restore();
}

void LanePainter::paint_again(QPainter& painter, const QRect& area, LaneKind kind,
                              const LaneRow& row, const TimeAxis& axis, const Theme& theme) {
  const QRect inner = spans_rect(area);
  const QBrush hatch(theme.again(kind), Qt::FDiagPattern);
  const auto first = std::partition_point(
      row.again.begin(), row.again.end(),
      [&](const TimeRange& range) { return static_cast<double>(range.end) < axis.begin(); });
  if (first == row.again.end()) return;
  int from = area.left();  // to be hatched: [from, to), of ranges that no pixel is between
  int to = from;
  for (auto range = first;
       range != row.again.end() && static_cast<double>(range->begin) < axis.end(); ++range) {
    const int left =
        area.left() + static_cast<int>(std::floor(std::max(axis.x_of(range->begin), 0.0)));
    const int right = std::max(
        area.left() + static_cast<int>(std::floor(std::min(axis.x_of(range->end), axis.width()))),
        left + kLeastAgain);
    if (left > to) {
      painter.fillRect(QRect(from, inner.top(), to - from, inner.height()), hatch);
      from = left;
    }
    to = std::max(to, right);
  }
  if (to > from) painter.fillRect(QRect(from, inner.top(), to - from, inner.height()), hatch);
}

void LanePainter::paint(QPainter& painter, QImage& canvas, const QRect& area, LaneKind kind,
                        const LaneRow& row, const TimeAxis& axis, const Theme& theme,
                        const Selection& selection, const NameOf& name_of) {
  if (font_ != painter.font()) {
    font_ = painter.font();
    names_.clear();
  }
  row.spans.runs(axis, runs_);
  labels_.clear();
  const QRect inner = spans_rect(area);
  const bool stall = kind == LaneKind::stalls;
  // Folded runs by how busy they are, in steps that the eye does not see.
  constexpr std::size_t kSteps = 32;
  std::array<QRgb, kSteps + 1> folded;
  for (std::size_t i = 0; i <= kSteps; ++i) {
    const double busy = static_cast<double>(i) / kSteps;
    folded[i] = mix(theme.lane(kind), theme.background, kFaintest + (1 - kFaintest) * busy).rgb();
  }
  std::array<QColor, Theme::kShades> shades;
  for (std::size_t i = 0; i < shades.size(); ++i) {
    shades[i] = stall ? theme.stall : theme.span(kind, i);
  }
  const QRgb edge = mix(theme.background, theme.lane(kind), 0.5).rgb();
  Line line(canvas, inner);
  selected_.clear();
  for (const SpanRun& run : runs_) {
    const int x0 = area.left() + static_cast<int>(std::floor(run.x0));
    const int x1 = area.left() + std::max(static_cast<int>(std::floor(run.x1)),
                                          static_cast<int>(std::floor(run.x0)) + 1);
    if (run.folded()) {
      line.fill(x0, x1, folded[static_cast<std::size_t>(run.busy * kSteps)]);
      continue;
    }
    const SpanInfo& info = row.infos[run.first];
    const std::size_t shade = Theme::shade_of(info.name);
    const QColor color =
        kind == LaneKind::compute ? theme.family(family(info.name, name_of), shade) : shades[shade];
    const QRect box(x0, inner.top(), x1 - x0, inner.height());
    line.fill(x0, x1, color.rgb());
    if (box.width() > 3) line.fill(box.right(), x1, edge);
    if (box.width() > (stall ? 2 : kLeastLabel - 1)) {
      labels_.push_back({box, color, info.name, info.again, run.first});
    }
    if (info.kind == selection.kind && info.row == selection.row) selected_.push_back(box);
  }
  line.copy_down();
  paint_again(painter, area, kind, row, axis, theme);
  const QBrush hatch(mix(theme.background, theme.stall, 0.75), Qt::BDiagPattern);
  for (const Label& each : labels_) {
    if (stall) {
      painter.fillRect(each.box, hatch);
    } else if (kind == LaneKind::d2h || kind == LaneKind::h2d) {
      label_copy(painter, each, Theme::ink(each.color), row, name_of);
    } else {
      const QColor paper = each.again ? each.color : QColor();
      label(painter, each.box, Theme::ink(each.color), paper, each.name, name_of);
    }
  }
  if (selected_.empty()) return;
  painter.setPen(QPen(theme.dark ? QColor(Qt::white) : QColor(Qt::black), 2));
  painter.setBrush(Qt::NoBrush);
  for (const QRect& box : selected_) painter.drawRect(box.adjusted(0, 0, -1, -1));
}

}  // namespace stowage::gui
