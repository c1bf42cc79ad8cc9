#include "cli/torch/end_process.h"

#include <unistd.h>

#include <cstdio>
#include <cstdlib>

#include "executor/plugin_library.h"

namespace stowage::cli {

void end_process(int code) {
  if (kIsSanitized || executor::is_plugin_loaded()) std::exit(code);
  std::fflush(nullptr);
  ::_exit(code);
}

}  // namespace stowage::cli
