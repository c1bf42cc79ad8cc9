#include "gui/widgets/pareto_view.h"

#include <QTemporaryDir>
#include <algorithm>

#include "gui/model/same_machine.h"
#include "simulator/machine/calibration_settings.h"
#include "tests/gui/workbench.h"
#include "tests/support/small_trace.h"

namespace stowage::gui {
namespace {

class ParetoViewTest : public Workbench {
 protected:
  ParetoViewTest() {
    QObject::connect(&view_, &ParetoView::failed,
                     [this](const Error& error) { errors_.push_back(error.text()); });
  }
  void compute() {
    QTest::mouseClick(&view_.start_button(), Qt::LeftButton);
    ASSERT_TRUE(stowage::testing::spin_until([this] { return !view_.search().busy(); }));
  }
  // Row of the marks, of the first one that can be loaded and does not hold the current plan.
  int other_plan() {
    const auto& marks = view_.plot().content().marks;
    for (std::size_t i = 0; i < marks.size(); ++i) {
      if (marks[i].kind == ParetoPlot::Mark::Kind::planned &&
          marks[i].peak < document_.current()->result.peak_active) {
        return static_cast<int>(i);
      }
    }
    return -1;
  }

  ParetoView view_{document_};
};

TEST_F(ParetoViewTest, BeforeTheSearchItSaysWhatComputeDoes) {
  EXPECT_FALSE(view_.start_button().isEnabled());
  open(stowage::testing::small_trace());
  EXPECT_TRUE(view_.start_button().isEnabled());
  EXPECT_TRUE(view_.reason().contains("Compute finds"));
}

TEST_F(ParetoViewTest, ASearchShowsPlansPoliciesTheBoundAndTheCurrentPlan) {
  open(sample("llama3-8b-l9-fp32-math-h200"));
  show(view_, 900, 560);
  compute();
  EXPECT_TRUE(view_.search().complete());
  const auto& content = view_.plot().content();
  const auto count = [&](ParetoPlot::Mark::Kind kind) {
    return std::count_if(content.marks.begin(), content.marks.end(),
                         [&](const auto& mark) { return mark.kind == kind; });
  };
  EXPECT_GE(count(ParetoPlot::Mark::Kind::planned), 5);
  EXPECT_GE(count(ParetoPlot::Mark::Kind::policy), 4);
  EXPECT_EQ(count(ParetoPlot::Mark::Kind::resident), 1);
  EXPECT_EQ(count(ParetoPlot::Mark::Kind::current), 1);
  ASSERT_GE(content.bounds.size(), 5U);
  for (const auto& mark : content.marks) {
    EXPECT_GE(mark.peak, content.floor);
    if (mark.kind != ParetoPlot::Mark::Kind::planned) continue;
    // The bound of any budget that the plan does not exceed holds for it.
    for (const BoundPoint& bound : content.bounds) {
      if (mark.peak > bound.budget) continue;
      EXPECT_GE(mark.step, bound.step);
    }
  }
  picture(view_, "pareto");
  view_.setPalette(dark());
  picture(view_, "pareto_dark");
  QFont large = view_.font();
  large.setPointSizeF(large.pointSizeF() * 2);
  view_.setFont(large);
  picture(view_, "pareto_200");
}

TEST(ParetoPainter, PoliciesAtOnePlaceAreAllNamed) {
  using Mark = ParetoMark;
  ParetoContent content;
  content.resident_step = 100;
  const auto add = [&](Mark::Kind kind, Bytes peak, Nanoseconds step, const char* label) {
    Mark mark;
    mark.kind = kind;
    mark.peak = peak;
    mark.step = step;
    mark.label = QLatin1String(label);
    content.marks.push_back(mark);
  };
  add(Mark::Kind::policy, 500, 110, "alpha");
  add(Mark::Kind::policy, 500, 110, "beta");
  add(Mark::Kind::policy, 500, 110, "gamma");
  add(Mark::Kind::policy, 700, 900, "slow");
  add(Mark::Kind::resident, 1000, 100, "resident");
  const Theme theme = Theme::of(QPalette());
  const ParetoPainter painter(content, QRectF(0, 0, 640, 380), QFont(), theme);
  QStringList lines;
  for (const auto& label : painter.labels()) {
    EXPECT_TRUE(painter.scale().plot.contains(label.box)) << label.text.toStdString();
    lines << label.text.split('\n');
  }
  for (const char* name : {"alpha", "beta", "gamma", "resident"}) {
    EXPECT_TRUE(lines.contains(name)) << name << ": " << lines.join("; ").toStdString();
  }
  EXPECT_EQ(painter.at_place_of(1), (std::vector<int>{0, 1, 2}));
  const QChar cut(ParetoPainter::kCut);
  EXPECT_TRUE(lines.contains(QString("slow %1 900 ns").arg(cut))) << lines.join("; ").toStdString();
  EXPECT_TRUE(painter.legend().contains(cut)) << painter.legend().toStdString();
  // So is a plan made by hand, and the one that is shown; what is found is not.
  const double high = painter.scale().high_y;
  EXPECT_LT(high, 120);
  for (const Mark::Kind kind : {Mark::Kind::hand, Mark::Kind::current, Mark::Kind::planned}) {
    content.marks[3].kind = kind;
    const ParetoPainter other(content, QRectF(0, 0, 640, 380), QFont(), theme);
    EXPECT_EQ(other.scale().high_y > 900, kind == Mark::Kind::planned) << static_cast<int>(kind);
    EXPECT_EQ(other.legend().contains(cut), kind != Mark::Kind::planned) << static_cast<int>(kind);
  }
  content.marks[3].step = 110;
  EXPECT_FALSE(
      ParetoPainter(content, QRectF(0, 0, 640, 380), QFont(), theme).legend().contains(cut));
}

TEST_F(ParetoViewTest, AClickLoadsThePlanThereAsAnUndoStep) {
  open(stowage::testing::small_trace());
  show(view_, 700, 500);
  compute();
  const int mark = other_plan();
  ASSERT_GE(mark, 0);
  const Bytes peak = view_.plot().content().marks[static_cast<std::size_t>(mark)].peak;
  QTest::mouseClick(&view_.plot(), Qt::LeftButton, {}, view_.plot().position(mark).toPoint());
  settle();
  EXPECT_EQ(document_.current()->result.peak_active, peak);
  EXPECT_EQ(document_.undo_stack().count(), 1);
  EXPECT_FALSE(view_.search().points().empty()) << "the points stay";
}

TEST_F(ParetoViewTest, ArrowsGoFromPlanToPlanAndReturnLoadsOne) {
  open(stowage::testing::small_trace());
  show(view_, 700, 500);
  compute();
  view_.plot().setFocus();
  QTest::keyClick(&view_.plot(), Qt::Key_Home);
  EXPECT_EQ(view_.plot().chosen(), 0);
  const int mark = other_plan();
  ASSERT_GE(mark, 0);
  for (int i = 0; i < mark; ++i) QTest::keyClick(&view_.plot(), Qt::Key_Right);
  EXPECT_EQ(view_.plot().chosen(), mark);
  const QString figures = view_.plot().content().marks[static_cast<std::size_t>(mark)].figures;
  EXPECT_TRUE(view_.plot().accessibleDescription().startsWith(figures.section('\n', 0, 0)));
  const Bytes peak = view_.plot().content().marks[static_cast<std::size_t>(mark)].peak;
  QTest::keyClick(&view_.plot(), Qt::Key_Return);
  settle();
  EXPECT_EQ(document_.current()->result.peak_active, peak);
}

TEST_F(ParetoViewTest, CancelStopsAndKeepsWhatWasFound) {
  open(sample("llama3-8b-l9-fp32-math-h200"));
  show(view_, 700, 500);
  QTest::mouseClick(&view_.start_button(), Qt::LeftButton);
  ASSERT_TRUE(stowage::testing::spin_until([this] { return view_.search().points().size() >= 2; }));
  EXPECT_TRUE(view_.cancel_button().isVisible());
  QTest::mouseClick(&view_.cancel_button(), Qt::LeftButton);
  EXPECT_FALSE(view_.search().busy());
  EXPECT_FALSE(view_.search().complete());
  EXPECT_GE(view_.search().points().size(), 2U);
  EXPECT_TRUE(view_.status().contains("stopped"));
}

TEST_F(ParetoViewTest, PlansMadeByHandStandThereWithTheirNamesAndAreLoadedAgain) {
  open(sample("llama3-8b-l9-fp32-math-h200"));
  show(view_, 900, 560);
  const auto offload = [&](std::size_t from, std::size_t count) {
    std::vector<SavedId> rows;
    for (std::size_t i = from; i < from + count; ++i) rows.emplace_back(i);
    ASSERT_TRUE(document_.set_decision(rows, simulator::Decision::offload));
    settle();
  };
  offload(0, 60);
  const Bytes first = document_.current()->result.peak_reserved;
  offload(60, 60);
  ASSERT_LT(document_.current()->result.peak_reserved, first);
  compute();
  std::vector<ParetoMark> hand;
  for (const ParetoMark& mark : view_.plot().content().marks) {
    if (mark.kind == ParetoMark::Kind::hand) hand.push_back(mark);
  }
  ASSERT_EQ(hand.size(), 2U);
  EXPECT_EQ(hand[0].label, "2: Offload 60 saved tensors") << "less memory comes first";
  EXPECT_EQ(hand[1].label, "1: Offload 60 saved tensors");
  EXPECT_EQ(hand[1].peak, first);
  EXPECT_TRUE(view_.plot().painter_of().legend().contains("by hand"));
  picture(view_, "pareto_by_hand");
  // The first one again, as an undo step; it is no third plan.
  Q_EMIT view_.plot().load_requested(hand[1].point);
  settle();
  EXPECT_EQ(document_.current()->result.peak_reserved, first);
  EXPECT_EQ(document_.undo_stack().count(), 3);
  EXPECT_EQ(view_.hand_plans().plans().size(), 2U);
  // They are of the machine that they were replayed on last.
  Calibration slower = document_.trace()->trace.calibration;
  ASSERT_TRUE(simulator::apply_setting(slower, "link.d2h_gbps", 12));
  document_.set_calibration(slower);
  settle();
  EXPECT_TRUE(same_machine(view_.hand_plans().plans()[0].machine, slower));
  EXPECT_FALSE(same_machine(view_.hand_plans().plans()[1].machine, slower));
  // In a file it has that file's name.
  const QTemporaryDir folder;
  ASSERT_TRUE(document_.save_plan(folder.filePath("mine.plan.json")));
  EXPECT_EQ(view_.hand_plans().plans()[0].name, "mine.plan.json");
  open(stowage::testing::small_trace());
  EXPECT_TRUE(view_.hand_plans().plans().empty());
}

TEST_F(ParetoViewTest, AnotherTraceTakesThePointsAway) {
  open(stowage::testing::small_trace());
  compute();
  EXPECT_FALSE(view_.search().points().empty());
  open(stowage::testing::small_trace(4));
  EXPECT_TRUE(view_.search().points().empty());
}

}  // namespace
}  // namespace stowage::gui
