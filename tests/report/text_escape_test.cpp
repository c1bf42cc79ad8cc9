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

TEST(TextEscape, WhatMovesACursorIsAQuestionMarkForEachByte) {
  EXPECT_EQ(printable("grün €\x7F"), "grün €?");
  EXPECT_EQ(printable("a\x1b[2Jb\x07\n"), "a?[2Jb??");
  EXPECT_EQ(printable("\xC2\x9B"
                      "2J"),
            "??2J");
  EXPECT_EQ(printable("\xFF\xFE.json"), "??.json");
  EXPECT_EQ(printable("\xE2\x82"), "??");  // cut off
  EXPECT_EQ(printable("a\xE2\x80\xAE!"),
            std::string(1, 'a') + "???" + "!");          // right to left from here on
  EXPECT_EQ(printable("a\xE2\x80\xA8z"), "a???z");       // a separator of lines
  EXPECT_EQ(printable("\xE2\x80\xA6"), "\xE2\x80\xA6");  // an ellipsis
}

TEST(TextEscape, LinesKeepTheirBreaksAndTheColoursOfTheirPaintAlone) {
  const Paint paint(true);
  const std::string red = paint.red("FAILED") + "\n";
  EXPECT_EQ(printable_lines(red + "x\ty\r\n", paint), red + "x?y?\n");
  EXPECT_EQ(printable_lines("\x1b[8mhidden", paint), "?[8mhidden");
  EXPECT_EQ(printable_lines(red, Paint(false)), "?[1;31mFAILED?[0m\n");
  for (const std::string& each : {paint.bold("a"), paint.green("b"), paint.yellow("c")}) {
    EXPECT_EQ(printable_lines(each, paint), each);
  }
}

TEST(TextEscape, AbridgedTextKeepsBothEnds) {
  EXPECT_EQ(abridged("short", 5), "short");
  EXPECT_EQ(abridged("0123456789", 9), "012345 .. 789");
  EXPECT_EQ(abridged("ääääää", 6), "ää .. ä");
  const std::string megabyte(1 << 20, 'x');
  EXPECT_EQ(abridged(megabyte, 600).size(), 604U);
}

}  // namespace
}  // namespace stowage::report
