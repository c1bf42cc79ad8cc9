// The verbs of `stowage`: one function each, (args after the verb, stdout, stderr) -> exit code.
// Each can be called from a program; they keep no state. docs/cli.md is the reference.
#pragma once

#include <ostream>
#include <string>
#include <vector>

#include "cli/command_line.h"

namespace stowage::cli {

[[nodiscard]] int verb_doctor(const Args& args, std::ostream& out, std::ostream& err);
[[nodiscard]] int verb_inspect(const Args& args, std::ostream& out, std::ostream& err);
[[nodiscard]] int verb_simulate(const Args& args, std::ostream& out, std::ostream& err);
[[nodiscard]] int verb_plan(const Args& args, std::ostream& out, std::ostream& err);
[[nodiscard]] int verb_policies(const Args& args, std::ostream& out, std::ostream& err);
[[nodiscard]] int verb_export(const Args& args, std::ostream& out, std::ostream& err);
[[nodiscard]] int verb_diff(const Args& args, std::ostream& out, std::ostream& err);
[[nodiscard]] int verb_completions(const Args& args, std::ostream& out, std::ostream& err);
[[nodiscard]] int verb_man(const Args& args, std::ostream& out, std::ostream& err);
// Not listed: the table at the end of scripts/demo.sh.
[[nodiscard]] int verb_demo_report(const Args& args, std::ostream& out, std::ostream& err);

// The whole command: `stowage VERB ARGS`, --help and --version. The verbs that need LibTorch
// replace this process by stowage-torch (cli/torch_command.h) and do not return when it was found.
[[nodiscard]] int run_stowage(const Args& args, std::ostream& out, std::ostream& err);

}  // namespace stowage::cli
