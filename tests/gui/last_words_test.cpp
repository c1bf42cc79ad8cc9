// Windows that end while one of their fields has the focus: what was typed is handed over while its
// owner is whole. The last two find with a sanitizer what the others say without.
#include <QAbstractSpinBox>
#include <QApplication>
#include <memory>

#include "gui/app/main_window.h"
#include "gui/widgets/alive_view.h"
#include "gui/widgets/compare_view.h"
#include "gui/widgets/details_view.h"
#include "gui/widgets/pareto_view.h"
#include "gui/widgets/plan_tree_view.h"
#include "gui/widgets/record_dialog.h"
#include "gui/widgets/search_bar.h"
#include "gui/widgets/verify_dialog.h"
#include "gui/widgets/what_if_panel.h"
#include "tests/gui/workbench.h"
#include "tests/support/small_trace.h"

namespace stowage::gui {
namespace {

class LastWords : public Workbench {
 protected:
  void show(QWidget& window) {
    Workbench::show(window, 900, 700);
    QApplication::setActiveWindow(&window);
  }
  // Leaves something typed in a field that has the focus.
  static void leave(QWidget& field, const char* text) {
    field.setFocus();
    ASSERT_TRUE(field.hasFocus());
    QTest::keyClick(&field, Qt::Key_A, Qt::ControlModifier);
    QTest::keyClicks(&field, text);
  }
  // Fields, lists and rows that take keys.
  static std::vector<QWidget*> fields(const QWidget& window) {
    std::vector<QWidget*> found;
    for (QWidget* widget : window.findChildren<QWidget*>()) {
      if (!widget->isEnabled() || !widget->isVisible() || widget->focusPolicy() == Qt::NoFocus) {
        continue;
      }
      const QWidget* inside = widget->parentWidget();
      if (qobject_cast<const QAbstractSpinBox*>(inside) == nullptr &&
          qobject_cast<const QComboBox*>(inside) == nullptr) {
        found.push_back(widget);
      }
    }
    return found;
  }
};

TEST_F(LastWords, BudgetsAreHeardByAPanelThatIsWhole) {
  open(stowage::testing::small_trace());
  for (const bool host : {false, true}) {
    auto panel = std::make_unique<WhatIfPanel>(document_);
    show(*panel);
    // Whether the panel still was one when the document changed.
    QStringList heard_by;
    const auto listening = QObject::connect(&document_, &PlanDocument::edited, [&] {
      heard_by << QLatin1String(panel.get()->metaObject()->className());
    });
    leave(host ? panel->host_budget() : static_cast<QWidget&>(panel->budget()), "3MB");
    // Not reset(), which forgets it first.
    delete panel.get();
    static_cast<void>(panel.release());
    QObject::disconnect(listening);
    EXPECT_EQ(heard_by, QStringList("stowage::gui::WhatIfPanel"));
    settle();
  }
  EXPECT_EQ(document_.state()->plan.budget.device, 3'000'000);
  EXPECT_EQ(document_.state()->plan.budget.host, 3'000'000);
}

TEST_F(LastWords, AValueIsHeardByAMachinePanelThatIsWhole) {
  open(stowage::testing::small_trace());
  auto panel = std::make_unique<MachinePanel>(document_);
  show(*panel);
  QString heard_by;
  QObject::connect(panel.get(), &MachinePanel::taken,
                   [&] { heard_by = QLatin1String(panel.get()->metaObject()->className()); });
  leave(*panel->field("link.h2d_gbps"), "0.5");
  delete panel.get();
  static_cast<void>(panel.release());
  EXPECT_EQ(heard_by, "stowage::gui::MachinePanel");
  EXPECT_TRUE(document_.is_assumed());
  settle();
}

// A name in other letters than those of the list is replaced by the list's when the focus leaves.
TEST_F(LastWords, AModelIsHeardByADialogThatIsWhole) {
  auto dialog = std::make_unique<RecordDialog>();
  show(*dialog);
  leave(dialog->model(), "RESNET50");
  ASSERT_TRUE(dialog->command_line().contains("RESNET50"));
  QString now;
  QString heard_by;
  QObject::connect(&dialog->model(), &QComboBox::currentTextChanged, [&](const QString& text) {
    now = text;
    heard_by = QLatin1String(dialog.get()->metaObject()->className());
  });
  delete dialog.get();
  static_cast<void>(dialog.release());
  EXPECT_EQ(now, "resnet50");
  EXPECT_EQ(heard_by, "stowage::gui::RecordDialog");
}

TEST_F(LastWords, EveryFieldMayHaveTheFocusWhenItsWindowEnds) {
  open(stowage::testing::small_trace());
  using Make = std::function<std::unique_ptr<QWidget>()>;
  const auto of_document = [this](auto* type) -> Make {
    using View = std::remove_pointer_t<decltype(type)>;
    return [this] { return std::make_unique<View>(document_); };
  };
  const auto explained = [this](auto* type) -> Make {
    using View = std::remove_pointer_t<decltype(type)>;
    return [this] { return std::make_unique<View>(document_, state_, explanations_); };
  };
  const std::vector<std::pair<const char*, Make>> windows{
      {"record", [] { return std::make_unique<RecordDialog>(); }},
      {"verify", of_document(static_cast<VerifyDialog*>(nullptr))},
      {"what if", of_document(static_cast<WhatIfPanel*>(nullptr))},
      {"machine", of_document(static_cast<MachinePanel*>(nullptr))},
      {"pareto", of_document(static_cast<ParetoView*>(nullptr))},
      {"compare", [this] { return std::make_unique<CompareView>(document_, state_); }},
      {"plan", explained(static_cast<PlanTreeView*>(nullptr))},
      {"details", explained(static_cast<DetailsView*>(nullptr))},
      {"alive", explained(static_cast<AliveView*>(nullptr))},
      {"search", [this] { return std::make_unique<SearchBar>(document_, state_); }},
  };
  for (const auto& [name, make] : windows) {
    std::size_t count = 1;
    for (std::size_t i = 0; i < count; ++i) {
      const std::unique_ptr<QWidget> window = make();
      show(*window);
      const std::vector<QWidget*> all = fields(*window);
      count = all.size();
      ASSERT_GT(count, 0U) << name;
      leave(*all[i], "7");
    }
    settle();
  }
}

TEST_F(LastWords, EveryFieldMayHaveTheFocusWhenTheProgramEnds) {
  std::size_t count = 1;
  std::size_t floating = 0;
  for (std::size_t i = 0; i < count; ++i) {
    MainWindow window;
    window.document().open_trace(stowage::testing::small_trace(), QStringLiteral("small"));
    window.search().open();
    show(window);
    window.settle();
    window.raise_view(QStringLiteral("what_if"));
    // A dock of its own is a window inside the window.
    auto* dock = window.findChild<QDockWidget*>(QStringLiteral("dock_what_if"));
    dock->setFloating(i % 2 == 0);
    window.settle();
    const std::vector<QWidget*> all = fields(window);
    count = all.size();
    QWidget& field = *all[std::min(i, count - 1)];
    if (field.window() != &window) {
      ++floating;
      QApplication::setActiveWindow(field.window());
    }
    field.setFocus();
    QTest::keyClicks(&field, "7");
  }
  EXPECT_GT(count, 20U);
  EXPECT_GT(floating, 0U);
}

}  // namespace
}  // namespace stowage::gui
