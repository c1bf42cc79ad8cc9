// The files that one run of a verb reads and writes, and that no output is one of the others. A
// verb says of each option what its file is for when it declares it (CommandLine::input, ::output,
// ::kept); who finds a further file through one of them (a plan's trace, a model's script) says so
// with reads() before anything is written; write_output() asks once more.
#pragma once

#include <string>
#include <vector>

#include "traces/result.h"

namespace stowage::cli {

struct CommandFile {
  std::string name;       // "--junit", "the plan's trace"
  std::string path = {};  // "-" is stdin or stdout
  bool read = false;
  bool written = false;
  bool kept = false;           // read, and written at other times
  bool makes_folders = false;  // those above it
};

// Two names are one file when they lead to one file on the disk, through links of either kind; of
// files that are not there yet, when they would. Devices and pipes are never one file.
class CommandFiles {
 public:
  void add(CommandFile file) { files_.push_back(std::move(file)); }

  // Errors: usage when an output is also read or is another output; environment when it cannot be
  // written (traces/file_io.h).
  [[nodiscard]] Status check();

  // After check(): the outputs that were files then and are still the same ones; none that are
  // kept.
  [[nodiscard]] std::vector<std::string> not_written() const;

  // A file that was found through another one will be read. Errors: usage, it is an output.
  [[nodiscard]] Status reads(const std::string& path, const std::string& name);

  // Before `path` is written. Errors: usage, it was read, and is not one that is kept.
  [[nodiscard]] Status may_write(const std::string& path) const;

 private:
  struct Older {
    std::string path;
    std::string version;  // of the file: which one, and when it was written
  };

  std::vector<CommandFile> files_;
  std::vector<Older> older_;  // outputs, as check() found them
};

// Makes the folders above `path` that are not there. Errors (environment): they cannot be made.
[[nodiscard]] Status make_folders(const std::string& path);

}  // namespace stowage::cli
