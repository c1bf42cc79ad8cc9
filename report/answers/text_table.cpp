#include "report/answers/text_table.h"

#include <algorithm>

#include "traces/result.h"

namespace stowage::report {
namespace {

std::string line_of(const std::vector<std::string>& cells, const std::vector<Align>& aligns,
                    const std::vector<std::size_t>& widths, int indent) {
  std::string line(static_cast<std::size_t>(indent), ' ');
  for (std::size_t i = 0; i < widths.size(); ++i) {
    const std::string_view cell = i < cells.size() ? std::string_view(cells[i]) : "";
    const std::string padding(widths[i] - display_width(cell), ' ');
    if (i > 0) line += "  ";
    if (aligns[i] == Align::right) line += padding;
    line += cell;
    if (aligns[i] == Align::left) line += padding;
  }
  line.erase(line.find_last_not_of(' ') + 1);
  line += '\n';
  return line;
}

}  // namespace

std::size_t display_width(std::string_view text) {
  std::size_t width = 0;
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (text[i] == '\x1b') {
      while (i < text.size() && text[i] != 'm') ++i;
      continue;
    }
    // UTF-8 continuation bytes are 10xxxxxx.
    if ((static_cast<unsigned char>(text[i]) & 0xC0U) != 0x80U) ++width;
  }
  return width;
}

void TextTable::column(std::string title, Align align) {
  titles_.push_back(std::move(title));
  aligns_.push_back(align);
}

void TextTable::row(std::vector<std::string> cells) {
  STOWAGE_ASSERT(cells.size() <= titles_.size());
  rows_.push_back(std::move(cells));
}

std::string TextTable::text(int indent) const {
  std::vector<std::size_t> widths;
  for (const auto& title : titles_) widths.push_back(display_width(title));
  for (const auto& row : rows_) {
    for (std::size_t i = 0; i < row.size(); ++i) {
      widths[i] = std::max(widths[i], display_width(row[i]));
    }
  }
  std::string text;
  if (std::any_of(titles_.begin(), titles_.end(), [](const auto& t) { return !t.empty(); })) {
    text += line_of(titles_, aligns_, widths, indent);
  }
  for (const auto& row : rows_) text += line_of(row, aligns_, widths, indent);
  return text;
}

}  // namespace stowage::report
