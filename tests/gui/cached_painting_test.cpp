// What is kept from one frame to the next is the same as what would be painted anew.
#include <QStandardItemModel>
#include <QTableView>
#include <type_traits>

#include "gui/widgets/text_delegate.h"
#include "tests/gui/window.h"

namespace stowage::gui {
namespace {

class CachedPainting : public testing::WindowTest {
 protected:
  // A view of the same step that has painted nothing yet.
  template <class Plot>
  QImage anew(const PlotView& like) {
    Plot plot(state());
    plot.setPalette(like.palette());
    plot.resize(like.size());
    plot.show_step(window_.document().trace(), like.view());
    if constexpr (std::is_same_v<Plot, MemoryPlot>) plot.set_reserved(memory().reserved());
    return plot.grab().toImage();
  }
};

TEST_F(CachedPainting, ZoomedAndPannedViewsAreThoseOfAViewThatIsMadeThere) {
  open(testing::kLlama);
  state().set_shown(Shown::planned);
  timeline().clearFocus();
  TimeAxis axis = state().axis();
  for (int i = 0; i < 12; ++i) {
    axis.zoom(i % 3 == 2 ? 0.5 : 3, 100.0 + 40 * i);
    axis.pan(17.0 * i);
    state().set_axis(axis);
    EXPECT_EQ(timeline().grab().toImage(), anew<TimelinePlot>(timeline())) << "frame " << i;
    const QImage memory = this->memory().grab().toImage();
    EXPECT_EQ(memory, anew<MemoryPlot>(this->memory())) << "frame " << i;
  }
}

TEST_F(CachedPainting, ASpanHasOneColourFromTopToBottom) {
  open(testing::kSmallCpu);
  const QRect row = timeline().row_rect(LaneKind::compute);
  const QImage image = timeline().grab().toImage();
  int coloured = 0;
  for (int x = row.left(); x < row.right(); x += 3) {
    const QRgb top = image.pixel(x, row.top() + 1);
    EXPECT_EQ(image.pixel(x, row.bottom() - 1), top) << "column " << x;
    if (top != timeline().palette().color(QPalette::Base).rgb()) ++coloured;
  }
  EXPECT_GT(coloured, row.width() / 6);
}

TEST(TextDelegate, ACellThatChangesIsPaintedAnewAndLongTextsStayInIt) {
  QStandardItemModel model(1, 2);
  model.setData(model.index(0, 0), QStringLiteral("keep"));
  QTableView table;
  table.setItemDelegate(new TextDelegate(&table));
  table.setModel(&model);
  table.setShowGrid(false);
  table.resize(300, 100);
  const QImage before = table.grab().toImage();
  model.setData(model.index(0, 0), QStringLiteral("offload"));
  EXPECT_NE(table.grab().toImage(), before);
  model.setData(model.index(0, 0), QStringLiteral("keep"));
  EXPECT_EQ(table.grab().toImage(), before);

  const QRect beside = table.visualRect(model.index(0, 1));
  const QImage empty = table.viewport()->grab(beside).toImage();
  model.setData(model.index(0, 0), QString(400, QLatin1Char('m')));
  EXPECT_EQ(table.viewport()->grab(beside).toImage(), empty);
}

}  // namespace
}  // namespace stowage::gui
