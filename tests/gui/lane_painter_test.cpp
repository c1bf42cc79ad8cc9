// What is written into spans, and their colours.
#include "gui/widgets/lane_painter.h"

#include "tests/gui/window.h"

namespace stowage::gui {
namespace {

// 268 MB in 5.15 ms.
TEST(CopyText, IsAsLongAsThereIsRoom) {
  const QFontMetrics metrics{QFont()};
  const auto text = [&](const QString& needs) {
    return copy_text(metrics, metrics.horizontalAdvance(needs), "layers.3.mlp#2", 268'000'000,
                     5'150'000);
  };
  const QString all = "layers.3.mlp#2, 268 MB at 52.0 GB/s";
  EXPECT_EQ(text(all), all);
  EXPECT_EQ(text("layers.3.mlp#2, 268 MB"), "268 MB at 52.0 GB/s");
  EXPECT_EQ(text("268 MB at"), "268 MB");
  EXPECT_EQ(text("2"), "");
}

// Two ops of 100 px each.
TEST(LanePainter, AnOpOfTheComputeLaneHasTheColourOfItsFamily) {
  const std::vector<std::string> names{"aten::mm", "aten::gelu", "aten::native_layer_norm"};
  LaneRow row;
  std::vector<Nanoseconds> begin;
  std::vector<Nanoseconds> end;
  for (int i = 0; i < 3; ++i) {
    begin.push_back(1000 * i);
    end.push_back(1000 * i + 1000);
    row.infos.push_back({i, Selection::Kind::op, false, StringId(i)});
  }
  row.spans = SpanIndex(std::move(begin), std::move(end));
  const Theme theme = Theme::of(QPalette());
  QImage canvas(300, 20, QImage::Format_RGB32);
  QPainter painter(&canvas);
  LanePainter lanes;
  lanes.paint(painter, canvas, QRect(0, 0, 300, 20), LaneKind::compute, row, TimeAxis(3000, 300),
              theme, {}, [&](StringId id) { return names[id.index()]; });
  using enum report::WorkFamily;
  constexpr report::WorkFamily kFamilies[] = {matrix, elementwise, normalising};
  for (int i = 0; i < 3; ++i) {
    const QColor color = theme.family(kFamilies[i], Theme::shade_of(StringId(i)));
    EXPECT_EQ(canvas.pixel(100 * i + 90, 2), color.rgb()) << names[static_cast<std::size_t>(i)];
  }
  EXPECT_NE(canvas.pixel(90, 2), canvas.pixel(190, 2));
}

}  // namespace
}  // namespace stowage::gui
