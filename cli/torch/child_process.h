// Runs of a step in a process of their own: allocator history and observers of one run must not
// touch another one.
#pragma once

#include <string>
#include <vector>

#include "traces/result.h"

namespace stowage::cli {

// A file without a name in the folder for temporary files: it is gone with the last process that
// has it open, however that process ends. Children inherit it under the same number.
class ScratchFile {
 public:
  [[nodiscard]] static Result<ScratchFile> create();
  ~ScratchFile();
  ScratchFile(ScratchFile&& other) noexcept;
  ScratchFile& operator=(ScratchFile&& other) noexcept;
  ScratchFile(const ScratchFile&) = delete;
  ScratchFile& operator=(const ScratchFile&) = delete;

  [[nodiscard]] int descriptor() const { return descriptor_; }
  // Everything that was written into it.
  [[nodiscard]] Result<std::string> content() const;

 private:
  explicit ScratchFile(int descriptor) : descriptor_(descriptor) {}
  int descriptor_ = -1;
};

// Writes `text` to an inherited descriptor.
[[nodiscard]] Status write_descriptor(int descriptor, const std::string& text);

// Runs this executable again with these arguments and waits: in a copy of this process where that
// will do, on a machine without a GPU, since LibTorch takes half a second to load. Nothing of a
// step must have run in this process. Its stdout goes to the descriptor, -1 = dropped. The child
// dies with this process. Error: the child's own (its exit code and the line that it printed), or
// why it could not be started.
[[nodiscard]] Status run_child(const std::vector<std::string>& arguments,
                               int stdout_descriptor = -1);

}  // namespace stowage::cli
