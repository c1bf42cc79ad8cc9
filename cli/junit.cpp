#include "cli/junit.h"

#include <algorithm>
#include <array>
#include <cstdio>

#include "report/text_escape.h"

namespace stowage::cli {
namespace {

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
  return report::xml_escaped(text, "'\r");
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
