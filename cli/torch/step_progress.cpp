#include "cli/torch/step_progress.h"

#include <unistd.h>

#include <algorithm>

#include "cli/terminal.h"

namespace stowage::cli {

std::vector<std::string> progress_arguments(const Console& console) {
  if (!console.progress()) return {};
  // Of all children: each takes stderr's number for what it prints itself.
  static const int descriptor = ::dup(STDERR_FILENO);
  if (descriptor < 0) return {};
  return {"--progress-fd", std::to_string(descriptor)};
}

StepProgress::StepProgress(std::optional<std::int64_t> descriptor, const std::string& what)
    : buffer_(static_cast<int>(descriptor.value_or(-1))),
      out_(&buffer_),
      bar_(out_, descriptor.has_value(), what, "steps",
           descriptor ? width_of_terminal(static_cast<int>(*descriptor)) : 0) {
  if (descriptor) out_ << "stowage: " << what << " ..\n" << std::flush;
}

void StepProgress::update(std::int64_t done, std::int64_t steps) {
  // More steps than asked for are run until the host is quiet.
  bar_.update(done, std::max(done, steps), done > steps ? "until the host is quiet" : "");
}

std::function<void(std::int64_t, std::int64_t)> StepProgress::callback() {
  return [this](std::int64_t done, std::int64_t steps) { update(done, steps); };
}

}  // namespace stowage::cli
