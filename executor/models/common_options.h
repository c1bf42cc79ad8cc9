// Options that several built-in models have and read alike: the same limits, the same words, the
// same errors.
#pragma once

#include <cstdint>
#include <string>

#include "executor/models/option_reader.h"

namespace stowage::executor {

// Far above what any machine holds: they keep products of options within 64 bits.
inline constexpr std::int64_t kMostLayers = 10'000;
inline constexpr std::int64_t kMostWidth = 1 << 20;
inline constexpr std::int64_t kMostSeq = 1 << 24;
inline constexpr std::int64_t kMostVocab = 1 << 28;
inline constexpr std::int64_t kMostImage = 1 << 14;

// Of normally distributed weights.
inline constexpr double kDeviation = 0.02;

// `heads`, by default one for each 64 features of `width`. They must divide it.
[[nodiscard]] std::int64_t read_heads(OptionReader& reader, std::int64_t width);

// `attention`: whether it is efficient (a fused kernel) rather than math.
[[nodiscard]] bool read_efficient_attention(OptionReader& reader);
[[nodiscard]] std::string attention_text(bool efficient);

// `loss` of a model that is trained on classes: whether it is cross-entropy rather than `other`.
[[nodiscard]] bool read_cross_entropy(OptionReader& reader, const std::string& other);

// `data` of a model whose tokens are below `vocab`: whether it is text (fixed_text.h) rather than
// random.
[[nodiscard]] bool read_text_data(OptionReader& reader, std::int64_t vocab);
[[nodiscard]] std::string data_text(bool is_text);
inline constexpr const char* kDataHelp =
    "random (tokens are drawn) or text (bytes of a built-in text, which can be learnt)";

[[nodiscard]] std::string boolean_text(bool value);

}  // namespace stowage::executor
