#include "gui/widgets/theme.h"

#include <algorithm>
#include <array>
#include <cmath>

namespace stowage::gui {
namespace {

double luminance(const QColor& color) {
  const auto linear = [](double c) {
    return c <= 0.04045 ? c / 12.92 : std::pow((c + 0.055) / 1.055, 2.4);
  };
  return 0.2126 * linear(color.redF()) + 0.7152 * linear(color.greenF()) +
         0.0722 * linear(color.blueF());
}

// Okabe and Ito's colours, told apart with every common colour blindness, and three greys.
const QColor kOrange(0xE6, 0x9F, 0x00);
const QColor kSky(0x56, 0xB4, 0xE9);
const QColor kGreen(0x00, 0x9E, 0x73);
const QColor kYellow(0xF0, 0xE4, 0x42);
const QColor kBlue(0x00, 0x72, 0xB2);
const QColor kVermilion(0xD5, 0x5E, 0x00);
const QColor kPurple(0xCC, 0x79, 0xA7);

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
  theme.budget = theme.dark ? QColor(0xFF, 0x8A, 0x80) : QColor(0xB7, 0x1C, 0x1C);
  theme.stall = theme.dark ? QColor(0xFF, 0x6E, 0x40) : QColor(0xC6, 0x28, 0x28);
  theme.over = theme.budget;
  theme.over.setAlpha(60);
  return theme;
}

QColor Theme::lane(LaneKind kind) const {
  QColor color;
  switch (kind) {
    case LaneKind::layers:
      color = mix(kPurple, background, 0.75);
      break;
    case LaneKind::launch:
      color = mix(text, background, 0.45);
      break;
    case LaneKind::compute:
      color = kBlue;
      break;
    case LaneKind::d2h:
      color = kOrange;
      break;
    case LaneKind::h2d:
      color = kGreen;
      break;
    case LaneKind::stalls:
      return stall;
    case LaneKind::updates:
      color = kPurple;
      break;
  }
  return dark ? mix(color, QColor(Qt::white), 0.88) : color;
}

std::size_t Theme::shade_of(StringId name) {
  const auto hash = static_cast<std::size_t>(static_cast<std::uint32_t>(name.value) * 2654435761U);
  return (hash >> 7) % kShades;
}

QColor Theme::span(LaneKind kind, std::size_t shade) const {
  constexpr std::array<double, kShades> kOfLane{1.0, 0.86, 0.74, 0.64};
  return mix(lane(kind), background, kOfLane[shade]);
}

QColor Theme::storage(StorageClass storage_class) const {
  const QColor grey = mix(text, background, 0.5);
  QColor color = grey;
  switch (storage_class) {
    case StorageClass::parameter:
      color = kBlue;
      break;
    case StorageClass::gradient:
      color = kVermilion;
      break;
    case StorageClass::optimizer_state:
      color = kPurple;
      break;
    case StorageClass::buffer:
      color = mix(text, background, 0.7);
      break;
    case StorageClass::activation:
      color = kSky;
      break;
    case StorageClass::temporary:
      color = kYellow;
      break;
    case StorageClass::input:
      color = kGreen;
      break;
    case StorageClass::output:
      color = mix(kGreen, background, 0.5);
      break;
    case StorageClass::workspace:
      color = kOrange;
      break;
    case StorageClass::other:
      break;
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
      return mix(kGreen, text, 0.75);
    case Source::predicted:
      return mix(kBlue, text, dark ? 0.45 : 0.8);
    case Source::assumed:
      return mix(kOrange, text, 0.7);
  }
  return text;
}

QColor Theme::ink(const QColor& on) {
  // Where both have the same contrast, 4.6 : 1.
  return luminance(on) > 0.179 ? QColor(Qt::black) : QColor(Qt::white);
}

}  // namespace stowage::gui
