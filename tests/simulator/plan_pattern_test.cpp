// simulator/pattern and simulator/program_point: what matches, what parses, what is refused.
#include <gtest/gtest.h>

#include <random>
#include <string>
#include <vector>

#include "simulator/plan/pattern.h"
#include "simulator/plan/pattern_text.h"
#include "simulator/plan/program_point.h"
#include "tests/support/micro_trace.h"

namespace stowage::simulator {
namespace {

bool matches(const std::string& pattern, const std::string& text) {
  const auto parsed = Pattern::parse(pattern);
  EXPECT_TRUE(parsed.ok()) << pattern;
  return parsed.ok() && parsed->matches(text);
}

TEST(Pattern, Wildcards) {
  EXPECT_TRUE(matches("*", ""));
  EXPECT_TRUE(matches("*", "layers.3.mlp#2"));
  EXPECT_TRUE(matches("layers.*.mlp#2", "layers.3.mlp#2"));
  EXPECT_TRUE(matches("layers.?.mlp#?", "layers.3.mlp#2"));
  EXPECT_FALSE(matches("layers.?.mlp#?", "layers.13.mlp#2"));
  EXPECT_FALSE(matches("layers", "layers.3"));
  EXPECT_FALSE(matches("?", ""));
  EXPECT_TRUE(matches("**a**", "bab"));
  EXPECT_TRUE(matches("a*b*c", "aXbYbZc"));
  EXPECT_FALSE(matches("a*b*c", "aXcYb"));
}

TEST(Pattern, NumbersAreWhole) {
  EXPECT_TRUE(matches("layers.[0-6].x", "layers.6.x"));
  EXPECT_FALSE(matches("layers.[0-6].x", "layers.7.x"));
  EXPECT_FALSE(matches("layers.[0-6]*", "layers.12"));
  EXPECT_FALSE(matches("*[0-6]", "layers.16"));
  EXPECT_TRUE(matches("*[16]", "layers.16"));
  EXPECT_TRUE(matches("#[0,2-4,9]", "#3"));
  EXPECT_FALSE(matches("#[0,2-4,9]", "#5"));
  EXPECT_TRUE(matches("[7]", "007"));
  EXPECT_FALSE(matches("[0-9]", "99999999999999999999"));
}

TEST(Pattern, Escapes) {
  EXPECT_TRUE(matches("a[*]b", "a*b"));
  EXPECT_FALSE(matches("a[*]b", "axb"));
  EXPECT_TRUE(matches("[?][[]3]", "?[3]"));
  EXPECT_FALSE(matches("[?]", "a"));
  EXPECT_TRUE(matches("[[][0-9]]", "[7]"));
}

// Any text is a pattern or an error; a name spelt exactly matches itself and nothing else, spelt
// loosely itself at least.
TEST(Pattern, RandomNamesAndTexts) {
  std::mt19937 random(20261122);
  const auto text = [&] {
    const std::string characters = "[]*?-,0123a";
    std::string out;
    for (std::size_t length = 1 + random() % 6; length > 0; --length) {
      out += characters[random() % characters.size()];
    }
    return out;
  };
  for (int i = 0; i < 20'000; ++i) {
    const std::string name = text();
    const std::string other = text();
    const std::string exact = as_pattern(name, Spelling::exact);
    ASSERT_TRUE(matches(exact, name)) << exact;
    ASSERT_EQ(matches(exact, other), name == other) << exact << " " << other;
    ASSERT_TRUE(matches(as_pattern(name, Spelling::loose), name)) << name;
    const auto any = Pattern::parse(other);
    if (any.ok()) {
      static_cast<void>(any->matches(name));
    } else {
      ASSERT_EQ(any.error().code, ErrorCode::bad_input);
    }
  }
}

TEST(Pattern, RefusesMalformedOnes) {
  for (const char* bad : {"", "a[", "a[1", "[]", "[a]", "[1-]", "[-1]", "[3-1]", "[1,]", "[1--2]",
                          "[9999999999999999999]"}) {
    const auto parsed = Pattern::parse(bad);
    ASSERT_FALSE(parsed.ok()) << bad;
    EXPECT_EQ(parsed.error().code, ErrorCode::bad_input);
    EXPECT_FALSE(parsed.error().hint.empty());
  }
}

// Quadratic at worst: no blow-up with many stars.
TEST(Pattern, ManyStarsEndSoon) {
  std::string pattern;
  for (int i = 0; i < 200; ++i) pattern += "*a";
  EXPECT_FALSE(matches(pattern + "b", std::string(2000, 'a')));
}

TEST(ProgramPoint, GoesThereAndBack) {
  for (const char* text : {"fwd:layers.3.mlp:4", "bwd:layers.+2:begin", "fwd:layers.-1:end",
                           "opt:step:end", "fwd:+1:end", "bwd:a:b:0"}) {
    const auto point = parse_program_point(text);
    ASSERT_TRUE(point.ok()) << text;
    EXPECT_EQ(format_program_point(point.value()), text);
  }
  for (const char* text : {"auto", "pack", "pack+5", "fwd:layers.+1:end"}) {
    const auto point = parse_release_point(text);
    ASSERT_TRUE(point.ok()) << text;
    EXPECT_EQ(format_release_point(point.value()), text);
  }
  for (const char* text : {"auto", "unpack", "bwd:layers.+2:begin"}) {
    const auto point = parse_reload_point(text);
    ASSERT_TRUE(point.ok()) << text;
    EXPECT_EQ(format_reload_point(point.value()), text);
  }
}

TEST(ProgramPoint, RefusesTheRest) {
  for (const char* bad :
       {"", ":", "::", "fwd::begin", "fwd:a", "fwd:a:", "fwd:a:-1", "fwd:a:x", "forward:a:begin",
        "fwd:layers.+:end", "fwd:layers.+x:end", "fwd:a:99999999999", "fwd:layers.3:end@mb=1"}) {
    const auto point = parse_program_point(bad);
    ASSERT_FALSE(point.ok()) << bad;
    EXPECT_FALSE(point.error().hint.empty()) << bad;
  }
  EXPECT_FALSE(parse_release_point("unpack").ok());
  EXPECT_FALSE(parse_release_point("pack+").ok());
  EXPECT_FALSE(parse_release_point("pack+-1").ok());
  EXPECT_FALSE(parse_reload_point("pack").ok());
}

Trace layered() {
  testing::MicroTrace m;
  for (const char* name : {"embed", "layers.0", "layers.1", "layers.2", "head"}) {
    m.begin_layer(name);
    if (std::string(name) == "layers.1") {
      m.begin_layer("layers.1.mlp");
      m.end_layer("layers.1.mlp");
    }
    m.end_layer(name);
  }
  m.backward();
  return m.finish();
}

LayerId layer_named(const Trace& trace, const std::string& name) {
  for (std::size_t i = 0; i < trace.layers.size(); ++i) {
    if (trace.string(trace.layers.name[i]) == name) return LayerId(i);
  }
  return {};
}

TEST(ProgramPoint, RelativeLayersCountInForwardOrderAndClamp) {
  const Trace trace = layered();
  const auto from = [&](const char* own, const char* text) {
    const auto point =
        absolute_point(trace, parse_program_point(text).value(), layer_named(trace, own));
    EXPECT_TRUE(point.ok()) << own << " " << text;
    return point.ok() ? format_program_point(point.value()) : std::string();
  };
  EXPECT_EQ(from("layers.0", "fwd:layers.+1:end"), "fwd:layers.1:end");
  EXPECT_EQ(from("layers.1.mlp", "fwd:layers.+1:3"), "fwd:layers.2:3");
  EXPECT_EQ(from("layers.1.mlp", "bwd:layers.-1:begin"), "bwd:layers.0:begin");
  EXPECT_EQ(from("layers.2", "fwd:layers.+7:end"), "fwd:layers.2:end");
  EXPECT_EQ(from("layers.0", "fwd:layers.-7:end"), "fwd:layers.0:end");
  EXPECT_EQ(from("layers.0", "fwd:head:end"), "fwd:head:end");

  const auto none = absolute_point(trace, parse_program_point("fwd:heat:end").value(), LayerId(1));
  ASSERT_FALSE(none.ok());
  EXPECT_NE(none.error().hint.find("head"), std::string::npos);
  EXPECT_FALSE(absolute_point(trace, parse_program_point("fwd:layers.+1:end").value(),
                              layer_named(trace, "embed"))
                   .ok());
}

TEST(ProgramPoint, RelativeAgain) {
  const Trace trace = layered();
  const auto back = [&](const char* own, const char* text) {
    return format_program_point(
        relative_point(trace, parse_program_point(text).value(), layer_named(trace, own)));
  };
  EXPECT_EQ(back("layers.0", "fwd:layers.1:end"), "fwd:layers.+1:end");
  EXPECT_EQ(back("layers.1.mlp", "bwd:layers.0:begin"), "bwd:layers.-1:begin");
  EXPECT_EQ(back("embed", "fwd:layers.1:end"), "fwd:layers.1:end");
  EXPECT_EQ(back("layers.0", "fwd:head:end"), "fwd:head:end");
}

}  // namespace
}  // namespace stowage::simulator
