// The verbs that need LibTorch live in an executable of their own, so that planning starts in
// milliseconds and works where there is no LibTorch.
#pragma once

#include <optional>
#include <ostream>
#include <string>
#include <vector>

#include "traces/result.h"

namespace stowage::cli {

inline constexpr const char* kTorchCommand = "stowage-torch";

// Its path: beside this executable, then in ../libexec/stowage, then on PATH.
[[nodiscard]] std::optional<std::string> find_torch_command();

// Replaces this process by `stowage-torch ARGS..`; both streams are flushed first. Returns only
// when that is not possible: environment, with how to build it.
[[nodiscard]] Error exec_torch_command(const std::vector<std::string>& args, std::ostream& out,
                                       std::ostream& err);

// Runs it as a child and returns what it printed on stdout (at most 1 MiB); its stderr is dropped.
// Empty when it is not there, cannot be started, or runs longer than `timeout_ms`.
[[nodiscard]] std::string torch_command_output(const std::vector<std::string>& args,
                                               int timeout_ms = 20000);

}  // namespace stowage::cli
