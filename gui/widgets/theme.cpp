#include "gui/widgets/theme.h"

#include <algorithm>
#include <array>
#include <cmath>

#include "report/colours.h"

namespace stowage::gui {
namespace {

double luminance(const QColor& color) {
  const auto linear = [](double c) {
    return c <= 0.04045 ? c / 12.92 : std::pow((c + 0.055) / 1.055, 2.4);
  };
  return 0.2126 * linear(color.redF()) + 0.7152 * linear(color.greenF()) +
         0.0722 * linear(color.blueF());
}

constexpr std::array<double, Theme::kShades> kOfLane{1.0, 0.86, 0.74, 0.64};

// Those of every picture of a step.
QColor colour(report::Lane lane) {
  return QColor(QLatin1String(report::colour_of(lane)));
}
QColor colour(StorageClass storage_class) {
  return QColor(QLatin1String(report::colour_of(storage_class)));
}

}  // namespace

double contrast_ratio(const QColor& a, const QColor& b) {
  const double la = luminance(a) + 0.05;
  const double lb = luminance(b) + 0.05;
  return std::max(la, lb) / std::min(la, lb);
}

QColor mix(const QColor& top, const QColor& bottom, double share) {
  const auto part = [&](int a, int b) {
    return static_cast<int>(std::lround(a * share + b * (1 - share)));
  };
  return {part(top.red(), bottom.red()), part(top.green(), bottom.green()),
          part(top.blue(), bottom.blue())};
}

bool is_high_contrast(const QPalette& palette) {
  const auto ratio = [&](QPalette::ColorRole text, QPalette::ColorRole behind) {
    return contrast_ratio(palette.color(QPalette::Active, text),
                          palette.color(QPalette::Active, behind));
  };
  constexpr double kLeast = 20.5;
  return ratio(QPalette::Text, QPalette::Base) > kLeast &&
         ratio(QPalette::WindowText, QPalette::Window) > kLeast;
}

QPalette readable(QPalette palette) {
  constexpr double kHint = 4.5;
  constexpr double kDisabled = 3;
  const auto opaque = [](const QColor& color, const QColor& behind) {
    return mix(QColor(color.rgb()), behind, color.alphaF());
  };
  const auto mend = [&](QPalette::ColorGroup group, QPalette::ColorRole role,
                        QPalette::ColorRole like, QPalette::ColorRole on, double least) {
    const QColor behind = palette.color(QPalette::Active, on);
    if (contrast_ratio(opaque(palette.color(group, role), behind), behind) >= least) return;
    const QColor text = palette.color(QPalette::Active, like);
    double share = 0.55;
    while (share < 1 && contrast_ratio(mix(text, behind, share), behind) < least) share += 0.05;
    palette.setColor(group, role, mix(text, behind, std::min(share, 1.0)));
  };
  for (const auto group : {QPalette::Active, QPalette::Inactive, QPalette::Disabled}) {
    mend(group, QPalette::PlaceholderText, QPalette::Text, QPalette::Base, kHint);
  }
  const auto disabled = [&](QPalette::ColorRole role, QPalette::ColorRole on) {
    mend(QPalette::Disabled, role, role, on, kDisabled);
  };
  disabled(QPalette::WindowText, QPalette::Window);
  disabled(QPalette::ButtonText, QPalette::Button);
  disabled(QPalette::Text, QPalette::Base);
  return palette;
}

Theme Theme::of(const QPalette& palette) {
  Theme theme;
  theme.background = palette.color(QPalette::Base);
  theme.gutter = palette.color(QPalette::Window);
  theme.text = palette.color(QPalette::Text);
  theme.dark = theme.background.lightnessF() < 0.5;
  theme.contrast = is_high_contrast(palette);
  theme.faint = theme.contrast ? theme.text : mix(theme.text, theme.background, 0.7);
  theme.grid = mix(theme.text, theme.background, theme.contrast ? 0.5 : 0.13);
  theme.frame = mix(theme.text, theme.background, theme.contrast ? 1.0 : 0.35);
  theme.cursor = theme.text;
  theme.selection = theme.contrast ? theme.text : palette.color(QPalette::Highlight);
  theme.range = theme.selection;
  theme.range.setAlpha(theme.contrast ? 90 : 50);
  theme.budget =
      theme.dark ? QColor(0xFF, 0x8A, 0x80) : QColor(QLatin1String(report::kBudgetColour));
  theme.stall = theme.dark ? QColor(0xFF, 0x6E, 0x40) : colour(report::Lane::stalls);
  theme.over = theme.budget;
  theme.over.setAlpha(60);
  return theme;
}

QColor Theme::lane(LaneKind kind) const {
  QColor color;
  switch (kind) {
    case LaneKind::layers:
      color = mix(colour(report::Lane::updates), background, 0.75);
      break;
    case LaneKind::launch:
      color = mix(text, background, 0.45);
      break;
    case LaneKind::compute:
      color = colour(report::Lane::compute);
      break;
    case LaneKind::d2h:
      color = colour(report::Lane::d2h);
      break;
    case LaneKind::h2d:
      color = colour(report::Lane::h2d);
      break;
    case LaneKind::stalls:
      return stall;
    case LaneKind::updates:
      color = colour(report::Lane::updates);
      break;
  }
  return dark ? mix(color, QColor(Qt::white), 0.88) : color;
}

std::size_t Theme::shade_of(StringId name) {
  const auto hash = static_cast<std::size_t>(static_cast<std::uint32_t>(name.value) * 2654435761U);
  return (hash >> 7) % kShades;
}

QColor Theme::span(LaneKind kind, std::size_t shade) const {
  return mix(lane(kind), background, kOfLane[shade]);
}

QColor Theme::family(report::WorkFamily family, std::size_t shade) const {
  using enum report::WorkFamily;
  if (family == matrix) return span(LaneKind::compute, shade);
  QColor color(QLatin1String(report::colour_of(family)));
  // Greys are those of the palette.
  if (family == moving) color = mix(text, background, 0.5);
  if (family == other) color = mix(text, background, 0.3);
  // Two neighbours of a family differ less than two families.
  return mix(dark ? mix(color, QColor(Qt::white), 0.88) : color, background,
             (1 + kOfLane[shade]) / 2);
}

QColor Theme::storage(StorageClass storage_class) const {
  QColor color = colour(storage_class);
  // Greys, and what is faint, are those of the palette.
  if (storage_class == StorageClass::buffer) color = mix(text, background, 0.7);
  if (storage_class == StorageClass::other) color = mix(text, background, 0.5);
  if (storage_class == StorageClass::output) {
    color = mix(colour(StorageClass::input), background, 0.5);
  }
  return dark ? mix(color, background, 0.85) : color;
}

bool Theme::hatched(StorageClass storage_class) const {
  switch (storage_class) {
    case StorageClass::gradient:
    case StorageClass::temporary:
    case StorageClass::buffer:
    case StorageClass::output:
      return true;
    default:
      return false;
  }
}

Theme::Fill Theme::band(const MemoryView& memory, std::size_t row) const {
  if (row >= memory.classes.size()) {
    const QColor color = storage(StorageClass::activation);
    return {color, mix(text, color, 0.8)};
  }
  const QColor color = storage(memory.classes[row]);
  return {color, hatched(memory.classes[row]) ? mix(color, background, 0.6) : color};
}

QColor Theme::again(LaneKind kind) const {
  return mix(ink(lane(kind)), lane(kind), contrast ? 1.0 : 0.7);
}

QColor Theme::source(Source source) const {
  switch (source) {
    case Source::measured:
      return mix(colour(report::Lane::h2d), text, 0.75);
    case Source::predicted:
      return mix(colour(report::Lane::compute), text, dark ? 0.45 : 0.8);
    case Source::assumed:
      return mix(colour(report::Lane::d2h), text, 0.7);
  }
  return text;
}

QColor Theme::ink(const QColor& on) {
  // Where both have the same contrast, 4.6 : 1.
  return luminance(on) > 0.179 ? QColor(Qt::black) : QColor(Qt::white);
}

}  // namespace stowage::gui
