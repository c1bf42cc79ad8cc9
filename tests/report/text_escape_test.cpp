#include "report/text_escape.h"

#include <gtest/gtest.h>

namespace stowage::report {
namespace {

const std::string kBad = "\xEF\xBF\xBD";

TEST(TextEscape, BytesThatAreNoUtf8AreReplaced) {
  EXPECT_EQ(valid_utf8("grün €"), "grün €");
  EXPECT_EQ(valid_utf8("a\xFFz"), "a" + kBad + "z");
  EXPECT_EQ(valid_utf8("\xC0\xAF"), kBad + kBad);             // overlong
  EXPECT_EQ(valid_utf8("\xED\xA0\x80"), kBad + kBad + kBad);  // a surrogate
  EXPECT_EQ(valid_utf8("\xE2\x82"), kBad + kBad);             // cut off
  EXPECT_EQ(valid_utf8("\xF0\x9F\x9A\xA2"), "\xF0\x9F\x9A\xA2");
  EXPECT_EQ(valid_utf8("\xF4\x90\x80\x80"), kBad + kBad + kBad + kBad);  // above U+10FFFF
}

TEST(TextEscape, XmlHoldsNoMarkupAndNoControlCharacters) {
  EXPECT_EQ(xml_escaped("a<b> & \"c\" 'd'"), "a&lt;b&gt; &amp; &quot;c&quot; &#39;d&#39;");
  EXPECT_EQ(xml_escaped(std::string("\x01\t\n\0", 4)), kBad + "\t\n" + kBad);
  EXPECT_EQ(xml_escaped("\xEF\xBF\xBF"), kBad);
}

TEST(TextEscape, CsvFieldsAreQuotedWhereNeeded) {
  EXPECT_EQ(csv_field("aten::mm"), "aten::mm");
  EXPECT_EQ(csv_field(""), "");
  EXPECT_EQ(csv_field("a,b"), "\"a,b\"");
  EXPECT_EQ(csv_field("say \"x\""), "\"say \"\"x\"\"\"");
  EXPECT_EQ(csv_field("two\nlines"), "\"two\nlines\"");
}

TEST(TextEscape, ShortensByCharactersNotBytes) {
  EXPECT_EQ(shortened("abc", 3), "abc");
  EXPECT_EQ(shortened("abcd", 3), "ab…");
  EXPECT_EQ(shortened("äöüß", 3), "äö…");
  EXPECT_EQ(shortened("abcd", 1), "…");
}

}  // namespace
}  // namespace stowage::report
