#include "cli/output_check.h"

#include <filesystem>

#include "cli/console.h"
#include "traces/file_io.h"

namespace stowage::cli {

Status check_output(const std::string& option, const std::optional<std::string>& path,
                    const std::vector<std::optional<std::string>>& inputs) {
  namespace fs = std::filesystem;
  if (!path || *path == "-") return Unit{};
  for (const auto& input : inputs) {
    if (!input || *input == "-") continue;
    std::error_code ignored;
    if (fs::is_regular_file(*path, ignored) && fs::equivalent(*path, *input, ignored)) {
      return usage_error(option + " " + *path + " is also an input and would be overwritten",
                         "choose another file");
    }
  }
  return check_writable(*path);
}

}  // namespace stowage::cli
