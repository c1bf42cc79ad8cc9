// JUnit XML as Jenkins, GitLab, GitHub's reporters and CDash read it. Whatever the texts hold, the
// file is well-formed XML 1.0: markup is escaped, control characters and bytes that are no UTF-8
// become U+FFFD.
#pragma once

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "traces/units.h"

namespace stowage::cli {

struct JunitCase {
  enum class Outcome : std::uint8_t { passed, failed, skipped };
  std::string name;
  Outcome outcome = Outcome::passed;
  std::string message;  // one line
  std::string text;     // of a failure: all of it; else written as the case's output
};

struct JunitSuite {
  std::string name;
  std::string class_name;  // of every case
  std::string timestamp;   // "2026-11-21T12:00:00", UTC
  Nanoseconds duration = 0;
  std::vector<std::pair<std::string, std::string>> properties;
  std::vector<JunitCase> cases;
};

// One <testsuites> with one <testsuite>. Valid for Jenkins' junit-10.xsd (tests/data/).
[[nodiscard]] std::string junit_xml(const JunitSuite& suite);

// For element content and for attribute values in double quotes.
[[nodiscard]] std::string xml_escaped(const std::string& text);

}  // namespace stowage::cli
