#include "gui/model/time_axis.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdio>

namespace stowage::gui {
namespace {

struct Unit {
  double ns;
  const char* name;
};
constexpr std::array<Unit, 4> kUnits{{{1e9, "s"}, {1e6, "ms"}, {1e3, "us"}, {1, "ns"}}};

// All labels of one axis have the unit of its largest time and as many decimals as the step needs.
std::string label_of(double time, double step, double largest) {
  const auto unit =
      std::find_if(kUnits.begin(), kUnits.end(), [&](const Unit& u) { return largest >= u.ns; });
  const Unit& u = unit == kUnits.end() ? kUnits.back() : *unit;
  const int decimals = std::max(0, static_cast<int>(std::ceil(-std::log10(step / u.ns) - 1e-9)));
  std::array<char, 64> text{};
  std::snprintf(text.data(), text.size(), "%.*f %s", decimals, time / u.ns, u.name);
  return text.data();
}

}  // namespace

TimeAxis::TimeAxis(Nanoseconds length, double width)
    : length_(std::max(length, kLeastSpan)),
      width_(std::max(width, 1.0)),
      span_(static_cast<double>(length_)) {}

void TimeAxis::clamp() {
  const auto all = static_cast<double>(length_);
  span_ = std::clamp(span_, static_cast<double>(kLeastSpan), all);
  begin_ = std::clamp(begin_, 0.0, all - span_);
}

void TimeAxis::set_width(double width) {
  width_ = std::max(width, 1.0);
}

void TimeAxis::set_length(Nanoseconds length) {
  const bool all = fits();
  length_ = std::max(length, kLeastSpan);
  if (all) span_ = static_cast<double>(length_);
  clamp();
}

void TimeAxis::zoom(double factor, double x) {
  if (!(factor > 0)) return;
  const double fixed = time_at(x);
  span_ = std::clamp(span_ / factor, static_cast<double>(kLeastSpan), static_cast<double>(length_));
  begin_ = fixed - x / width_ * span_;
  clamp();
}

void TimeAxis::pan(double pixels) {
  begin_ += pixels * ns_per_pixel();
  clamp();
}

void TimeAxis::fit() {
  begin_ = 0;
  span_ = static_cast<double>(length_);
}

void TimeAxis::show(double begin, double end) {
  begin_ = std::min(begin, end);
  span_ = std::abs(end - begin);
  if (span_ < static_cast<double>(kLeastSpan)) {
    begin_ -= (static_cast<double>(kLeastSpan) - span_) / 2;
    span_ = static_cast<double>(kLeastSpan);
  }
  clamp();
}

void TimeAxis::centre_on(double time) {
  begin_ = time - span_ / 2;
  clamp();
}

std::vector<Tick> TimeAxis::ticks(double gap) const {
  const double least = std::max(gap, 1.0) * ns_per_pixel();
  const double power = std::pow(10.0, std::floor(std::log10(std::max(least, 1.0))));
  double step = power;
  int parts = 5;
  for (const auto& [times, minor] : {std::pair{1.0, 5}, {2.0, 4}, {5.0, 5}, {10.0, 5}}) {
    step = times * power;
    parts = minor;
    if (step >= least) break;
  }
  step = std::max(step, 1.0);
  if (step < 10) parts = 1;
  const double minor = step / parts;
  std::vector<Tick> ticks;
  const double largest = std::max(end(), step);
  for (double i = std::max(0.0, std::ceil(begin_ / minor - 1e-9));
       i * minor <= end() + minor * 1e-9; ++i) {
    Tick tick;
    tick.time = static_cast<Nanoseconds>(std::llround(i * minor));
    tick.x = x_of(tick.time);
    tick.major = std::fmod(i, parts) == 0;
    if (tick.major) tick.label = label_of(i * minor, step, largest);
    ticks.push_back(std::move(tick));
  }
  return ticks;
}

}  // namespace stowage::gui
