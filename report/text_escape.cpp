#include "report/text_escape.h"

namespace stowage::report {
namespace {

constexpr std::string_view kReplacement = "\xEF\xBF\xBD";

// Length of the well-formed sequence at the front (Unicode, table 3-7); 0 = none.
std::size_t sequence_length(std::string_view text) {
  const auto at = [&](std::size_t i) {
    return i < text.size() ? static_cast<unsigned char>(text[i]) : 0U;
  };
  const auto follows = [&](std::size_t i) { return (at(i) & 0xC0U) == 0x80U; };
  const unsigned first = at(0);
  const unsigned second = at(1);
  if (first < 0x80) return 1;
  if (first >= 0xC2 && first <= 0xDF) return follows(1) ? 2 : 0;
  if (first >= 0xE0 && first <= 0xEF) {
    if (first == 0xE0 && second < 0xA0) return 0;  // overlong
    if (first == 0xED && second > 0x9F) return 0;  // a surrogate
    return follows(1) && follows(2) ? 3 : 0;
  }
  if (first >= 0xF0 && first <= 0xF4) {
    if (first == 0xF0 && second < 0x90) return 0;
    if (first == 0xF4 && second > 0x8F) return 0;
    return follows(1) && follows(2) && follows(3) ? 4 : 0;
  }
  return 0;
}

// Calls `use` with each character, U+FFFD for a byte that is none.
template <class Use>
void for_each_character(std::string_view text, const Use& use) {
  while (!text.empty()) {
    const std::size_t length = sequence_length(text);
    use(length > 0 ? text.substr(0, length) : kReplacement);
    text.remove_prefix(length > 0 ? length : 1);
  }
}

bool is_xml(std::string_view character) {
  if (character == "\xEF\xBF\xBE" || character == "\xEF\xBF\xBF") return false;
  const auto first = static_cast<unsigned char>(character.front());
  return first >= 0x20 || first == '\t' || first == '\n';
}

}  // namespace

std::string valid_utf8(std::string_view text) {
  std::string out;
  out.reserve(text.size());
  for_each_character(text, [&out](std::string_view character) { out += character; });
  return out;
}

std::string xml_escaped(std::string_view text, std::string_view kept) {
  std::string out;
  for_each_character(text, [&](std::string_view character) {
    if (kept.find(character) != std::string_view::npos) {
      out += character;
    } else if (character == "&") {
      out += "&amp;";
    } else if (character == "<") {
      out += "&lt;";
    } else if (character == ">") {
      out += "&gt;";
    } else if (character == "\"") {
      out += "&quot;";
    } else if (character == "'") {
      out += "&#39;";
    } else {
      out += is_xml(character) ? character : kReplacement;
    }
  });
  return out;
}

std::string csv_field(std::string_view text) {
  if (text.find_first_of(",\"\r\n") == std::string_view::npos) return std::string(text);
  std::string out = "\"";
  for (const char c : text) {
    if (c == '"') out += '"';
    out += c;
  }
  return out + "\"";
}

std::string shortened(std::string_view text, std::size_t most) {
  std::string out;
  std::size_t count = 0;
  std::size_t keep = 0;  // bytes that leave a character for the ellipsis
  for_each_character(text, [&](std::string_view character) {
    if (count + 1 == most) keep = out.size();
    ++count;
    out += character;
  });
  if (count <= most) return out;
  return out.substr(0, keep) + "…";
}

// C1 controls are U+0080 to U+009F: C2 80 to C2 9F in UTF-8.
std::string printable(std::string text) {
  for (std::size_t i = 0; i < text.size(); ++i) {
    const auto byte = static_cast<unsigned char>(text[i]);
    if (byte < 0x20 || byte == 0x7F) text[i] = '?';
    const bool c1 = byte == 0xC2 && i + 1 < text.size() &&
                    (static_cast<unsigned char>(text[i + 1]) & 0xE0U) == 0x80U;
    if (c1) text.replace(i, 2, "?");
  }
  return text;
}

}  // namespace stowage::report
