// The frame of both programs' main(): streams, signals, and the exit code when stdout cannot be
// written.
#pragma once

#include <ostream>

#include "cli/command_line.h"

namespace stowage::cli {

using Program = int (*)(const Args& args, std::ostream& out, std::ostream& err);

// Installs the signal handlers, runs `program` on the arguments behind the program's name, flushes.
// A stdout that could not be written is one line on stderr and "environment".
[[nodiscard]] int run_main(int argc, char** argv, Program program);

}  // namespace stowage::cli
