// The time axis that the lanes and the memory curve share: which part of the step is seen, and how
// times and pixels map. A plain value; pixels are logical ones and counted from the plot's left
// edge.
#pragma once

#include <string>
#include <vector>

#include "traces/units.h"

namespace stowage::gui {

struct Tick {
  Nanoseconds time = 0;
  double x = 0;
  std::string label;  // with its unit: "12.5 ms"
  bool major = true;  // minor ones have no label
};

class TimeAxis {
 public:
  static constexpr Nanoseconds kLeastSpan = 20;  // across the whole width

  // All of [0, length] is seen. `length` below kLeastSpan counts as kLeastSpan.
  explicit TimeAxis(Nanoseconds length = kLeastSpan, double width = 1000);

  [[nodiscard]] Nanoseconds length() const { return length_; }
  [[nodiscard]] double width() const { return width_; }
  [[nodiscard]] double begin() const { return begin_; }  // in ns
  [[nodiscard]] double end() const { return begin_ + span_; }
  [[nodiscard]] double span() const { return span_; }
  [[nodiscard]] double ns_per_pixel() const { return span_ / width_; }
  [[nodiscard]] bool fits() const { return span_ >= static_cast<double>(length_); }

  [[nodiscard]] double x_of(Nanoseconds time) const {
    return (static_cast<double>(time) - begin_) / span_ * width_;
  }
  [[nodiscard]] double time_at(double x) const { return begin_ + x / width_ * span_; }

  // The same part of the step on another width; a new step length keeps the part seen, as far as
  // there is that much.
  void set_width(double width);
  void set_length(Nanoseconds length);

  // What is at `x` stays at `x`. factor > 1 comes closer. Never beyond the step, never below
  // kLeastSpan.
  void zoom(double factor, double x);
  void pan(double pixels);  // > 0: what is later comes into view
  void fit();
  void show(double begin, double end);
  void centre_on(double time);

  // Round times with at least `gap` pixels between major ones; 1, 2 or 5 times a power of ten, and
  // minor ones that divide them. O(ticks).
  [[nodiscard]] std::vector<Tick> ticks(double gap = 110) const;

  bool operator==(const TimeAxis&) const = default;

 private:
  void clamp();

  Nanoseconds length_;
  double width_;
  double begin_ = 0;
  double span_;
};

}  // namespace stowage::gui
