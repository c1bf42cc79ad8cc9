#include "report/export_svg.h"

#include <algorithm>
#include <array>

#include "report/colours.h"
#include "report/memory_curve.h"
#include "report/svg_writer.h"
#include "report/text_escape.h"
#include "report/words.h"
#include "report/work_family.h"
#include "traces/size_text.h"

namespace stowage::report {
namespace {

constexpr int kWidth = 1200;
constexpr int kHeight = 722;  // of the usual lanes
constexpr double kLeft = 100;
constexpr double kPlotWidth = 1080;
constexpr std::size_t kColumns = 1080;  // of pixels
constexpr double kTop = 84;
constexpr double kCurveHeight = 300;
constexpr double kBottom = kTop + kCurveHeight;
constexpr double kLaneTop = kBottom + 28;
constexpr double kLaneHeight = 26;
constexpr double kLaneStep = 38;
constexpr std::size_t kUsualLanes = kLanes - 1;  // the host's updates have one where there are any
constexpr std::size_t kTitleLength = 100;
constexpr std::size_t kTipLength = 200;

std::string fill(const char* colour) {
  return std::string("fill=\"") + colour + "\"";
}

// 1, 2 or 5 times a power of ten, so that at most `most` of them fit into `range`.
std::int64_t tick_step(std::int64_t range, int most) {
  std::int64_t step = 1;
  while (true) {
    for (const int factor : {1, 2, 5}) {
      if (range / (step * factor) < most) return step * factor;
    }
    step *= 10;
  }
}

class Picture {
 public:
  explicit Picture(const StepView& step)
      : step_(step),
        trace_(*step.trace),
        lanes_(step.timeline.lane(Lane::updates).empty() ? kUsualLanes : kLanes),
        axis_(kLaneTop + static_cast<double>(lanes_) * kLaneStep),
        legend_(axis_ + 52),
        svg_(kWidth,
             kHeight + static_cast<int>(lanes_ - kUsualLanes) * static_cast<int>(kLaneStep)) {
    end_ = std::max<Nanoseconds>(step.timeline.end, 1);
    top_ = std::max<Bytes>({step.peak_requested, step.budget.value_or(0), highest(counted()), 1});
    top_ = std::min(top_, Bytes{1} << 60);  // absurd input stays a picture
    top_ += top_ / 20;
  }

  std::string draw() {
    heading();
    axes();
    if (!step_.timeline.time.empty()) {
      stack();
      counted_line();
    }
    budget_line();
    for (std::size_t lane = 0; lane < lanes_; ++lane) draw_lane(static_cast<Lane>(lane));
    legend();
    return svg_.finish();
  }

 private:
  static Bytes highest(const std::vector<Bytes>& bytes) {
    return bytes.empty() ? 0 : *std::max_element(bytes.begin(), bytes.end());
  }
  // What the budget counts, where it is not what is stacked; else nothing.
  [[nodiscard]] const std::vector<Bytes>& counted() const {
    static const std::vector<Bytes> kNone;
    if (step_.budget_on == simulator::PeakKind::active) return step_.timeline.active;
    return step_.budget_on == simulator::PeakKind::reserved ? step_.timeline.reserved : kNone;
  }
  [[nodiscard]] double x_of(Nanoseconds time) const {
    const double share = static_cast<double>(time) / static_cast<double>(end_);
    return kLeft + std::clamp(share, 0.0, 1.0) * kPlotWidth;
  }
  [[nodiscard]] double y_of(Bytes bytes) const {
    const double share = static_cast<double>(bytes) / static_cast<double>(top_);
    return kBottom - std::min(share, 1.0) * kCurveHeight;
  }

  void heading() {
    svg_.text(kLeft, 26, shortened(run_line(trace_), kTitleLength),
              "font-size=\"16\" font-weight=\"bold\"");
    std::string line = step_.title + ": step " + format_time(step_.timeline.end) +
                       ", peak requested " + exact_bytes(step_.peak_requested);
    if (!step_.stalls.empty()) {
      Nanoseconds stall = 0;
      for (const StallRow& row : step_.stalls) stall += row.duration;
      line += ", stall " + format_time(stall);
    }
    svg_.text(kLeft, 46, shortened(line, kTitleLength));
    const auto& phases = step_.timeline.phases;
    for (std::size_t i = 0; i < phases.size(); ++i) {
      const double x = x_of(phases[i].begin);
      const double next = i + 1 < phases.size() ? x_of(phases[i + 1].begin) : kLeft + kPlotWidth;
      svg_.line(x, kTop - 8, x, axis_, "stroke=\"#bbb\" stroke-dasharray=\"2 3\"");
      if (next - x > 7.0 * static_cast<double>(phases[i].name.size())) {
        svg_.text(x + 4, kTop - 6, phases[i].name, "fill=\"#666\"");
      }
    }
  }

  // A recorded step of a GPU has two clocks; a replayed one has the GPU's alone.
  [[nodiscard]] std::string whose_time() const {
    if (trace_.gpu.size() == 0) return "";
    return step_.timeline.is_simulated ? ", on the GPU"
                                       : ": of the curve and the phases as the host launched, of "
                                         "kernels and copies on the GPU";
  }

