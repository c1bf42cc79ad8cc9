#include "executor/models/token_batch.h"

#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <string_view>

#include "executor/models/fixed_text.h"
#include "tests/executor/model_support.h"

namespace stowage::executor {
namespace {

std::string row(const at::Tensor& tokens, std::int64_t sample) {
  std::string text;
  for (std::int64_t i = 0; i < tokens.size(1); ++i) {
    text += static_cast<char>(tokens[sample][i].item<std::int64_t>());
  }
  return text;
}

TEST(FixedText, IsAFewKilobytesOfAscii) {
  const std::string_view text = fixed_text();
  EXPECT_GT(text.size(), 2048u);
  EXPECT_TRUE(std::all_of(text.begin(), text.end(),
                          [](char each) { return each == '\n' || (each >= ' ' && each <= '~'); }));
}

TEST(TokenBatch, OfTextAreWindowsWhoseTargetsAreTheNextByte) {
  const auto model = make_test_model("gpt2:layers=1,width=8,heads=1,seq=40,vocab=128,data=text", 7);
  model->load_batch(9);
  const at::Tensor tokens = model->inputs()[0].tensor.clone();
  const at::Tensor targets = model->inputs()[1].tensor.clone();
  ASSERT_EQ(tokens.size(0), 4);
  const std::string twice = std::string(fixed_text()) + std::string(fixed_text());
  for (std::int64_t sample = 0; sample < 4; ++sample) {
    EXPECT_NE(twice.find(row(tokens, sample)), std::string::npos) << row(tokens, sample);
    EXPECT_NE(twice.find(row(tokens, sample) + row(targets, sample).back()), std::string::npos);
    EXPECT_EQ(row(tokens, sample).substr(1) + row(targets, sample).back(), row(targets, sample));
  }
  EXPECT_NE(row(tokens, 0), row(tokens, 1));
  model->load_batch(10);
  EXPECT_FALSE(at::equal(model->inputs()[0].tensor, tokens));
  model->load_batch(9);
  EXPECT_TRUE(at::equal(model->inputs()[0].tensor, tokens));
}

// Longer than the text: it goes on with its begin.
TEST(TokenBatch, OfTextMayBeLongerThanIt) {
  static_cast<void>(test_device());  // ahead of the first tensor
  const auto size = static_cast<std::int64_t>(fixed_text().size());
  TokenBatch batch({.batch = 1, .seq = size + 3, .vocab = kTextTokens, .is_text = true},
                   at::TensorOptions(at::kLong));
  batch.load(1);
  EXPECT_TRUE(at::equal(batch.tokens()[0].slice(0, 0, 3), batch.tokens()[0].slice(0, size)));
}

}  // namespace
}  // namespace stowage::executor
