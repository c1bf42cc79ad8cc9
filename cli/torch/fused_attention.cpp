#include "cli/torch/fused_attention.h"

#include <ATen/Parallel.h>

#include <cstdlib>

namespace stowage::cli {

Status check_fused_attention(const RunRequest& run) {
  const auto option = [&run](const char* name) {
    const auto found = run.spec.options.find(name);
    return found == run.spec.options.end() ? std::string() : found->second;
  };
  if (run.device != "cpu" || option("attention") != "efficient") return Unit{};
  if (!run.spec.file().empty()) return Unit{};
  // With dropout PyTorch takes the unfused one; heads of samples are what threads share out.
  if (std::strtod(option("dropout").c_str(), nullptr) > 0) return Unit{};
  if (run.spec.batch * std::strtoll(option("heads").c_str(), nullptr, 10) < 2) return Unit{};
  const std::int64_t threads = run.threads > 0 ? run.threads : at::get_num_threads();
  if (threads < 2) return Unit{};
  return Error{ErrorCode::bad_input,
               "fused attention's backward allocates on " + std::to_string(threads) +
                   " CPU threads at once, in no order that could be recorded",
               "", "", "run with --threads 1, or with attention=math"};
}

}  // namespace stowage::cli