  void axes() {
    const Bytes step = tick_step(top_, 8);
    for (Bytes at = 0; at <= top_; at += step) {
      const double y = y_of(at);
      svg_.line(kLeft, y, kLeft + kPlotWidth, y, "stroke=\"#e4e4e4\"");
      svg_.text(kLeft - 8, y + 4, format_bytes(at), "text-anchor=\"end\"");
    }
    svg_.text(16, kTop + kCurveHeight / 2, "memory (bytes, 1000-based)",
              "text-anchor=\"middle\" transform=\"rotate(-90 16 " +
                  svg_number(kTop + kCurveHeight / 2) + ")\"");
    const Nanoseconds tick = tick_step(end_, 12);
    for (Nanoseconds at = 0; at <= end_; at += tick) {
      svg_.line(x_of(at), axis_ - 4, x_of(at), axis_, "stroke=\"#222\"");
      svg_.text(x_of(at), axis_ + 14, format_time(at), "text-anchor=\"middle\"");
    }
    svg_.line(kLeft, axis_, kLeft + kPlotWidth, axis_, "stroke=\"#222\"");
    svg_.text(kLeft + kPlotWidth / 2, axis_ + 30, "time since step begin" + whose_time(),
              "text-anchor=\"middle\"");
  }

  // The point that each column shows: the one with the highest sum.
  [[nodiscard]] std::vector<std::size_t> shown_points() const {
    const MemoryByClass& memory = step_.memory;
    const MemoryCurve axis{{0}, {}, end_};
    std::vector<std::size_t> shown(kColumns, 0);
    std::vector<Bytes> most(kColumns, -1);
    for (std::size_t i = 0; i < memory.size(); ++i) {
      const Nanoseconds from = step_.time_of(memory.event[i]);
      const Nanoseconds until = i + 1 < memory.size() ? step_.time_of(memory.event[i + 1]) : end_;
      Bytes sum = 0;
      for (const auto& of_class : memory.bytes) sum += of_class[i];
      const std::size_t first = column_of(from, axis, kColumns);
      const std::size_t last = std::max(first, last_column_of(until, axis, kColumns));
      for (std::size_t c = first; c <= last; ++c) {
        if (sum <= most[c]) continue;
        most[c] = sum;
        shown[c] = i;
      }
    }
    return shown;
  }

  // A step function over the columns as path data, from left to right or back.
  [[nodiscard]] std::string outline(const std::vector<Bytes>& value, bool backwards) const {
    std::string data;
    for (std::size_t k = 0; k < kColumns; ++k) {
      const std::size_t c = backwards ? kColumns - 1 - k : k;
      const double from = kLeft + static_cast<double>(backwards ? c + 1 : c);
      const double to = kLeft + static_cast<double>(backwards ? c : c + 1);
      const std::size_t next = backwards ? c - 1 : c + 1;
      if (k == 0) data += svg_number(from) + " " + svg_number(y_of(value[c]));
      if (k + 1 < kColumns && value[next] == value[c]) continue;
      data += "H" + svg_number(to);
      if (k + 1 < kColumns) data += "V" + svg_number(y_of(value[next]));
    }
    return data;
  }

  void stack() {
    const std::vector<std::size_t> shown = shown_points();
    std::vector<Bytes> below(kColumns, 0);
    for (std::size_t c = 0; c < step_.memory.classes.size(); ++c) {
      std::vector<Bytes> above = below;
      for (std::size_t x = 0; x < kColumns; ++x) above[x] += step_.memory.bytes[c][shown[x]];
      svg_.path("M" + outline(above, false) + "L" + outline(below, true) + "Z",
                fill(colour_of(step_.memory.classes[c])));
      below = std::move(above);
    }
    const std::size_t highest_column =
        static_cast<std::size_t>(std::max_element(below.begin(), below.end()) - below.begin());
    const double x = kLeft + static_cast<double>(highest_column) + 0.5;
    const double y = y_of(below[highest_column]);
    svg_.path("M" + svg_number(x) + " " + svg_number(y - 2) + "l-4 -7h8Z", "fill=\"#222\"");
    const bool right = highest_column > kColumns / 2;
    svg_.text(x + (right ? -8 : 8), y - 4, "peak " + format_bytes(step_.peak_requested),
              right ? "text-anchor=\"end\"" : "");
  }

  void counted_line() {
    if (counted().empty()) return;
    MemoryCurve curve{step_.timeline.time, counted(), end_};
    for (Bytes& bytes : curve.bytes) bytes = std::max<Bytes>(bytes, 0);
    const std::vector<Bytes> maxima = column_maxima(curve, static_cast<int>(kColumns));
    svg_.path("M" + outline(maxima, false), "fill=\"none\" stroke=\"#222\"");
  }

