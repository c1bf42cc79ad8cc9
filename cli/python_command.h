// `stowage profile python:FILE.py:function`: a step of a user's own Python code is recorded by the
// Python package (python/src/stowage/_profile_command.py), whose options, output and exit codes are
// those of the verb.
#pragma once

#include <ostream>
#include <string_view>

#include "cli/verbs.h"
#include "traces/result.h"

namespace stowage::cli {

inline constexpr std::string_view kPythonModel = "python:";

// Whether these are the words of such a recording: the verb, and a word that begins so.
[[nodiscard]] bool is_python_profile(const Args& args);

// Replaces this process by `python3 -m stowage profile FILE.py:function ARGS..`, with the python3
// of PATH; both streams are flushed first. Returns only when that is not possible: environment,
// where there is no python3 or it has no package stowage. Cost: a start of Python, to ask.
[[nodiscard]] Error exec_python_profile(const Args& args, std::ostream& out, std::ostream& err);

}  // namespace stowage::cli
