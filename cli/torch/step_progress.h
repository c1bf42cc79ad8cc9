// How far a run of steps is, on a terminal: which run it is, and behind the first second a bar.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <ostream>
#include <string>
#include <vector>

#include "cli/console.h"
#include "cli/fd_stream.h"
#include "cli/progress_bar.h"

namespace stowage::cli {

// The arguments by which a child that runs steps draws where this process's stderr is; none where
// that is no terminal, or with --quiet.
[[nodiscard]] std::vector<std::string> progress_arguments(const Console& console);

class StepProgress {
 public:
  // On the descriptor of progress_arguments(); nothing without one. `what` is "the planned run".
  StepProgress(std::optional<std::int64_t> descriptor, const std::string& what);

  void update(std::int64_t done, std::int64_t steps);
  [[nodiscard]] std::function<void(std::int64_t, std::int64_t)> callback();

 private:
  FdBuffer buffer_;
  std::ostream out_;
  ProgressBar bar_;
};

}  // namespace stowage::cli