  void budget_line() {
    if (!step_.budget) return;
    const double y = y_of(*step_.budget);
    svg_.line(kLeft, y, kLeft + kPlotWidth, y,
              std::string("stroke=\"") + kBudgetColour +
                  "\" stroke-width=\"1.5\" stroke-dasharray=\"8 5\"");
    svg_.text(kLeft + 6, y - 4,
              std::string("budget on ") + simulator::name_of(step_.budget_on) + " " +
                  format_bytes(*step_.budget),
              fill(kBudgetColour));
  }

  void draw_lane(Lane lane) {
    const double y = kLaneTop + static_cast<double>(lane) * kLaneStep;
    const std::vector<Span>& spans = step_.timeline.lane(lane);
    svg_.text(kLeft - 8, y + kLaneHeight / 2 + 4, title_of(lane), "text-anchor=\"end\"");
    svg_.rectangle(kLeft, y, kPlotWidth, kLaneHeight, "fill=\"#f5f5f5\"");
    if (spans.empty()) {
      svg_.text(kLeft + 6, y + kLaneHeight / 2 + 4, why_empty(lane), "fill=\"#888\"");
    }
    for (std::size_t i = 0; i < spans.size();) {
      const double x = x_of(spans[i].begin);
      double until = std::max(x_of(spans[i].end), x + 0.5);
      std::size_t next = i + 1;
      // Spans of one colour that no pixel tells apart are one rectangle.
      while (next < spans.size() && x_of(spans[next].begin) - until < 0.3 &&
             spans[next].kind == spans[i].kind && until - x < 1) {
        until = std::max(until, x_of(spans[next].end));
        ++next;
      }
      const bool is_one_op = next == i + 1 && lane == Lane::compute;
      svg_.rectangle(x, y, until - x, kLaneHeight,
                     fill(is_one_op ? colour_of(family(spans[i])) : colour_of(lane)),
                     tip_of(spans[i], next - i));
      i = next;
    }
  }

  [[nodiscard]] WorkFamily family(const Span& span) const {
    return span.name.valid() ? family_of(trace_.string(span.name)) : WorkFamily::other;
  }

  [[nodiscard]] std::string tip_of(const Span& span, std::size_t count) const {
    if (count > 1) return {};
    std::string tip = label_of(trace_, span) + ", " + format_time(span.end - span.begin);
    if (span.bytes > 0) tip += ", " + format_bytes(span.bytes);
    return shortened(tip, kTipLength);
  }

  [[nodiscard]] std::string why_empty(Lane lane) const {
    if (lane == Lane::launch) return "the trace has no device times: compute is the CPU";
    if (lane == Lane::stalls) {
      return step_.timeline.is_simulated ? "none" : "a recorded step says nothing of stalls";
    }
    return "nothing";
  }

  void entry(double& x, double y, const char* colour, const std::string& name) {
    svg_.rectangle(x, y - 10, 12, 12, fill(colour));
    svg_.text(x + 17, y, name);
    x += 30 + 7.0 * static_cast<double>(name.size());
  }

  void legend() {
    double x = kLeft;
    svg_.text(kLeft - 8, legend_, "memory", "text-anchor=\"end\"");
    for (const StorageClass each : step_.memory.classes) {
      entry(x, legend_, colour_of(each), stowage::name_of(each));
    }
    if (!counted().empty()) {
      svg_.line(x, legend_ - 4, x + 12, legend_ - 4, "stroke=\"#222\"");
      svg_.text(x + 17, legend_, std::string(simulator::name_of(step_.budget_on)) + " bytes");
    }
    x = kLeft;
    const double y = legend_ + 22;
    svg_.text(kLeft - 8, y, "lanes", "text-anchor=\"end\"");
    if (!step_.timeline.lane(Lane::launch).empty()) entry(x, y, colour_of(Lane::launch), "launch");
    entry(x, y, colour_of(Lane::d2h), "copy out");
    entry(x, y, colour_of(Lane::h2d), "copy back");
    entry(x, y, colour_of(Lane::stalls), "stall");
    if (lanes_ > kUsualLanes) entry(x, y, colour_of(Lane::updates), "update on the host");
    families(y + 22);
  }

  // Of the ops of compute. What shares a pixel has the colour of the lane.
  void families(double y) {
    std::array<bool, kWorkFamilies> is_there{};
    for (const Span& span : step_.timeline.lane(Lane::compute)) {
      is_there[static_cast<std::size_t>(family(span))] = true;
    }
    double x = kLeft;
    svg_.text(kLeft - 8, y, "compute", "text-anchor=\"end\"");
    for (std::size_t f = 0; f < kWorkFamilies; ++f) {
      const auto family = static_cast<WorkFamily>(f);
      if (is_there[f]) entry(x, y, colour_of(family), words_of(family));
    }
  }

  const StepView& step_;
  const Trace& trace_;
  const std::size_t lanes_;
  const double axis_;
  const double legend_;
  SvgWriter svg_;
  Nanoseconds end_ = 1;
  Bytes top_ = 1;
};

}  // namespace

std::string export_svg(const StepView& step) {
  return Picture(step).draw();
}

}  // namespace stowage::report
