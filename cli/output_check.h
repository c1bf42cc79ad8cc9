// What is wrong with an output file, before any work is done for it.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "traces/result.h"

namespace stowage::cli {

// Errors: usage when `path` is one of the files that are read, by whatever name; environment when
// write_file would refuse it (traces/file_io.h). `option` is how the output was asked for.
[[nodiscard]] Status check_output(const std::string& option, const std::optional<std::string>& path,
                                  const std::vector<std::optional<std::string>>& inputs);

// The outermost folder above `path` that is not there, or empty when they all are.
[[nodiscard]] std::string missing_folder(const std::string& path);

// Makes the folders above `path` that are not there. Errors (environment): they cannot be made.
[[nodiscard]] Status make_folders(const std::string& path);

}  // namespace stowage::cli
