#include "report/text_escape.h"

#include <algorithm>

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

// Changes where a terminal goes on writing, or in which direction: the controls of ASCII and of
// Unicode's second page, line and paragraph separators, the marks that turn the direction of text.
bool moves_cursor(std::string_view character) {
  const auto at = [&](std::size_t i) { return static_cast<unsigned char>(character[i]); };
  if (character.size() == 1) return at(0) < 0x20 || at(0) == 0x7F;
  if (character.size() == 2) return at(0) == 0xC2 && at(1) < 0xA0;
  if (character.size() != 3 || at(0) != 0xE2) return false;
  const unsigned last = at(2);
  if (at(1) == 0x80) return last == 0x8E || last == 0x8F || (last >= 0xA8 && last <= 0xAE);
  return at(1) == 0x81 && last >= 0xA6 && last <= 0xA9;
}

// A '?' for each byte that is no character or moves the cursor: a pattern of the result matches the
// text itself. `kept` says how many bytes at the front stay as they are.
template <class Kept>
std::string with_marks(std::string_view text, const Kept& kept) {
  std::string out;
  out.reserve(text.size());
  while (!text.empty()) {
    const std::size_t stays = kept(text);
    const std::size_t length = stays > 0 ? stays : std::max<std::size_t>(sequence_length(text), 1);
    const std::string_view front = text.substr(0, length);
    const bool is_shown = stays > 0 || (sequence_length(text) > 0 && !moves_cursor(front));
    is_shown ? out.append(front) : out.append(length, '?');
    text.remove_prefix(length);
  }
  return out;
}

bool is_inside(char c) {
  return (static_cast<unsigned char>(c) & 0xC0U) == 0x80U;
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

std::string printable(std::string text) {
  return with_marks(text, [](std::string_view) { return std::size_t{0}; });
}

std::string printable_lines(std::string_view text, const Paint& paint) {
  return with_marks(text, [&paint](std::string_view rest) {
    return rest.front() == '\n' ? std::size_t{1} : paint.length_at(rest);
  });
}

std::string abridged(std::string_view text, std::size_t most) {
  if (text.size() <= most) return std::string(text);
  const std::size_t head = most * 2 / 3;
  const std::size_t tail = most - head;
  std::size_t begin = head;
  std::size_t end = text.size() - tail;
  while (begin > 0 && is_inside(text[begin])) --begin;
  while (end < text.size() && is_inside(text[end])) ++end;
  return std::string(text.substr(0, begin)) + " .. " + std::string(text.substr(end));
}

}  // namespace stowage::report
