#include "traces/size_text.h"

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <span>

namespace stowage {
namespace {

constexpr std::int64_t kMax = std::numeric_limits<std::int64_t>::max();
constexpr std::size_t kMaxDecimals = 9;
constexpr std::int64_t kMaxShareScale = 1'000'000;

struct UnitName {
  std::string_view name;  // in lower case
  std::int64_t factor;
};

constexpr std::array<UnitName, 10> kSizeUnits = {{
    {"", 1},
    {"b", 1},
    {"kb", 1'000},
    {"mb", 1'000'000},
    {"gb", 1'000'000'000},
    {"tb", 1'000'000'000'000},
    {"kib", std::int64_t{1} << 10},
    {"mib", std::int64_t{1} << 20},
    {"gib", std::int64_t{1} << 30},
    {"tib", std::int64_t{1} << 40},
}};

constexpr std::array<UnitName, 5> kTimeUnits = {{
    {"ns", 1},
    {"us", 1'000},
    {"\xC2\xB5s", 1'000},
    {"ms", 1'000'000},
    {"s", 1'000'000'000},
}};

// A decimal number cut into digits and unit; `value` is digits without the point.
struct Number {
  std::int64_t value = 0;
  std::int64_t scale = 1;  // 10^decimals
  std::string unit;        // in lower case, trimmed
};

Error usage(std::string_view text, const std::string& what, const char* hint) {
  Error error;
  error.code = ErrorCode::usage;
  error.message = "'" + std::string(text.substr(0, 40)) + "' " + what;
  error.hint = hint;
  return error;
}

bool size_digit(char c) {
  return c >= '0' && c <= '9';
}

std::string_view trim(std::string_view text) {
  while (!text.empty() && (text.front() == ' ' || text.front() == '\t')) text.remove_prefix(1);
  while (!text.empty() && (text.back() == ' ' || text.back() == '\t')) text.remove_suffix(1);
  return text;
}

Result<Number> split(std::string_view text, const char* noun, const char* hint) {
  const std::string_view trimmed = trim(text);
  const std::string is_no = std::string("is not a ") + noun;
  if (trimmed.empty()) return usage(text, is_no + ": it is empty", hint);
  if (trimmed.front() == '-') return usage(text, is_no + ": it is negative", hint);
  Number number;
  std::size_t at = 0;
  std::size_t digits = 0;
  std::size_t decimals = 0;
  bool point = false;
  for (; at < trimmed.size(); ++at) {
    const char c = trimmed[at];
    if (c == '.' && !point) {
      point = true;
      continue;
    }
    if (!size_digit(c)) break;
    ++digits;
    if (point && ++decimals > kMaxDecimals) continue;  // below a billionth of the unit
    if (number.value > (kMax - (c - '0')) / 10) return usage(text, "is too large", hint);
    number.value = number.value * 10 + (c - '0');
    if (point) number.scale *= 10;
  }
  if (digits == 0) return usage(text, is_no + ": it does not begin with a number", hint);
  const std::string_view unit = trim(trimmed.substr(at));
  number.unit.assign(unit);
  std::transform(number.unit.begin(), number.unit.end(), number.unit.begin(), [](char c) {
    return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
  });
  return number;
}

// floor(value * factor / scale); false on overflow.
bool scaled(std::int64_t value, std::int64_t factor, std::int64_t scale, std::int64_t& out) {
  const Wide wide = static_cast<Wide>(value) * factor / scale;
  if (wide > kMax) return false;
  out = static_cast<std::int64_t>(wide);
  return true;
}

Result<std::int64_t> convert(std::string_view text, const Number& number,
                             std::span<const UnitName> units, const char* hint) {
  for (const UnitName& unit : units) {
    if (unit.name != number.unit) continue;
    std::int64_t out = 0;
    if (!scaled(number.value, unit.factor, number.scale, out)) {
      return usage(text, "is too large", hint);
    }
    return out;
  }
  if (number.unit.empty()) return usage(text, "has no unit", hint);
  return usage(text, "has an unknown unit '" + number.unit.substr(0, 20) + "'", hint);
}

// `value` in units of `unit`, three significant digits, rounded half up.
std::string three_digits(std::int64_t value, std::int64_t unit) {
  const std::int64_t whole = value / unit;
  std::int64_t decimals = whole >= 100 ? 0 : whole >= 10 ? 1 : 2;
  std::int64_t power = decimals == 0 ? 1 : decimals == 1 ? 10 : 100;
  Wide scaled_value = (static_cast<Wide>(value) * power + unit / 2) / unit;
  if (decimals > 0 && scaled_value >= 1000) {  // 9.996 -> 10.0, 99.96 -> 100
    --decimals;
    power /= 10;
    scaled_value = (static_cast<Wide>(value) * power + unit / 2) / unit;
  }
  const auto number = static_cast<std::int64_t>(scaled_value);
  std::string out = std::to_string(number / power);
  if (decimals > 0) {
    std::string rest = std::to_string(number % power);
    rest.insert(0, static_cast<std::size_t>(decimals) - rest.size(), '0');
    out += "." + rest;
  }
  return out;
}

struct Step {
  const char* name;
  std::int64_t factor;
};

std::string format(std::int64_t value, std::span<const Step> steps) {
  const bool negative = value < 0;
  if (value == std::numeric_limits<std::int64_t>::min()) ++value;
  const std::int64_t magnitude = negative ? -value : value;
  const std::string sign = negative ? "-" : "";
  if (magnitude < 1000) return sign + std::to_string(magnitude) + " " + steps.front().name;
  std::size_t at = 1;
  // 999.5 of a unit is already shown as 1.00 of the next one.
  while (at + 1 < steps.size() && magnitude >= steps[at + 1].factor - steps[at].factor / 2) ++at;
  return sign + three_digits(magnitude, steps[at].factor) + " " + steps[at].name;
}

constexpr std::array<Step, 7> kByteSteps = {{{"B", 1},
                                             {"kB", 1'000},
                                             {"MB", 1'000'000},
                                             {"GB", 1'000'000'000},
                                             {"TB", 1'000'000'000'000},
                                             {"PB", 1'000'000'000'000'000},
                                             {"EB", 1'000'000'000'000'000'000}}};
constexpr std::array<Step, 7> kBinarySteps = {{{"B", 1},
                                               {"KiB", std::int64_t{1} << 10},
                                               {"MiB", std::int64_t{1} << 20},
                                               {"GiB", std::int64_t{1} << 30},
                                               {"TiB", std::int64_t{1} << 40},
                                               {"PiB", std::int64_t{1} << 50},
                                               {"EiB", std::int64_t{1} << 60}}};
constexpr std::array<Step, 4> kTimeSteps = {
    {{"ns", 1}, {"us", 1'000}, {"ms", 1'000'000}, {"s", 1'000'000'000}}};

}  // namespace

namespace {

// What a size that is written in a common way means, or empty. `text` has been split.
std::string likely_size(std::string_view text, const Number& number, bool has_base) {
  constexpr std::string_view kPrefixes = "kmgt";
  const std::string digits(trim(text).substr(0, trim(text).find_first_not_of("0123456789.")));
  const std::string& unit = number.unit;
  const bool is_short = unit.size() == 1 || (unit.size() == 2 && unit[1] == 'i');
  if (is_short && kPrefixes.find(unit[0]) != std::string_view::npos) {
    const char prefix = static_cast<char>(unit[0] - 'a' + 'A');
    const std::string binary = digits + prefix + "iB";
    return unit.size() == 2
               ? "did you mean " + binary + "?"
               : "did you mean " + binary + ", as cards are sold, or " + digits + prefix + "B?";
  }
  // 0.6 bytes: a share, most likely.
  if (!has_base || !unit.empty() || number.scale > kMaxShareScale || number.value >= number.scale) {
    return "";
  }
  const std::int64_t tenths = number.value * 1000 / number.scale;
  const std::string rest = tenths % 10 == 0 ? "" : "." + std::to_string(tenths % 10);
  return "did you mean " + std::to_string(tenths / 10) + rest + "%?";
}

}  // namespace

Result<Bytes> parse_size(std::string_view text, std::optional<Bytes> percent_base) {
  const char* hint = percent_base ? "write a size such as 24GiB, 24GB, 512MiB, 4096 or 60%"
                                  : "write a size such as 24GiB, 24GB, 512MiB or 4096";
  auto number = split(text, "size", hint);
  if (!number) return std::move(number).error();
  if (number->value == 0 && (number->unit.empty() || number->unit == "%")) {
    return usage(text, "is not a size: it is zero", hint);
  }
  Result<Bytes> bytes = Bytes{0};
  if (number->unit == "%") {
    if (!percent_base)
      return usage(text, "is a percentage, and there is nothing to take it of", hint);
    std::int64_t out = 0;
    if (!scaled(number->value, *percent_base, number->scale * 100, out)) {
      return usage(text, "is too large", hint);
    }
    bytes = out;
  } else {
    bytes = convert(text, *number, kSizeUnits, hint);
  }
  const bool is_wrong = !bytes || *bytes <= 0;
  const std::string likely =
      is_wrong && number->value > 0 ? likely_size(text, *number, percent_base.has_value()) : "";
  if (!likely.empty()) hint = likely.c_str();
  if (!bytes && !likely.empty()) {
    Error error = bytes.error();
    error.hint = likely;
    return error;
  }
  if (bytes && *bytes <= 0) return usage(text, "is less than one byte", hint);
  return bytes;
}

Result<Nanoseconds> parse_time(std::string_view text) {
  const char* hint = "write a time such as 1.5ms, 20us, 300ns or 2s";
  auto number = split(text, "time", hint);
  if (!number) return std::move(number).error();
  auto time = convert(text, *number, kTimeUnits, hint);
  if (!time && number->unit.empty()) {
    Error error = time.error();
    error.hint =
        "did you mean " + std::string(trim(text)) + "s or " + std::string(trim(text)) + "ms?";
    return error;
  }
  return time;
}

std::string format_bytes(Bytes bytes) {
  return format(bytes, kByteSteps);
}
std::string format_bytes(Bytes bytes, ByteUnits units) {
  if (units == ByteUnits::decimal) return format_bytes(bytes);
  return format(bytes, kBinarySteps);
}
ByteUnits units_of(std::string_view text) {
  const std::size_t i = text.find_first_of("iI");
  return i == std::string_view::npos ? ByteUnits::decimal : ByteUnits::binary;
}
std::string format_time(Nanoseconds time) {
  return format(time, kTimeSteps);
}

}  // namespace stowage
