// What is on the screen as a command line: what one would type to get the same answer.
#pragma once

#include <string>

#include "gui/model/simulated.h"

namespace stowage::gui {

// `stowage plan T --budget 36GB` for what a search found, `stowage simulate T --plan P` for a plan
// in a file, `stowage inspect T` for a trace alone; with --set for another link than the recorded
// one. `plan_file`: where the shown plan is saved; when empty the command names a file to save it
// in. Arguments are quoted for a POSIX shell where they need it.
// `pinned`: some decisions were, so that a search alone does not give that plan.
[[nodiscard]] std::string command_text(const Simulated& simulated, const std::string& plan_file,
                                       const Calibration& recorded, bool pinned = false);

// `stowage execute --trace T --plan P`: what runs the plan in that file on this machine.
[[nodiscard]] std::string run_command_text(const Simulated& simulated,
                                           const std::string& plan_file);

// 'it''s' as one shell word; plain words stay as they are.
[[nodiscard]] std::string shell_word(const std::string& text);

}  // namespace stowage::gui
