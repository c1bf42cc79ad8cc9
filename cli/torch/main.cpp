// The `stowage-torch` command.
#include <unistd.h>

#include <cstdio>

#include "cli/run_main.h"
#include "cli/torch/torch_verbs.h"
#include "executor/plugin_library.h"

namespace {

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
constexpr bool kIsWatched = true;  // what leaks is found when the process ends
#else
constexpr bool kIsWatched = false;
#endif

}  // namespace

int main(int argc, char** argv) {
  const int code = stowage::cli::run_main(argc, argv, stowage::cli::run_stowage_torch);
  // LibTorch takes 0.3 s to take itself apart, in each of the processes that an answer is of.
  // Nobody waits for that, unless a plugin has something to do at its end.
  if (!kIsWatched && !stowage::executor::is_plugin_loaded()) {
    std::fflush(nullptr);
    ::_exit(code);
  }
  return code;
}
