#include "executor/run_options.h"

#include <ATen/Context.h>
#include <ATen/Parallel.h>

#include <string>

namespace stowage::executor {

namespace {
constexpr std::int64_t kMostThreads = 1024;
}  // namespace

Status apply_run_options(const RunOptions& options) {
  if (options.threads < 0 || options.threads > kMostThreads) {
    return Error{.code = ErrorCode::usage,
                 .message = "threads " + std::to_string(options.threads) + " is not allowed",
                 .file = {},
                 .pointer = {},
                 .hint = "a whole number from 1 to " + std::to_string(kMostThreads)};
  }
  at::Context& context = at::globalContext();
  context.setDeterministicAlgorithms(options.deterministic, /*warn_only=*/false);
  context.setDeterministicFillUninitializedMemory(false);
  context.setFloat32MatmulPrecision(options.tf32 ? "high" : "highest");
  context.setAllowTF32CuDNN(options.tf32);
  context.setDeterministicCuDNN(options.deterministic);
  context.setBenchmarkCuDNN(false);
  context.setSDPUseCuDNN(!options.deterministic);
  if (options.threads > 0) at::set_num_threads(static_cast<int>(options.threads));
  return Unit{};
}

RunOptions current_run_options() {
  return {.deterministic = at::globalContext().deterministicAlgorithms(),
          .tf32 = at::globalContext().float32MatmulPrecision() == at::Float32MatmulPrecision::HIGH,
          .threads = at::get_num_threads()};
}

}  // namespace stowage::executor
