// JUnit files: well-formed whatever the texts hold, and valid for Jenkins' schema. xmllint judges
// (libxml2-utils, which scripts/setup.sh installs); without it these tests fail.
#include "cli/junit.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <random>

#include "tests/cli/process.h"

namespace stowage::cli_tests {
namespace {

using cli::JunitCase;
using cli::JunitSuite;
using ::testing::HasSubstr;
using ::testing::Not;

Outcome lint(const std::string& xml) {
  const TemporaryFolder folder;
  Command command;
  command.program = "/usr/bin/env";
  command.args = {"xmllint", "--noout", "--schema", STOWAGE_TEST_DATA_DIR "/junit-10.xsd",
                  folder.write("junit.xml", xml)};
  return run(command);
}

JunitSuite suite_of(const std::string& text) {
  return {.name = text,
          .class_name = text,
          .timestamp = "2026-11-21T12:00:00",
          .duration = 61'234'000'000,
          .properties = {{text, text}, {"", ""}},
          .cases = {{text, JunitCase::Outcome::passed, text, text},
                    {text, JunitCase::Outcome::failed, text, text},
                    {text, JunitCase::Outcome::skipped, text, text}}};
}

TEST(Junit, IsValidForTheSchema) {
  const std::string xml = cli::junit_xml(suite_of("a & b < c > \"d\" 'e'\nnext\tline"));
  const Outcome outcome = lint(xml);
  EXPECT_EQ(outcome.code, 0) << outcome.err << "(apt install libxml2-utils)\n" << xml;
  EXPECT_THAT(xml, HasSubstr("tests=\"3\" failures=\"1\" errors=\"0\" skipped=\"1\""));
  EXPECT_THAT(xml, HasSubstr("time=\"61.234\""));
  EXPECT_EQ(lint(cli::junit_xml({})).code, 0);
}

// The validation itself can fail.
TEST(Junit, TheSchemaRefusesSomethingElse) {
  EXPECT_NE(lint("<testsuites><testsuite/></testsuites>").code, 0);
  EXPECT_NE(lint("<testsuites>").code, 0);
}

TEST(Junit, WhatXmlDoesNotHaveIsReplaced) {
  EXPECT_EQ(cli::xml_escaped("a\x01z"), "a\xEF\xBF\xBDz");
  EXPECT_EQ(cli::xml_escaped("\xFF"), "\xEF\xBF\xBD");
  EXPECT_EQ(cli::xml_escaped("\xC3\xA9"), "\xC3\xA9");
  EXPECT_EQ(cli::xml_escaped("\xC3"), "\xEF\xBF\xBD");                    // cut
  EXPECT_EQ(cli::xml_escaped("\xC0\xAF"), "\xEF\xBF\xBD\xEF\xBF\xBD");    // longer than needed
  EXPECT_EQ(cli::xml_escaped("\xEF\xBF\xBF"), "\xEF\xBF\xBD");            // U+FFFF
  EXPECT_THAT(cli::xml_escaped("\xED\xA0\x80"), Not(HasSubstr("\xED")));  // a surrogate
  EXPECT_EQ(cli::xml_escaped("\xF0\x9F\x98\x80"), "\xF0\x9F\x98\x80");
  EXPECT_EQ(cli::xml_escaped("]]><&\""), "]]&gt;&lt;&amp;&quot;");
  EXPECT_EQ(cli::xml_escaped(std::string("a\0b", 3)),
            "a\xEF\xBF\xBD"
            "b");
}

TEST(Junit, AnyBytesGiveAWellFormedFile) {
  std::mt19937_64 random(7);
  for (int round = 0; round < 20; ++round) {
    std::string text;
    for (int i = 0; i < 200; ++i) text += static_cast<char>(random() % 256);
    const Outcome outcome = lint(cli::junit_xml(suite_of(text)));
    ASSERT_EQ(outcome.code, 0) << round << outcome.err;
  }
}

}  // namespace
}  // namespace stowage::cli_tests
