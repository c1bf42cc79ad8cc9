#include "cli/junit.h"

#include <algorithm>
#include <array>
#include <cstdint>
#include <cstdio>

namespace stowage::cli {
namespace {

constexpr const char* kReplacement = "\xEF\xBF\xBD";  // U+FFFD

struct CodePoint {
  std::uint32_t value = 0;
  std::size_t bytes = 0;  // 0 = not UTF-8 here
};

CodePoint decode(const std::string& text, std::size_t at) {
  const auto byte = [&text](std::size_t i) { return static_cast<unsigned char>(text[i]); };
  const unsigned char first = byte(at);
  if (first < 0x80) return {first, 1};
  const std::size_t length = first >= 0xF0 ? 4 : first >= 0xE0 ? 3 : first >= 0xC2 ? 2 : 0;
  if (length == 0 || first > 0xF4 || at + length > text.size()) return {};
  std::uint32_t value = first & (0xFFU >> (length + 1));
  for (std::size_t i = 1; i < length; ++i) {
    if ((byte(at + i) & 0xC0U) != 0x80U) return {};
    value = value << 6U | (byte(at + i) & 0x3FU);
  }
  // Longer than needed, or half of a surrogate pair.
  const bool too_long = (length == 3 && value < 0x800) || (length == 4 && value < 0x10000);
  if (too_long || value > 0x10FFFF || (value >= 0xD800 && value <= 0xDFFF)) return {};
  return {value, length};
}

bool allowed_in_xml(std::uint32_t value) {
  if (value < 0x20) return value == '\t' || value == '\n' || value == '\r';
  return value != 0xFFFE && value != 0xFFFF;
}

std::string attribute(const std::string& name, const std::string& value) {
  std::string text = " " + name + "=\"";
  // A line break in an attribute would be read as a space.
  for (const char c : xml_escaped(value)) {
    if (c == '\n') {
      text += "&#10;";
    } else if (c == '\r') {
      text += "&#13;";
    } else if (c == '\t') {
      text += "&#9;";
    } else {
      text += c;
    }
  }
  return text + "\"";
}

// Seconds with three decimals.
std::string seconds(Nanoseconds time) {
  const Nanoseconds ms = std::max<Nanoseconds>(time, 0) / 1'000'000;
  std::array<char, 32> text{};
  std::snprintf(text.data(), text.size(), "%lld.%03lld", static_cast<long long>(ms / 1000),
                static_cast<long long>(ms % 1000));
  return text.data();
}

std::string case_xml(const JunitSuite& suite, const JunitCase& each) {
  std::string text = "    <testcase" + attribute("classname", suite.class_name) +
                     attribute("name", each.name) + attribute("time", "0") + ">\n";
  switch (each.outcome) {
    case JunitCase::Outcome::failed:
      text += "      <failure" + attribute("type", "regression") +
              attribute("message", each.message) + ">" + xml_escaped(each.text) + "</failure>\n";
      break;
    case JunitCase::Outcome::skipped:
      text += "      <skipped" + attribute("message", each.message) + "/>\n";
      break;
    case JunitCase::Outcome::passed:
      text += "      <system-out>" + xml_escaped(each.text) + "</system-out>\n";
      break;
  }
  return text + "    </testcase>\n";
}

}  // namespace

std::string xml_escaped(const std::string& text) {
  std::string escaped;
  escaped.reserve(text.size());
  for (std::size_t i = 0; i < text.size();) {
    const CodePoint point = decode(text, i);
    if (point.bytes == 0 || !allowed_in_xml(point.value)) {
      escaped += kReplacement;
      i += std::max<std::size_t>(point.bytes, 1);
      continue;
    }
    switch (point.value) {
      case '&':
        escaped += "&amp;";
        break;
      case '<':
        escaped += "&lt;";
        break;
      case '>':
        escaped += "&gt;";
        break;
      case '"':
        escaped += "&quot;";
        break;
      default:
        escaped.append(text, i, point.bytes);
    }
    i += point.bytes;
  }
  return escaped;
}

std::string junit_xml(const JunitSuite& suite) {
  const auto count = [&suite](JunitCase::Outcome outcome) {
    return std::to_string(
        std::count_if(suite.cases.begin(), suite.cases.end(),
                      [outcome](const JunitCase& each) { return each.outcome == outcome; }));
  };
  const std::string totals = attribute("tests", std::to_string(suite.cases.size())) +
                             attribute("failures", count(JunitCase::Outcome::failed)) +
                             attribute("errors", "0");
  std::string text = "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<testsuites" +
                     attribute("name", "stowage check") + totals +
                     attribute("time", seconds(suite.duration)) + ">\n  <testsuite" +
                     attribute("name", suite.name) + totals +
                     attribute("skipped", count(JunitCase::Outcome::skipped)) +
                     attribute("time", seconds(suite.duration)) +
                     attribute("timestamp", suite.timestamp) + ">\n    <properties>\n";
  for (const auto& [name, value] : suite.properties) {
    text += "      <property" + attribute("name", name) + attribute("value", value) + "/>\n";
  }
  text += "    </properties>\n";
  for (const JunitCase& each : suite.cases) text += case_xml(suite, each);
  return text + "  </testsuite>\n</testsuites>\n";
}

}  // namespace stowage::cli
