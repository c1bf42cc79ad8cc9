// `stowage-gui --screenshot`: the window, or one view of it, as a picture, without a display.
#pragma once

#include <QString>

#include "gui/app/options.h"
#include "traces/result.h"

namespace stowage::gui {

class MainWindow;

// Opens the files, waits until all jobs are done, paints, writes the PNG. The
// plans of memory against time are computed first, details are those of the memory peak, and what
// has nothing to be compared with is compared with the step in which nothing moves. Runs an event
// loop. Errors: those of opening (bad_input), environment (cannot be written), usage (this
// build has no such view).
[[nodiscard]] Status take_screenshot(MainWindow& window, const Options& options);

// Of a PNG that could not be written to `file`, with what to do.
[[nodiscard]] Error cannot_write_picture(const QString& file);

}  // namespace stowage::gui
