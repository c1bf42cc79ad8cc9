#include "traces/json_scanner.h"

#include <cstdint>
#include <limits>

namespace stowage {
namespace {

bool digit(char c) {
  return c >= '0' && c <= '9';
}
unsigned char byte(char c) {
  return static_cast<unsigned char>(c);
}

void append_utf8(std::string& out, unsigned code) {
  const auto put = [&out](unsigned value) { out += static_cast<char>(value); };
  if (code < 0x80) {
    put(code);
  } else if (code < 0x800) {
    put(0xC0 | code >> 6);
    put(0x80 | (code & 0x3F));
  } else if (code < 0x10000) {
    put(0xE0 | code >> 12);
    put(0x80 | (code >> 6 & 0x3F));
    put(0x80 | (code & 0x3F));
  } else {
    put(0xF0 | code >> 18);
    put(0x80 | (code >> 12 & 0x3F));
    put(0x80 | (code >> 6 & 0x3F));
    put(0x80 | (code & 0x3F));
  }
}

}  // namespace

JsonScanner::JsonScanner(std::string_view text, TraceReader& reader)
    : begin_(text.data()), at_(text.data()), end_(text.data() + text.size()), reader_(reader) {
  if (text.substr(0, 3) == "\xEF\xBB\xBF") at_ += 3;  // a byte order mark
}

bool JsonScanner::bad(const char* what) {
  const std::string place = std::to_string(at_ - begin_);
  if (at_end())
    return reader_.fail("is not valid JSON: it ends too early, at byte " + place,
                        "the file was not written or copied completely");
  return reader_.fail("is not valid JSON at byte " + place + ": " + what,
                      "the file is damaged or of another kind");
}

void JsonScanner::skip_space() {
  while (at_ != end_ && (*at_ == ' ' || *at_ == '\n' || *at_ == '\r' || *at_ == '\t')) ++at_;
}

bool JsonScanner::scan() {
  skip_space();
  if (!value()) return false;
  // Each round: what may come between the last value and the next one, then that one.
  while (!open_.empty()) {
    bool more = false;
    if (!after_value(more)) return false;
    if (more && !value()) return false;
  }
  skip_space();
  return at_end() || bad("there is something after the end");
}

// After a value: a closing bracket (more = false), or on to the next value.
bool JsonScanner::after_value(bool& more) {
  skip_space();
  if (at_end()) return bad("");
  const char close = open_.back();
  if (*at_ == close) {
    ++at_;
    open_.pop_back();
    return close == ']' ? reader_.end_array() : reader_.end_object();
  }
  if (*at_ != ',') return bad("a comma or a closing bracket is expected");
  ++at_;
  skip_space();
  more = true;
  if (close == ']') return true;
  return key();
}

// A key and its colon, up to the value.
bool JsonScanner::key() {
  if (at_end() || *at_ != '"') return bad("a key is expected");
  if (!string()) return false;
  skip_space();
  if (at_end() || *at_ != ':') return bad("a colon is expected");
  ++at_;
  skip_space();
  return reader_.key(string_);
}

bool JsonScanner::value() {
  for (;;) {
    if (at_end()) return bad("");
    const char c = *at_;
    if (c == '-' || digit(c)) return numbers() && number();
    if (c == '"') return string() && reader_.text(string_);
    if (c == '[' || c == '{') {
      if (!(c == '[' ? reader_.begin_array() : reader_.begin_object())) return false;
      const char close = c == '[' ? ']' : '}';
      ++at_;
      skip_space();
      if (!at_end() && *at_ == close) {
        ++at_;
        return close == ']' ? reader_.end_array() : reader_.end_object();
      }
      open_.push_back(close);
      if (close == ']') continue;  // its first value
      if (!key()) return false;
      continue;
    }
    if (c == 't') return literal("true") && reader_.foreign("true");
    if (c == 'f') return literal("false") && reader_.foreign("false");
    if (c == 'n') return literal("null") && reader_.foreign("null");
    return bad("a value is expected");
  }
}

bool JsonScanner::literal(std::string_view word) {
  if (std::string_view(at_, static_cast<std::size_t>(end_ - at_)).substr(0, word.size()) != word) {
    return bad("a value is expected");
  }
  at_ += word.size();
  return true;
}

// Nearly all of a trace: one to 18 digits, a comma and at once the next number. Takes those, up to
// one that is not followed so, where the caller goes on with number().
bool JsonScanner::numbers() {
  if (open_.empty() || open_.back() != ']') return true;
  for (;;) {
    const char* at = at_;
    const bool negative = *at == '-';
    if (negative) ++at;
    const char* first = at;
    std::int64_t value = 0;
    while (at != end_ && digit(*at) && at - first < 18) value = value * 10 + (*at++ - '0');
    const std::ptrdiff_t digits = at - first;
    if (digits == 0 || (digits > 1 && *first == '0') || end_ - at < 2 || *at != ',') return true;
    if (at[1] != '-' && !digit(at[1])) return true;
    at_ = at;
    if (!reader_.integer(negative ? -value : value)) return false;
    ++at_;
  }
}

bool JsonScanner::number() {
  const bool negative = *at_ == '-';
  if (negative) ++at_;
  if (at_end() || !digit(*at_)) return bad("a digit is expected");
  constexpr std::uint64_t kMax = std::numeric_limits<std::int64_t>::max();
  const std::uint64_t limit = negative ? kMax + 1 : kMax;
  std::uint64_t magnitude = 0;
  bool large = false;
  if (*at_ == '0') {
    ++at_;
    if (!at_end() && digit(*at_)) return bad("a number begins with 0");
  } else {
    const char* first = at_;
    while (!at_end() && digit(*at_)) {
      const auto next = static_cast<std::uint64_t>(*at_ - '0');
      // 18 digits always fit.
      if (at_ - first >= 18) {
        large = large || magnitude > (limit - next) / 10;
        if (large) magnitude = 0;
      }
      magnitude = magnitude * 10 + next;
      ++at_;
    }
  }
  bool whole = true;
  if (!at_end() && *at_ == '.') {
    whole = false;
    ++at_;
    if (at_end() || !digit(*at_)) return bad("a digit is expected");
    while (!at_end() && digit(*at_)) ++at_;
  }
  if (!at_end() && (*at_ == 'e' || *at_ == 'E')) {
    whole = false;
    ++at_;
    if (!at_end() && (*at_ == '+' || *at_ == '-')) ++at_;
    if (at_end() || !digit(*at_)) return bad("a digit is expected");
    while (!at_end() && digit(*at_)) ++at_;
  }
  if (!whole) return reader_.foreign("a number with a fraction or an exponent");
  if (large) return reader_.foreign("an integer beyond 64 bits");
  if (!negative) return reader_.integer(static_cast<std::int64_t>(magnitude));
  // The lowest value has no positive counterpart.
  if (magnitude == 0) return reader_.integer(0);
  return reader_.integer(-static_cast<std::int64_t>(magnitude - 1) - 1);
}

// At the opening quote; leaves the text in string_.
bool JsonScanner::string() {
  string_.clear();
  ++at_;
  for (;;) {
    const char* start = at_;
    while (!at_end() && *at_ != '"' && *at_ != '\\' && byte(*at_) >= 0x20 && byte(*at_) < 0x80) {
      ++at_;
    }
    string_.append(start, at_);
    if (at_end()) return bad("");
    if (*at_ == '"') {
      ++at_;
      return true;
    }
    if (*at_ == '\\') {
      if (!escape()) return false;
    } else if (byte(*at_) < 0x20) {
      return bad("a control character inside a string");
    } else if (!utf8()) {
      return false;
    }
  }
}

bool JsonScanner::escape() {
  ++at_;
  if (at_end()) return bad("");
  const char c = *at_++;
  constexpr std::string_view kFrom = "\"\\/bfnrt";
  constexpr std::string_view kTo = "\"\\/\b\f\n\r\t";
  const std::size_t simple = kFrom.find(c);
  if (simple != std::string_view::npos) {
    string_ += kTo[simple];
    return true;
  }
  if (c != 'u') {
    --at_;
    return bad("an unknown escape");
  }
  unsigned code = 0;
  if (!code_unit(code)) return false;
  if (code >= 0xDC00 && code < 0xE000) return bad("half a surrogate pair");
  if (code >= 0xD800 && code < 0xDC00) {
    unsigned low = 0;
    if (end_ - at_ < 2 || at_[0] != '\\' || at_[1] != 'u') return bad("half a surrogate pair");
    at_ += 2;
    if (!code_unit(low)) return false;
    if (low < 0xDC00 || low >= 0xE000) return bad("half a surrogate pair");
    code = 0x10000 + ((code - 0xD800) << 10) + (low - 0xDC00);
  }
  append_utf8(string_, code);
  return true;
}

bool JsonScanner::code_unit(unsigned& out) {
  out = 0;
  for (int i = 0; i < 4; ++i) {
    if (at_end()) return bad("");
    const char c = *at_;
    unsigned value = 0;
    if (digit(c))
      value = static_cast<unsigned>(c - '0');
    else if (c >= 'a' && c <= 'f')
      value = static_cast<unsigned>(c - 'a') + 10;
    else if (c >= 'A' && c <= 'F')
      value = static_cast<unsigned>(c - 'A') + 10;
    else
      return bad("four hex digits are expected");
    out = out * 16 + value;
    ++at_;
  }
  return true;
}

// One character of two to four bytes: no overlong forms, surrogates or values above U+10FFFF.
bool JsonScanner::utf8() {
  const unsigned lead = byte(*at_);
  const int length = lead >= 0xC2 && lead <= 0xDF   ? 2
                     : lead >= 0xE0 && lead <= 0xEF ? 3
                     : lead >= 0xF0 && lead <= 0xF4 ? 4
                                                    : 0;
  if (length == 0 || end_ - at_ < length) return bad("a string is not UTF-8");
  unsigned low = 0x80;
  unsigned high = 0xBF;
  if (lead == 0xE0) low = 0xA0;
  if (lead == 0xED) high = 0x9F;
  if (lead == 0xF0) low = 0x90;
  if (lead == 0xF4) high = 0x8F;
  for (int i = 1; i < length; ++i) {
    const unsigned next = byte(at_[i]);
    if (next < low || next > high) return bad("a string is not UTF-8");
    low = 0x80;
    high = 0xBF;
  }
  string_.append(at_, at_ + length);
  at_ += length;
  return true;
}

}  // namespace stowage
