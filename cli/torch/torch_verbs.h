// The verbs of `stowage-torch`: one function each, (args after the verb, stdout, stderr) -> exit
// code, like those of `stowage` (cli/verbs.h).
#pragma once

#include <ostream>

#include "cli/command_line.h"

namespace stowage::cli {

[[nodiscard]] int verb_profile(const Args& args, std::ostream& out, std::ostream& err);
[[nodiscard]] int verb_execute(const Args& args, std::ostream& out, std::ostream& err);
[[nodiscard]] int verb_verify(const Args& args, std::ostream& out, std::ostream& err);
[[nodiscard]] int verb_check(const Args& args, std::ostream& out, std::ostream& err);
[[nodiscard]] int verb_attribute(const Args& args, std::ostream& out, std::ostream& err);
[[nodiscard]] int verb_models(const Args& args, std::ostream& out, std::ostream& err);
[[nodiscard]] int verb_torch_doctor(const Args& args, std::ostream& out, std::ostream& err);
// Not listed; runs of a step in a process of their own, started by the verbs above.
[[nodiscard]] int verb_clean_pass(const Args& args, std::ostream& out, std::ostream& err);
[[nodiscard]] int verb_timing_pass(const Args& args, std::ostream& out, std::ostream& err);
[[nodiscard]] int verb_divided_step(const Args& args, std::ostream& out, std::ostream& err);
[[nodiscard]] int verb_run_steps(const Args& args, std::ostream& out, std::ostream& err);
[[nodiscard]] int verb_attribute_part(const Args& args, std::ostream& out, std::ostream& err);
[[nodiscard]] int verb_check_steps(const Args& args, std::ostream& out, std::ostream& err);

// The whole command: `stowage-torch VERB ARGS`.
[[nodiscard]] int run_stowage_torch(const Args& args, std::ostream& out, std::ostream& err);

}  // namespace stowage::cli
