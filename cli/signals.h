// Ctrl-C and its kin. Files are written beside and renamed, so all there is to do is to remove
// what is unfinished and leave.
#pragma once

namespace stowage::cli {

// From here on SIGINT removes unfinished files and ends the process with 130; SIGTERM and SIGHUP do
// the same and then die of the signal; an abort (a failed assertion) ends with 70. SIGPIPE is
// ignored: a closed stdout is an error of write().
void install_signal_handlers();

// With `json` an interrupted run, and one that ends with a failed assertion, prints its error as
// JSON, too (docs/cli.md), unless something is on stdout already.
void set_last_words(bool json);

// SIGPIPE back to its default for a program that is about to be started by exec; handlers are reset
// by exec itself.
void restore_pipe_signal();

}  // namespace stowage::cli
