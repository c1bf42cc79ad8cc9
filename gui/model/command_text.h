// What is on the screen as a command line: what one would type to get the same answer.
#pragma once

#include <string>

#include "gui/model/simulated.h"

namespace stowage::gui {

// `stowage plan T --budget 36GB` for what a search found, `stowage simulate T --plan P` for a plan
// in a file, `stowage inspect T` for a trace alone; with --set for another link than the recorded
// one. `saved`: the plan in state->file is what is shown; else the command names a file to save it
// in. Arguments are quoted for a POSIX shell where they need it.
[[nodiscard]] std::string command_text(const Simulated& simulated, bool saved,
                                       const Calibration& recorded);

// 'it''s' as one shell word; plain words stay as they are.
[[nodiscard]] std::string shell_word(const std::string& text);

}  // namespace stowage::gui
