#include "traces/json_bounds.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <iterator>
#include <nlohmann/json.hpp>
#include <random>
#include <string>

namespace stowage {
namespace {

constexpr JsonBounds kSmall{100, 6, 2, 3, "a hint"};

std::string refused(const std::string& text) {
  const Status within = check_json_bounds(text, "f.json", kSmall);
  if (within) return {};
  EXPECT_EQ(within.error().code, ErrorCode::bad_input);
  EXPECT_EQ(within.error().file, "f.json");
  EXPECT_EQ(within.error().hint, "a hint");
  return within.error().message;
}

TEST(JsonBounds, EachAtItsLimitAndBeyond) {
  EXPECT_EQ(refused(std::string(100, ' ')), "");
  EXPECT_EQ(refused(std::string(101, ' ')), "has more than 100 B");
  EXPECT_EQ(refused("[[[]]]"), "");
  EXPECT_EQ(refused("[[[[]]]]"), "is nested more than 3 levels deep, at byte 3");
  EXPECT_EQ(refused("[0,0,0,0,0,0]"), "");
  EXPECT_EQ(refused("[0,0,0,0,0,0,0]"), "has more than 6 values, at byte 12");
  EXPECT_EQ(refused("{\"a\":0,\"b\":0}"), "");
  EXPECT_EQ(refused("{\"a\":0,\"b\":0,\"c\":0}"),
            "has an object with more than 2 keys, at byte 16");
  EXPECT_EQ(refused("[{\"a\":0},{\"b\":0}]"), "");
}

TEST(JsonBounds, WhatStandsInStringsDoesNotCount) {
  EXPECT_EQ(refused(R"(["[[[[,,,,,,,,\"{{{{::::", "\\", 0])"), "");
  EXPECT_EQ(refused(R"(["\\",[[[[]]]]])"), "is nested more than 3 levels deep, at byte 8");
}

TEST(JsonBounds, AnyBytes) {
  EXPECT_EQ(refused("]]]}}}]]]"), "");
  EXPECT_EQ(refused("\"never ends [[[["), "");
  EXPECT_EQ(refused("\"\\"), "");
  EXPECT_EQ(refused(""), "");
}

// The depth that the library reports is the depth that is counted, on any JSON at all.
TEST(JsonBounds, AgreesWithTheLibraryOnDepth) {
  std::mt19937 random(7);
  int accepted = 0;
  for (int i = 0; i < 20'000; ++i) {
    std::string text;
    for (std::size_t pieces = 1 + random() % 12; pieces > 0; --pieces) {
      const char* const kPieces[] = {"[", "]", "{\"a\":", "}", "0", ",", "\"[\\\"{\"", "[[", "]]"};
      text += kPieces[random() % std::size(kPieces)];
    }
    int deepest = 0;
    const auto seen = nlohmann::json::parse(
        text,
        [&](int depth, nlohmann::json::parse_event_t event, nlohmann::json&) {
          const bool opens = event == nlohmann::json::parse_event_t::array_start ||
                             event == nlohmann::json::parse_event_t::object_start;
          if (opens) deepest = std::max(deepest, depth + 1);
          return true;
        },
        false);
    const JsonBounds bounds{1000, 1000, 1000, 3, ""};
    const bool within = check_json_bounds(text, "f.json", bounds).ok();
    if (seen.is_discarded()) continue;
    ++accepted;
    ASSERT_EQ(within, deepest <= 3) << text;
  }
  EXPECT_GT(accepted, 100);
}

}  // namespace
}  // namespace stowage
