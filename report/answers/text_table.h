// A table of text: columns as wide as their longest cell, numbers to the right.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace stowage::report {

enum class Align : std::uint8_t { left, right };

// Columns that show: code points, with "\x1b[..m" sequences counted as none. Wide characters are
// not known to it.
[[nodiscard]] std::size_t display_width(std::string_view text);

class TextTable {
 public:
  // One entry a column. An empty title row (all "") is not printed.
  void column(std::string title, Align align = Align::left);
  // Missing cells are empty; more cells than columns are a bug.
  void row(std::vector<std::string> cells);
  [[nodiscard]] bool empty() const { return rows_.empty(); }

  // Each line is `indent` spaces, the cells two spaces apart, no trailing blanks, a newline.
  [[nodiscard]] std::string text(int indent = 0) const;

 private:
  std::vector<std::string> titles_;
  std::vector<Align> aligns_;
  std::vector<std::vector<std::string>> rows_;
};

}  // namespace stowage::report
