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

std::string missing_folder(const std::string& path) {
  namespace fs = std::filesystem;
  std::string missing;
  std::error_code ignored;
  for (fs::path folder = fs::path(path).parent_path();
       folder.has_relative_path() && !fs::exists(folder, ignored); folder = folder.parent_path()) {
    missing = folder.string();
  }
  return missing;
}

Status make_folders(const std::string& path) {
  const std::filesystem::path folder = std::filesystem::path(path).parent_path();
  std::error_code failed;
  if (!folder.empty()) std::filesystem::create_directories(folder, failed);
  if (!failed) return Unit{};
  return Error{ErrorCode::environment, "the folder cannot be made: " + failed.message(),
               folder.string(), "", "choose another one"};
}

}  // namespace stowage::cli
