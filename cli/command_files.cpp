#include "cli/command_files.h"

#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <utility>

#include "cli/console.h"
#include "traces/file_io.h"

namespace stowage::cli {
namespace {

namespace fs = std::filesystem;

// The outermost folder above `path` that is not there, or empty when they all are.
std::string missing_folder(const std::string& path) {
  std::string missing;
  std::error_code ignored;
  for (fs::path folder = fs::path(path).parent_path();
       folder.has_relative_path() && !fs::exists(folder, ignored); folder = folder.parent_path()) {
    missing = folder.string();
  }
  return missing;
}

// Which file a name leads to; empty: none that could be overwritten.
std::string identity(const CommandFile& file) {
  struct stat info {};
  const bool standard = file.path == "-";
  if (standard && file.written) return {};
  const bool there =
      (standard ? ::fstat(STDIN_FILENO, &info) : ::stat(file.path.c_str(), &info)) == 0;
  if (there) {
    if (!S_ISREG(info.st_mode)) return {};
    return std::to_string(info.st_dev) + ":" + std::to_string(info.st_ino);
  }
  if (standard) return {};
  std::error_code failed;
  const fs::path whole = fs::weakly_canonical(fs::absolute(file.path, failed), failed);
  return failed ? std::string() : "/" + whole.string();
}

// Another one after each writing; empty: no regular file.
std::string version_of(const std::string& path) {
  struct stat info {};
  if (path == "-" || ::stat(path.c_str(), &info) != 0 || !S_ISREG(info.st_mode)) return {};
  return std::to_string(info.st_ino) + ":" + std::to_string(info.st_mtim.tv_sec) + ":" +
         std::to_string(info.st_mtim.tv_nsec);
}

Error overlap(const CommandFile& output, const CommandFile& other) {
  if (other.kept || other.written) {
    return usage_error(output.name + " and " + other.name + " name the same file, " + output.path,
                       "choose another file");
  }
  return usage_error(output.name + " " + output.path + " is also an input" +
                         (other.name.starts_with("the ") ? ", " + other.name + "," : "") +
                         " and would be overwritten",
                     "choose another file");
}

Status writable(const CommandFile& file) {
  if (file.makes_folders) {
    if (const std::string folder = missing_folder(file.path); !folder.empty()) {
      return check_writable(folder);
    }
  }
  return check_writable(file.path);
}

}  // namespace

Status CommandFiles::check() {
  std::vector<std::string> identities;
  for (const CommandFile& file : files_) identities.push_back(identity(file));
  for (std::size_t i = 0; i < files_.size(); ++i) {
    if (!files_[i].written) continue;
    for (std::size_t j = 0; j < files_.size(); ++j) {
      const bool same = i != j && !identities[i].empty() && identities[i] == identities[j];
      if (same) return overlap(files_[i], files_[j]);
    }
  }
  for (const CommandFile& file : files_) {
    if (!file.written) continue;
    if (Status status = writable(file); !status) return status;
    // One that is kept is no answer.
    if (std::string version = version_of(file.path); !version.empty() && !file.kept) {
      older_.push_back({file.path, std::move(version)});
    }
  }
  return Unit{};
}

std::vector<std::string> CommandFiles::not_written() const {
  std::vector<std::string> paths;
  for (const Older& file : older_) {
    if (version_of(file.path) == file.version) paths.push_back(file.path);
  }
  return paths;
}

Status CommandFiles::reads(const std::string& path, const std::string& name) {
  const CommandFile found{.name = name, .path = path, .read = true};
  files_.push_back(found);
  const std::string which = identity(found);
  for (const CommandFile& file : files_) {
    if (file.written && !which.empty() && identity(file) == which) return overlap(file, found);
  }
  return Unit{};
}

Status CommandFiles::may_write(const std::string& path) const {
  const CommandFile output{.name = "the output", .path = path, .written = true};
  const std::string which = identity(output);
  for (const CommandFile& file : files_) {
    if (!file.read || file.kept || which.empty() || identity(file) != which) continue;
    return overlap(output, file);
  }
  return Unit{};
}

Status make_folders(const std::string& path) {
  const fs::path folder = fs::path(path).parent_path();
  std::error_code failed;
  if (!folder.empty()) fs::create_directories(folder, failed);
  if (!failed) return Unit{};
  return Error{ErrorCode::environment, "the folder cannot be made: " + failed.message(),
               folder.string(), "", "choose another one"};
}

}  // namespace stowage::cli
