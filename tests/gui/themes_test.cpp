// The whole window in the palettes that desktops have. With STOWAGE_PICTURES set to a folder, it is
// left there as it looks.
#include <QAbstractButton>
#include <QAbstractItemView>
#include <QAbstractSpinBox>
#include <QLabel>
#include <QPushButton>
#include <QScrollBar>
#include <QStyleFactory>
#include <QStyleOption>

#include "gui/widgets/theme.h"
#include "gui/widgets/value_texts.h"
#include "report/colours.h"
#include "tests/gui/hands.h"

namespace stowage::gui {
namespace {

QPalette palette_of(const QColor& window, const QColor& base, const QColor& text) {
  QPalette palette(window, window);
  for (const auto role : {QPalette::WindowText, QPalette::Text, QPalette::ButtonText,
                          QPalette::ToolTipText, QPalette::BrightText}) {
    palette.setColor(role, text);
  }
  for (const auto role : {QPalette::Base, QPalette::ToolTipBase}) palette.setColor(role, base);
  palette.setColor(QPalette::AlternateBase, window);
  palette.setColor(QPalette::Link, QColor(90, 170, 255));
  // What a desktop may leave out is that of a light palette.
  palette.setColor(QPalette::PlaceholderText, QColor(0, 0, 0, 128));
  for (const auto role : {QPalette::WindowText, QPalette::Text, QPalette::ButtonText}) {
    palette.setColor(QPalette::Disabled, role, QColor(60, 60, 60));
  }
  // As Qt does with the palette of a desktop.
  QApplication::style()->polish(palette);
  return palette;
}

class Themes : public testing::Hands {
 protected:
  ~Themes() override { QApplication::setPalette(QPalette()); }

