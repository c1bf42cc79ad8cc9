#include "executor/models/token_batch.h"

#include <ATen/ops/empty.h>
#include <ATen/ops/from_blob.h>

#include <cstddef>
#include <random>
#include <string_view>

#include "executor/models/fixed_text.h"
#include "executor/models/parameter_set.h"

namespace stowage::executor {

TokenBatch::TokenBatch(const TokenTask& task, const at::TensorOptions& integers)
    : task_(task), tokens_(at::empty({task.batch, task.seq}, integers)) {
  if (task.has_targets) targets_ = at::empty({task.batch, task.seq}, integers);
}

std::vector<NamedTensor> TokenBatch::inputs() const {
  if (!targets_.defined()) return {{"tokens", tokens_}};
  return {{"tokens", tokens_}, {"targets", targets_}};
}

void TokenBatch::load(std::int64_t seed) {
  if (task_.is_text) return load_text(seed);
  const at::Generator generator = make_generator(tokens_.device(), seed);
  tokens_.random_(0, task_.vocab, generator);
  if (targets_.defined()) targets_.random_(0, task_.vocab, generator);
}

// Put together in memory that is no tensor's: on the CPU device that would be the step's.
void TokenBatch::load_text(std::int64_t seed) {
  const std::string_view text = fixed_text();
  std::mt19937_64 draw(static_cast<std::uint64_t>(seed));  // the standard says its numbers
  std::vector<std::size_t> begins;
  for (std::int64_t i = 0; i < task_.batch; ++i) begins.push_back(draw() % text.size());
  const auto write = [&](const at::Tensor& to, std::size_t ahead) {
    std::vector<std::int64_t> bytes;
    bytes.reserve(static_cast<std::size_t>(task_.batch * task_.seq));
    for (const std::size_t begin : begins) {
      for (std::size_t i = 0; i < static_cast<std::size_t>(task_.seq); ++i) {
        bytes.push_back(text[(begin + ahead + i) % text.size()]);
      }
    }
    to.copy_(at::from_blob(bytes.data(), to.sizes(), at::TensorOptions(at::kLong)));
  };
  write(tokens_, 0);
  if (targets_.defined()) write(targets_, 1);
}

}  // namespace stowage::executor
