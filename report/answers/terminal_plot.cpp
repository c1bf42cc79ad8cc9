#include "report/answers/terminal_plot.h"

#include <algorithm>
#include <array>
#include <string_view>

#include "report/answers/text_table.h"
#include "traces/size_text.h"

namespace stowage::report {
namespace {

constexpr std::array<std::string_view, 9> kEighths = {" ", "▁", "▂", "▃", "▄", "▅", "▆", "▇", "█"};

struct Glyphs {
  std::string_view axis;
  std::string_view dash;
  std::string_view mark;
};
constexpr Glyphs kUnicode = {"│", "┄", "│"};
constexpr Glyphs kAscii = {"|", "-", "|"};

// Eighths of a row that `bytes` fill, rounded up so that a byte is never invisible.
int eighths(Bytes bytes, Bytes scale, int height) {
  if (bytes <= 0) return 0;
  const double share = static_cast<double>(bytes) / static_cast<double>(scale);
  const int all = height * 8;
  return std::clamp(static_cast<int>(share * all + 0.999999), 1, all);
}

std::string_view cell(int filled, bool unicode) {
  const int level = std::clamp(filled, 0, 8);
  if (unicode) return kEighths[static_cast<std::size_t>(level)];
  return level >= 4 ? "#" : (level > 0 ? "." : " ");
}

// Names below the axis, each at the column where its span begins; one that does not fit before the
// next begins is cut.
std::string span_line(const MemoryCurve& curve, const PlotOptions& options, std::size_t columns,
                      std::size_t margin, const Glyphs& glyphs) {
  std::string line(margin, ' ');
  std::size_t at = 0;
  for (std::size_t i = 0; i < options.spans.size(); ++i) {
    const std::size_t begin = column_of(options.spans[i].begin, curve, columns);
    const std::size_t end = i + 1 < options.spans.size()
                                ? column_of(options.spans[i + 1].begin, curve, columns)
                                : columns;
    if (end < begin + 3 || begin < at) continue;
    line += std::string(begin - at, ' ');
    line += glyphs.mark;
    const std::string name = options.spans[i].name.substr(0, end - begin - 2);
    line += name;
    at = begin + 1 + name.size();
  }
  return line + "\n";
}

}  // namespace

std::string draw(const MemoryCurve& curve, const PlotOptions& options) {
  if (curve.time.empty()) return {};
  const Bytes highest = *std::max_element(curve.bytes.begin(), curve.bytes.end());
  const Bytes scale = std::max({options.scale, highest, options.budget.value_or(0), Bytes{1}});
  const int height = std::max(options.height, 2);
  const Glyphs& glyphs = options.unicode ? kUnicode : kAscii;

  // The row whose label is the budget's, counted from the bottom.
  int budget_row = -1;
  if (options.budget) {
    budget_row = std::min((eighths(*options.budget, scale, height) - 1) / 8, height - 1);
  }
  std::vector<std::string> labels(static_cast<std::size_t>(height));
  labels.back() = format_bytes(scale, options.units);
  labels.front() = "0";
  if (budget_row >= 0)
    labels[static_cast<std::size_t>(budget_row)] = format_bytes(*options.budget, options.units);
  std::size_t margin = 0;
  for (const auto& label : labels) margin = std::max(margin, display_width(label));

  const std::string_view tail = budget_row >= 0 ? " budget" : "";
  const auto taken = margin + 2 + tail.size();
  const auto width = static_cast<std::size_t>(std::max(options.width, 40));
  const std::size_t columns = width > taken + 10 ? width - taken : 10;
  const std::vector<Bytes> maxima = column_maxima(curve, static_cast<int>(columns));

  std::string text;
  for (int row = height - 1; row >= 0; --row) {
    const std::string& label = labels[static_cast<std::size_t>(row)];
    std::string line(margin - display_width(label), ' ');
    line += label;
    line += ' ';
    line += glyphs.axis;
    for (const Bytes bytes : maxima) {
      const int filled = eighths(bytes, scale, height) - row * 8;
      line += row == budget_row && filled <= 0 ? glyphs.dash : cell(filled, options.unicode);
    }
    if (row == budget_row) line += tail;
    line.erase(line.find_last_not_of(' ') + 1);
    text += line + "\n";
  }
  if (!options.spans.empty()) text += span_line(curve, options, columns, margin + 2, glyphs);
  return text;
}

}  // namespace stowage::report
