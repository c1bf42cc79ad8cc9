#include "traces/size_text.h"

#include <gtest/gtest.h>

#include <limits>

namespace stowage {
namespace {

Bytes size(std::string_view text, std::optional<Bytes> base = std::nullopt) {
  const auto bytes = parse_size(text, base);
  return bytes ? *bytes : -1;
}

TEST(ParseSize, ReadsEveryUnit) {
  EXPECT_EQ(size("4096"), 4096);
  EXPECT_EQ(size("4096B"), 4096);
  EXPECT_EQ(size("1kB"), 1000);
  EXPECT_EQ(size("512MiB"), 512LL << 20);
  EXPECT_EQ(size("24GiB"), 24LL << 30);
  EXPECT_EQ(size("24GB"), 24'000'000'000);
  EXPECT_EQ(size(" 24 gib "), 24LL << 30);
  EXPECT_EQ(size("1.5KiB"), 1536);
  EXPECT_EQ(size("0.5TB"), 500'000'000'000);
  EXPECT_EQ(size("9223372036854775807"), std::numeric_limits<Bytes>::max());
}

TEST(ParseSize, TakesPercentOfTheBaseRoundedDown) {
  EXPECT_EQ(size("60%", 1001), 600);
  EXPECT_EQ(size("37.5%", 1000), 375);
  EXPECT_EQ(size("150%", 1000), 1500);
  EXPECT_EQ(size("100%", std::numeric_limits<Bytes>::max()), std::numeric_limits<Bytes>::max());
}

TEST(ParseSize, RefusesTheRestAsUsage) {
  for (const char* text : {"",
                           " ",
                           "0",
                           "0GiB",
                           "0%",
                           "-1",
                           "-1GiB",
                           "12XB",
                           "GiB",
                           ".",
                           "1..5",
                           "1e9",
                           "0.1",
                           "12 G B",
                           "9223372036854775808",
                           "99999999999TB",
                           "nan",
                           "0x10",
                           "+5",
                           "5\xff",
                           "24G"}) {
    const auto bytes = parse_size(text, 1000);
    ASSERT_FALSE(bytes) << text;
    EXPECT_EQ(bytes.error().code, ErrorCode::usage);
    EXPECT_FALSE(bytes.error().hint.empty());
  }
  EXPECT_FALSE(parse_size("60%"));
  EXPECT_FALSE(parse_size("200%", std::numeric_limits<Bytes>::max()));
  EXPECT_EQ(parse_size("12XB").error().text(),
            "'12XB' has an unknown unit 'xb' (write a size such as 24GiB, 24GB, 512MiB or 4096)");
}

TEST(ParseSize, ProposesWhatIsLikelyMeant) {
  const auto hint_of = [](const char* text, std::optional<Bytes> base = 1000) {
    const auto bytes = parse_size(text, base);
    return bytes ? "a size" : bytes.error().hint;
  };
  EXPECT_EQ(hint_of("24G"), "did you mean 24GiB, as cards are sold, or 24GB?");
  EXPECT_EQ(hint_of("1.5 t"), "did you mean 1.5TiB, as cards are sold, or 1.5TB?");
  EXPECT_EQ(hint_of("512Mi"), "did you mean 512MiB?");
  EXPECT_EQ(hint_of("0.6"), "did you mean 60%?");
  EXPECT_EQ(hint_of("0.625"), "did you mean 62.5%?");
  EXPECT_EQ(hint_of("0.6", std::nullopt), "write a size such as 24GiB, 24GB, 512MiB or 4096");
  EXPECT_EQ(hint_of("24x"), "write a size such as 24GiB, 24GB, 512MiB, 4096 or 60%");
  EXPECT_EQ(hint_of("i"), "write a size such as 24GiB, 24GB, 512MiB, 4096 or 60%");
}

TEST(ParseTime, ReadsAndRefuses) {
  EXPECT_EQ(*parse_time("1.5ms"), 1'500'000);
  EXPECT_EQ(*parse_time("20us"), 20'000);
  EXPECT_EQ(*parse_time("20 \xC2\xB5s"), 20'000);
  EXPECT_EQ(*parse_time("300ns"), 300);
  EXPECT_EQ(*parse_time("2s"), 2'000'000'000);
  EXPECT_EQ(*parse_time("0s"), 0);
  for (const char* text : {"", "5", "-1ms", "5h", "9223372037s"}) {
    EXPECT_FALSE(parse_time(text)) << text;
  }
  EXPECT_EQ(parse_time(" 10").error().hint, "did you mean 10s or 10ms?");
}

TEST(FormatBytes, InBinaryUnits) {
  EXPECT_EQ(format_bytes(24LL << 30, ByteUnits::binary), "24.0 GiB");
  EXPECT_EQ(format_bytes(999, ByteUnits::binary), "999 B");
  EXPECT_EQ(format_bytes(-(3LL << 20), ByteUnits::binary), "-3.00 MiB");
  EXPECT_EQ(format_bytes(24'000'000'000, ByteUnits::decimal), "24.0 GB");
  EXPECT_EQ(units_of("24GiB"), ByteUnits::binary);
  EXPECT_EQ(units_of("24 gib"), ByteUnits::binary);
  for (const char* text : {"24GB", "60%", "4096", ""}) {
    EXPECT_EQ(units_of(text), ByteUnits::decimal) << text;
  }
}

TEST(FormatBytes, ShowsThreeDigits) {
  EXPECT_EQ(format_bytes(0), "0 B");
  EXPECT_EQ(format_bytes(999), "999 B");
  EXPECT_EQ(format_bytes(1000), "1.00 kB");
  EXPECT_EQ(format_bytes(96'512'345), "96.5 MB");
  EXPECT_EQ(format_bytes(1'204'000'000), "1.20 GB");
  EXPECT_EQ(format_bytes(161'400'000), "161 MB");
  EXPECT_EQ(format_bytes(9'996'000), "10.0 MB");
  EXPECT_EQ(format_bytes(99'960'000), "100 MB");
  EXPECT_EQ(format_bytes(999'499'999), "999 MB");
  EXPECT_EQ(format_bytes(999'500'000), "1.00 GB");
  EXPECT_EQ(format_bytes(-3000), "-3.00 kB");
  EXPECT_EQ(format_bytes(std::numeric_limits<Bytes>::max()), "9.22 EB");
  EXPECT_EQ(format_bytes(std::numeric_limits<Bytes>::min()), "-9.22 EB");
}

TEST(FormatTime, ShowsThreeDigits) {
  EXPECT_EQ(format_time(850), "850 ns");
  EXPECT_EQ(format_time(12'340), "12.3 us");
  EXPECT_EQ(format_time(1'500'000), "1.50 ms");
  EXPECT_EQ(format_time(2'000'000'000), "2.00 s");
  EXPECT_EQ(format_time(7'200'000'000'000), "7200 s");
}

}  // namespace
}  // namespace stowage
