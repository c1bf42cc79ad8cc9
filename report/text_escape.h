// Foreign names inside other formats.
#pragma once

#include <string>
#include <string_view>

#include "report/answers/paint.h"

namespace stowage::report {

// Valid UTF-8: every byte that is no part of it becomes U+FFFD.
[[nodiscard]] std::string valid_utf8(std::string_view text);

// For text and attributes of XML 1.0: & < > " ' as entities; what no XML document may hold (control
// characters but tab and newline, bytes that are no UTF-8) becomes U+FFFD. Characters of `kept`
// stay as they are.
[[nodiscard]] std::string xml_escaped(std::string_view text, std::string_view kept = {});

// A field of a CSV row (RFC 4180): in quotes when it holds a comma, a quote or a line break.
[[nodiscard]] std::string csv_field(std::string_view text);

// One line that moves no cursor, whatever `text` is: a '?' for each byte of a control character, of
// a separator of lines or a mark of direction, and for each byte that is no UTF-8.
[[nodiscard]] std::string printable(std::string text);
// The same for lines that `paint` coloured: line breaks and its own colours stay, no others.
[[nodiscard]] std::string printable_lines(std::string_view text, const Paint& paint);

// At most about `most` bytes, " .. " in place of the middle: what a text begins and ends with says
// more than its length. Cuts between characters.
[[nodiscard]] std::string abridged(std::string_view text, std::size_t most);

// At most `most` characters (of UTF-8), the last one a "…" when some were cut off.
[[nodiscard]] std::string shortened(std::string_view text, std::size_t most);

}  // namespace stowage::report
