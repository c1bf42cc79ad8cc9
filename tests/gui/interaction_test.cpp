// Every key and every mouse gesture of the plots, with real events on a real window.
#include "gui/widgets/value_texts.h"
#include "tests/gui/window.h"
#include "tests/support/micro_trace.h"
#include "traces/size_text.h"

namespace stowage::gui {
namespace {

class Interaction : public testing::WindowTest {
 protected:
  Interaction() { open(testing::kLlama); }
  double span() { return state().axis().span(); }
  double under(const QPoint& at) {
    return timeline().axis().time_at(at.x() - timeline().plot().left());
  }
};

TEST_F(Interaction, WComesCloserAndSGoesAwayAtThePointer) {
  const QPoint pointer = at(timeline(), 0.3, 0.6);
  QTest::mouseMove(&timeline(), pointer);
  const double whole = span();
  const double time = under(pointer);
  for (int i = 0; i < 8; ++i) key(Qt::Key_W);
  EXPECT_LT(span(), whole / 5);
  EXPECT_NEAR(under(pointer), time, timeline().axis().ns_per_pixel());
  for (int i = 0; i < 8; ++i) key(Qt::Key_S);
  EXPECT_NEAR(span(), whole, 1);
}

TEST_F(Interaction, AAndDAndTheArrowsPan) {
  for (int i = 0; i < 6; ++i) key(Qt::Key_W);
  const double begin = state().axis().begin();
  key(Qt::Key_D);
  EXPECT_GT(state().axis().begin(), begin);
  key(Qt::Key_A);
  EXPECT_NEAR(state().axis().begin(), begin, 1);
  key(Qt::Key_Right);
  EXPECT_GT(state().axis().begin(), begin);
  key(Qt::Key_Left);
  EXPECT_NEAR(state().axis().begin(), begin, 1);
  const double before = span();
  key(Qt::Key_Up);
  EXPECT_LT(span(), before);
  key(Qt::Key_Down);
  EXPECT_NEAR(span(), before, 1);
}

TEST_F(Interaction, HomeShowsTheWholeStep) {
  for (int i = 0; i < 20; ++i) key(Qt::Key_W);
  key(Qt::Key_D);
  EXPECT_FALSE(state().axis().fits());
  key(Qt::Key_Home);
  EXPECT_TRUE(state().axis().fits());
}

TEST_F(Interaction, TheWheelZoomsAtThePointerAndShiftWheelPans) {
  const QPoint pointer = at(memory(), 0.7, 0.5);
  const double time = under(pointer);
  const double whole = span();
  for (int i = 0; i < 5; ++i) wheel(memory(), pointer, 120, Qt::NoModifier);
  EXPECT_NEAR(span(), whole / std::pow(1.3, 5), 1);
  EXPECT_NEAR(under(pointer), time, memory().axis().ns_per_pixel());
  const double begin = state().axis().begin();
  wheel(memory(), pointer, -120, Qt::ShiftModifier);
  EXPECT_GT(state().axis().begin(), begin);
  // As in programs whose wheel scrolls.
  const double closer = span();
  wheel(memory(), pointer, 120, Qt::ControlModifier);
  EXPECT_NEAR(span(), closer / 1.3, 1);
}

TEST_F(Interaction, ADoubleClickShowsWhatIsThereOverTheWholeWidth) {
  const QRect lane = timeline().row_rect(LaneKind::compute);
  const QPoint op(lane.left() + lane.width() * 3 / 10, lane.top() + 4);
  QTest::mouseClick(&timeline(), Qt::LeftButton, {}, op);
  ASSERT_NE(state().selection().kind, Selection::Kind::none);
  const double whole = span();
  QTest::mouseDClick(&timeline(), Qt::LeftButton, {}, op);
  EXPECT_LT(span(), whole / 4);
  const Selection selected = state().selection();
  const TimeAxis around = state().axis();
  // It is from edge to edge, but for a little.
  for (const int tenth : {1, 5, 9}) {
    const QPoint place(lane.left() + lane.width() * tenth / 10, op.y());
    QTest::mouseClick(&timeline(), Qt::LeftButton, {}, place);
    EXPECT_EQ(state().selection(), selected) << tenth;
  }
  EXPECT_EQ(state().axis(), around);
  key(Qt::Key_Escape);
  QTest::mouseDClick(&memory(), Qt::LeftButton, {}, at(memory(), 0.5, 0.02));
  EXPECT_EQ(state().axis(), around) << "of nothing";
}

TEST_F(Interaction, ALeftDragMeasuresARange) {
  const QPoint from = at(timeline(), 0.2, 0.5);
  const QPoint to = at(timeline(), 0.4, 0.5);
  drag(timeline(), from, to);
  ASSERT_TRUE(state().range().has_value());
  EXPECT_NEAR(static_cast<double>(state().range()->begin), under(from), 2);
  EXPECT_NEAR(static_cast<double>(state().range()->end), under(to), 2);
  EXPECT_EQ(state().selection().kind, Selection::Kind::none);
  // And to the left, in the other plot.
  drag(memory(), at(memory(), 0.9, 0.9), at(memory(), 0.6, 0.9));
  EXPECT_LT(state().range()->begin, state().range()->end);
  EXPECT_GT(static_cast<double>(state().range()->begin), under(to));
}

TEST_F(Interaction, TheRowOfTheWholeStepShowsWhichPartIsSeenAndGoesThere) {
  const QRect mini = timeline().minimap_rect();
  ASSERT_LE(mini.bottom(), timeline().height());
  const auto framed = [&] {
    const QImage image = timeline().grab().toImage();
    const QRgb ink = Theme::of(timeline().palette()).selection.rgb();
    int first = -1;
    int last = -1;
    // The last columns are those of the focus.
    for (int x = mini.left(); x <= mini.right() - 2; ++x) {
      if (image.pixel(x, mini.top() + 1) != ink) continue;
      if (first < 0) first = x;
      last = x;
    }
    return std::pair(first, last);
  };
  const auto [all_first, all_last] = framed();
  EXPECT_NEAR(all_first, mini.left(), 2);
  EXPECT_NEAR(all_last, mini.right(), 4);
  for (int i = 0; i < 8; ++i) key(Qt::Key_W);
  const double span = state().axis().span();
  QTest::mouseClick(&timeline(), Qt::LeftButton, {},
                    {mini.left() + mini.width() * 3 / 4, mini.center().y()});
  const auto length = static_cast<double>(state().axis().length());
  EXPECT_NEAR(state().axis().begin() + span / 2, length * 3 / 4, length / 100);
  EXPECT_DOUBLE_EQ(state().axis().span(), span) << "as close as before";
  const auto [first, last] = framed();
  EXPECT_NEAR(first - mini.left(), mini.width() * state().axis().begin() / length, 3);
  EXPECT_NEAR(last - mini.left(), mini.width() * state().axis().end() / length, 3);
  // A drag in it goes along, and measures nothing.
  drag(timeline(), {mini.left() + mini.width() / 2, mini.center().y()},
       {mini.left() + mini.width() / 4, mini.center().y()});
  EXPECT_NEAR(state().axis().begin() + span / 2, length / 4, length / 100);
  EXPECT_FALSE(state().range().has_value());
}

TEST_F(Interaction, TheCursorIsOneForAllPlotsAndGoesWithThePointer) {
  const QPoint pointer = at(memory(), 0.5, 0.5);
  QTest::mouseMove(&memory(), pointer);
  ASSERT_TRUE(state().cursor().has_value());
  EXPECT_NEAR(static_cast<double>(*state().cursor()), under(pointer), 2);
  const int x = pointer.x();
  const QImage lanes = timeline().grab().toImage();
  const QImage curve = memory().grab().toImage();
  // One line, through both: the pixels of a column that nothing else is on.
  const QRgb ink = timeline().palette().color(QPalette::Text).rgb();
  EXPECT_EQ(lanes.pixel(x, lanes.height() - 2), ink);
  EXPECT_EQ(curve.pixel(x, curve.height() / 2), ink);
  QEvent leave(QEvent::Leave);
  const auto before = state().cursor();
  ASSERT_TRUE(before.has_value());
  QApplication::sendEvent(&memory(), &leave);
  EXPECT_EQ(state().cursor(), before) << "what it shows is looked at elsewhere";
}

TEST_F(Interaction, AClickSelectsFCentresAndEscapeClears) {
  const QRect lane = timeline().row_rect(LaneKind::layers);
  const QPoint place(lane.left() + lane.width() * 9 / 10, lane.center().y());
  QTest::mouseClick(&timeline(), Qt::LeftButton, {}, place);
  ASSERT_EQ(state().selection().kind, Selection::Kind::layer);
  for (int i = 0; i < 4; ++i) key(Qt::Key_W);
  TimeAxis axis = state().axis();
  axis.show(0, axis.span());
  state().set_axis(axis);
  const double begin = state().axis().begin();
  key(Qt::Key_F);
  EXPECT_GT(state().axis().begin(), begin);
  drag(timeline(), at(timeline(), 0.2, 0.5), at(timeline(), 0.4, 0.5));
  key(Qt::Key_Escape);
  EXPECT_EQ(state().selection().kind, Selection::Kind::none);
  EXPECT_FALSE(state().range().has_value());
}

TEST_F(Interaction, PJumpsToThePeakOfTheMemoryCurve) {
  for (int i = 0; i < 10; ++i) key(Qt::Key_W);
  key(Qt::Key_P);
  const MemoryView& curve = memory().view()->memory;
  const Nanoseconds time = curve.time[curve.peak_at];
  EXPECT_EQ(state().cursor(), time);
  EXPECT_EQ(state().selection(),
            (Selection{Selection::Kind::event, curve.event[curve.peak_at].value}));
  EXPECT_GE(static_cast<double>(time), state().axis().begin());
  EXPECT_LE(static_cast<double>(time), state().axis().end());
}

TEST_F(Interaction, CtrlFFindsAndGoesThroughTheHits) {
  EXPECT_EQ(window_.action("find")->shortcut(), QKeySequence(QKeySequence::Find));
  window_.action("find")->trigger();
  ASSERT_TRUE(window_.search().isVisible());
  QTest::keyClicks(&window_.search().field(), "layers.3.mlp");
  window_.settle();
  const int count = window_.search().count();
  ASSERT_GT(count, 2);
  EXPECT_EQ(window_.search().current(), 0);
  EXPECT_EQ(window_.search().status(), QString("1 of %1").arg(count));
  const Selection first = state().selection();
  QTest::keyClick(&window_.search().field(), Qt::Key_Return);
  EXPECT_EQ(window_.search().current(), 1);
  EXPECT_NE(state().selection(), first);
  QTest::keyClick(&window_.search().field(), Qt::Key_Return, Qt::ShiftModifier);
  QTest::keyClick(&window_.search().field(), Qt::Key_Return, Qt::ShiftModifier);
  EXPECT_EQ(window_.search().current(), count - 1);
  QTest::keyClicks(&window_.search().field(), "no such thing");
  window_.settle();
  EXPECT_EQ(window_.search().status(), "no hit");
  QTest::keyClick(&window_.search().field(), Qt::Key_Escape);
  EXPECT_FALSE(window_.search().isVisible());
}

TEST_F(Interaction, DraggingTheBudgetLineReplaysAndLettingGoPlans) {
  QPoint grip(memory().plot().center().x(), memory().budget_y());
  const QPoint to(grip.x(), grip.y() + memory().curve_rect().height() / 4);
  QTest::mouseMove(&memory(), grip);
  EXPECT_EQ(memory().cursor().shape(), Qt::SizeVerCursor);
  QTest::mousePress(&memory(), Qt::LeftButton, {}, grip);
  QTest::mouseMove(&memory(), to);
  ASSERT_TRUE(memory().budget().has_value());
  window_.settle();
  const SimulatedPtr dragged = window_.document().current();
  EXPECT_EQ(dragged->plan().budget.device, memory().budget());
  EXPECT_FALSE(dragged->device_kept);
  EXPECT_FALSE(state().range().has_value()) << "the line, not a range, was dragged";
  QTest::mouseRelease(&memory(), Qt::LeftButton, {}, to);
  window_.settle();
  const SimulatedPtr planned = window_.document().current();
  EXPECT_TRUE(planned->device_kept);
  EXPECT_FALSE(planned->schedule.instructions.empty());
  EXPECT_LE(planned->result.peak_active, *memory().budget());
}

TEST_F(Interaction, CtrlUpAndCtrlDownMoveTheBudgetWithoutAMouse) {
  memory().setFocus();
  QTest::keyClick(&memory(), Qt::Key_Down, Qt::ControlModifier);
  window_.settle();
  const auto budget = window_.document().current()->plan().budget.device;
  ASSERT_TRUE(budget.has_value());
  QTest::keyClick(&memory(), Qt::Key_Up, Qt::ControlModifier);
  window_.settle();
  EXPECT_GT(*window_.document().current()->plan().budget.device, *budget);
}

TEST_F(Interaction, ToolTipsHaveUnits) {
  const QRect lane = timeline().row_rect(LaneKind::layers);
  const QString span = timeline().describe({lane.left() + lane.width() / 2, lane.center().y()});
  EXPECT_TRUE(span.contains(" ms") || span.contains(" s")) << span.toStdString();
  const QString bytes = memory().describe(memory().curve_rect().center());
  EXPECT_TRUE(bytes.contains(" GB") && bytes.contains("bytes")) << bytes.toStdString();
}

TEST_F(Interaction, EachPartOfAnOpThatAStallCutsTellsOfTheWholeOp) {
  testing::MicroTrace t;
  t.run(100).begin_op("aten::mm");
  const auto a = t.alloc(400);
  const auto s = t.pack(a);
  t.run(100).end_op();
  t.let_go(a);
  t.backward();
  t.run(700).begin_op("aten::mm_backward");
  const auto u = t.run(200).unpack(s);
  t.run(300).drop(u);
  t.end_op();
  t.free(a);
  window_.document().open_trace(t.finish(), "cut");
  window_.settle();
  simulator::Plan plan;
  simulator::SavedRule& rule = plan.saved.emplace_back();
  rule.site = "*";
  rule.decision = simulator::Decision::offload;
  rule.reload.kind = simulator::ReloadPoint::Kind::unpack;
  window_.document().set_plan(plan, "all away");
  window_.settle();
  ASSERT_TRUE(errors_.empty()) << errors_.front();
  const LaneRow& row = timeline().view()->lane(LaneKind::compute).rows[0];
  // The reload takes 400 and starts where it is needed.
  ASSERT_EQ(row.cuts.size(), 2U);
  const QString whole = time_text(200 + 400 + 300) + " at " + time_text(row.cuts[0].begin);
  key(Qt::Key_Home);
  const QRect lane = timeline().row_rect(LaneKind::compute);
  for (const CutWork& cut : row.cuts) {
    const Nanoseconds middle = (row.spans.begin(cut.part) + row.spans.end(cut.part)) / 2;
    const QString tip = timeline().describe(
        {lane.left() + static_cast<int>(timeline().axis().x_of(middle)), lane.center().y()});
    EXPECT_TRUE(tip.contains("mm_backward\n" + whole)) << tip.toStdString();
    EXPECT_TRUE(tip.contains("cut by stalls, which take " + time_text(400))) << tip.toStdString();
  }
}

TEST_F(Interaction, UndoTakesAnEditBackThroughTheMenu) {
  window_.document().set_budget(40'000'000'000, simulator::PeakKind::active);
  window_.settle();
  EXPECT_TRUE(window_.windowTitle().contains("edited"));
  window_.action("undo")->trigger();
  window_.settle();
  EXPECT_FALSE(window_.document().current()->plan().budget.device.has_value());
  EXPECT_FALSE(window_.windowTitle().contains("edited"));
}

// Llama's layers.4 is open in forward and in backward, with other layers between.
TEST_F(Interaction, ASelectedLayerHasAFrameForEachOfItsIntervals) {
  const QImage before = timeline().grab().toImage();
  const LaneRow& row = timeline().view()->lane(LaneKind::layers).rows[0];
  std::vector<std::pair<int, int>> boxes;  // x of the spans of the first layer of all
  const TimeAxis axis = timeline().axis();
  const std::int32_t layer = row.infos.at(4).row;
  for (std::size_t i = 0; i < row.infos.size(); ++i) {
    if (row.infos[i].row != layer) continue;
    boxes.emplace_back(timeline().plot().left() + static_cast<int>(axis.x_of(row.spans.begin(i))),
                       timeline().plot().left() + static_cast<int>(axis.x_of(row.spans.end(i))));
  }
  ASSERT_EQ(boxes.size(), 2U);
  ASSERT_GT(boxes[1].first - boxes[0].second, 40);
  state().select({Selection::Kind::layer, layer});
  const QImage after = timeline().grab().toImage();
  const QRect lane = timeline().row_rect(LaneKind::layers, 0);
  const auto changed = [&](int from, int to) {
    int columns = 0;
    for (int x = from; x < to; ++x) {
      bool differs = false;
      for (int y = lane.top(); y <= lane.bottom(); ++y) {
        differs = differs || before.pixel(x, y) != after.pixel(x, y);
      }
      columns += differs ? 1 : 0;
    }
    return columns;
  };
  for (const auto& [begin, end] : boxes) EXPECT_GE(changed(begin, end), end - begin - 2);
  EXPECT_EQ(changed(boxes[0].second + 3, boxes[1].first - 3), 0) << "nothing between them";
}

TEST_F(Interaction, TheBudgetLineSaysWhatItCountsAndWhatTheCurveIs) {
  window_.document().set_budget(40'000'000'000, simulator::PeakKind::reserved);
  window_.settle();
  const SimulatedPtr& now = window_.document().current();
  EXPECT_EQ(memory().budget_words(), "budget 40.0 GB on reserved bytes: not kept");
  const QString counted = QString::fromStdString(format_bytes(now->result.peak_reserved));
  EXPECT_EQ(memory().peak_words(), "peak 63.0 GB requested at 1.35 s, " + counted + " reserved");
  window_.document().set_budget(40'000'000'000, simulator::PeakKind::requested);
  window_.settle();
  EXPECT_EQ(memory().budget_words(), "budget 40.0 GB on requested bytes: not kept");
  EXPECT_EQ(memory().peak_words(), "peak 63.0 GB at 1.35 s");
}

}  // namespace
}  // namespace stowage::gui