  // Every visible text against what is behind it, as its widget would paint it.
  void expect_readable(double ratio) {
    int seen = 0;
    for (const QWidget* widget : window_.findChildren<QWidget*>()) {
      if (!widget->isVisible() || !widget->isEnabled()) continue;
      const bool is_text = qobject_cast<const QLabel*>(widget) != nullptr ||
                           qobject_cast<const QAbstractButton*>(widget) != nullptr;
      const bool is_view = qobject_cast<const QAbstractItemView*>(widget) != nullptr ||
                           qobject_cast<const QLineEdit*>(widget) != nullptr;
      if (!is_text && !is_view) continue;
      ++seen;
      const QPalette& palette = widget->palette();
      const QColor text = palette.color(is_view ? QPalette::Text : QPalette::WindowText);
      const QColor behind = palette.color(is_view ? QPalette::Base : QPalette::Window);
      EXPECT_GE(contrast_ratio(text, behind), ratio)
          << widget->metaObject()->className() << " " << widget->accessibleName().toStdString();
    }
    EXPECT_GT(seen, 20);
  }
  // Of each field something stands out from what is around it, also where it is left empty.
  void expect_framed(double ratio) {
    int seen = 0;
    for (QWidget* widget : window_.findChildren<QWidget*>()) {
      const bool is_field = qobject_cast<QLineEdit*>(widget) != nullptr ||
                            qobject_cast<QAbstractSpinBox*>(widget) != nullptr ||
                            qobject_cast<QComboBox*>(widget) != nullptr;
      const bool is_inside = qobject_cast<QAbstractSpinBox*>(widget->parent()) != nullptr ||
                             qobject_cast<QComboBox*>(widget->parent()) != nullptr;
      if (!is_field || is_inside || widget->visibleRegion().isEmpty()) continue;
      if (!widget->isEnabled()) continue;
      ++seen;
      const QImage image = widget->grab().toImage();
      const QColor behind = widget->palette().color(QPalette::Window);
      const auto best = [&](bool left) {
        double most = 0;
        for (int i = 0; i < 3; ++i) {
          const QPoint edge = left ? QPoint(i, image.height() / 2) : QPoint(image.width() / 2, i);
          most = std::max(most, contrast_ratio(image.pixelColor(edge), behind));
        }
        return most;
      };
      EXPECT_GE(best(true), ratio) << widget->accessibleName().toStdString();
      EXPECT_GE(best(false), ratio) << widget->accessibleName().toStdString();
    }
    EXPECT_GT(seen, 8);
  }
  // The tab in front, and the part of a scroll bar that moves: something at their edges stands out.
  void expect_marked(double ratio) {
    const auto best = [](QWidget& widget, const QRect& of) {
      const QImage image = widget.grab().toImage();
      const QColor behind = widget.palette().color(QPalette::Window);
      double most = 0;
      for (int i = 0; i < 3; ++i) {
        most = std::max(most,
                        contrast_ratio(image.pixelColor(of.left() + i, of.center().y()), behind));
      }
      return most;
    };
    int tabs = 0;
    for (QTabBar* bar : window_.findChildren<QTabBar*>()) {
      if (bar->visibleRegion().isEmpty() || bar->count() < 2) continue;
      ++tabs;
      for (int i = 0; i < bar->count(); ++i) {
        const bool is_current = i == bar->currentIndex();
        EXPECT_EQ(best(*bar, bar->tabRect(i)) >= ratio, is_current)
            << bar->tabText(i).toStdString();
      }
    }
    EXPECT_GT(tabs, 1);
    int sliders = 0;
    for (QScrollBar* bar : window_.findChildren<QScrollBar*>()) {
      if (bar->visibleRegion().isEmpty() || bar->minimum() == bar->maximum()) continue;
      ++sliders;
      QStyleOptionSlider option;
      option.initFrom(bar);
      option.orientation = bar->orientation();
      option.minimum = bar->minimum();
      option.maximum = bar->maximum();
      option.pageStep = bar->pageStep();
      option.sliderPosition = option.sliderValue = bar->value();
      const QRect slider = bar->style()->subControlRect(QStyle::CC_ScrollBar, &option,
                                                        QStyle::SC_ScrollBarSlider, bar);
      EXPECT_GE(best(*bar, slider), ratio) << bar->parentWidget()->objectName().toStdString();
    }
    EXPECT_GT(sliders, 1);
  }
  // Hints of empty fields and what is disabled, as they are painted.
  void expect_hints_readable() {
    int hints = 0;
    int disabled = 0;
    const auto best = [](const QWidget& widget, const QRect& inside) {
      const QImage image = const_cast<QWidget&>(widget).grab().toImage();
      const QColor behind = image.pixelColor(inside.center().x(), inside.top());
      double most = 0;
      for (int y = inside.top(); y <= inside.bottom(); ++y) {
        for (int x = inside.left(); x <= inside.right(); ++x) {
          most = std::max(most, contrast_ratio(image.pixelColor(x, y), behind));
        }
      }
      return most;
    };
    for (QWidget* widget : window_.findChildren<QWidget*>()) {
      if (widget->visibleRegion().isEmpty()) continue;
      const QRect inside = widget->rect().adjusted(5, 5, -5, -5);
      const auto* field = qobject_cast<QLineEdit*>(widget);
      if (field != nullptr && field->text().isEmpty() && !field->placeholderText().isEmpty()) {
        ++hints;
        EXPECT_GE(best(*widget, inside), 3) << widget->accessibleName().toStdString();
      }
      const auto* button = qobject_cast<QPushButton*>(widget);
      if (button != nullptr && !button->isEnabled()) {
        ++disabled;
        EXPECT_GE(best(*widget, inside), 2) << button->text().toStdString();
      }
    }
    EXPECT_GT(hints, 0);
    EXPECT_GT(disabled, 0);
  }
  void look(const QPalette& palette, double ratio, const char* name) {
    QApplication::setPalette(palette);
    window_.resize(1280, 820);
    open(testing::kLlama);
    type(*window_.findChild<QLineEdit*>("budget"), "36GB");
    key(Qt::Key_P);
    tab("Compare");
    expect_readable(ratio);
    picture(name);
    tab("What if");
    expect_readable(ratio);
    expect_hints_readable();
    picture((std::string(name) + "_what_if").c_str());
    EXPECT_EQ(memory().palette().color(QPalette::Base), palette.color(QPalette::Base));
  }
};

// A picture in a document has the colours and names of the window.
TEST(Colours, OfTheLightWindowAreThoseOfThePictures) {
  const Theme theme = Theme::of(QPalette(QColor(240, 240, 240)));
  ASSERT_FALSE(theme.dark);
  constexpr std::pair<LaneKind, report::Lane> kLanes[] = {
      {LaneKind::launch, report::Lane::launch}, {LaneKind::compute, report::Lane::compute},
      {LaneKind::d2h, report::Lane::d2h},       {LaneKind::h2d, report::Lane::h2d},
      {LaneKind::stalls, report::Lane::stalls}, {LaneKind::updates, report::Lane::updates}};
  const auto same = [](const QColor& a, const QColor& b) {
    return std::abs(a.red() - b.red()) < 2 && std::abs(a.green() - b.green()) < 2 &&
           std::abs(a.blue() - b.blue()) < 2;
  };
  for (const auto& [kind, lane] : kLanes) {
    EXPECT_TRUE(same(theme.lane(kind), QColor(report::colour_of(lane)))) << report::title_of(lane);
    EXPECT_EQ(word_for(kind), report::title_of(lane));
  }
  for (int i = 0; i <= static_cast<int>(StorageClass::other); ++i) {
    const auto of = static_cast<StorageClass>(i);
    EXPECT_TRUE(same(theme.storage(of), QColor(report::colour_of(of)))) << name_of(of);
  }
  EXPECT_TRUE(same(theme.budget, QColor(report::kBudgetColour)));
}

TEST_F(Themes, TheDarkWindowIsReadable) {
  look(palette_of(QColor(45, 45, 48), QColor(30, 30, 32), QColor(235, 235, 235)), 7, "dark");
  EXPECT_TRUE(Theme::of(memory().palette()).dark);
}

TEST_F(Themes, TheWindowInHighContrastIsReadable) {
  look(palette_of(Qt::black, Qt::black, Qt::white), 21, "contrast");
  EXPECT_TRUE(Theme::of(memory().palette()).contrast);
  expect_framed(4.5);
  tab("Alive");
  expect_marked(4.5);
}

}  // namespace
}  // namespace stowage::gui
