#include "executor/models/common_options.h"

#include <algorithm>

#include "executor/models/fixed_text.h"

namespace stowage::executor {

namespace {
constexpr std::int64_t kHeadWidth = 64;
}  // namespace

std::int64_t read_heads(OptionReader& reader, std::int64_t width) {
  const std::int64_t fallback = std::max<std::int64_t>(1, width / kHeadWidth);
  const std::int64_t heads = reader.integer_or("heads", fallback, 1, kMostWidth);
  if (width % heads != 0) {
    reader.fail("model '" + reader.model() + "': width=" + std::to_string(width) +
                    " is not a multiple of heads=" + std::to_string(heads),
                "set heads to a divisor of width");
  }
  return heads;
}

bool read_efficient_attention(OptionReader& reader) {
  return reader.choice("attention", {"math", "efficient"}) == "efficient";
}

std::string attention_text(bool efficient) {
  return efficient ? "efficient" : "math";
}

bool read_cross_entropy(OptionReader& reader, const std::string& other) {
  return reader.choice("loss", {"cross-entropy", other}) == "cross-entropy";
}

bool read_text_data(OptionReader& reader, std::int64_t vocab) {
  const bool is_text = reader.choice("data", {"random", "text"}) == "text";
  if (is_text && vocab < kTextTokens) {
    reader.fail("model '" + reader.model() + "': data=text has " + std::to_string(kTextTokens) +
                    " different tokens, vocab=" + std::to_string(vocab) + " are too few",
                "set vocab to " + std::to_string(kTextTokens) + " or more");
  }
  return is_text;
}

std::string data_text(bool is_text) {
  return is_text ? "text" : "random";
}

std::string boolean_text(bool value) {
  return value ? "true" : "false";
}

}  // namespace stowage::executor
