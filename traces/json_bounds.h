// What a JSON text may cost a library that makes a document of it: a value of three bytes takes
// fifty in memory. Checked ahead of the library, by every reader that uses one.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "traces/result.h"

namespace stowage {

struct JsonBounds {
  std::int64_t bytes;   // of the text
  std::int64_t values;  // in all: numbers, strings, lists, objects and keys
  std::int64_t keys;    // of one object
  int depth;            // of lists and objects
  const char* hint;     // what to do about a text beyond them, or ""
};

// A plan has 20 keys in an object and 5 values in a rule.
inline constexpr JsonBounds kPlanBounds{16 << 20, 1'000'000, 256, 32,
                                        "no plan of Stowage needs that"};
// What a verb prints with --json.
inline constexpr JsonBounds kAnswerBounds{64 << 20, 2'000'000, 4096, 32,
                                          "no verb of Stowage prints that"};

// Errors (bad_input, naming `file` and the byte): more than one of the bounds. Whether it is JSON
// at all is not asked: of a text that is none, what stands in it is counted. Cost: O(text), memory
// O(bounds.depth).
[[nodiscard]] Status check_json_bounds(std::string_view text, const std::string& file,
                                       const JsonBounds& bounds);

}  // namespace stowage
