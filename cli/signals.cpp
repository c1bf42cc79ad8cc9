#include "cli/signals.h"

#include <unistd.h>

#include <csignal>

#include "traces/file_io.h"
#include "traces/result.h"

namespace stowage::cli {
namespace {

// Only async-signal-safe calls here.
extern "C" void on_interrupt(int) {
  remove_unfinished_files();
  static constexpr char kMessage[] = "\nstowage: interrupted\n";
  [[maybe_unused]] const auto written = ::write(STDERR_FILENO, kMessage, sizeof kMessage - 1);
  ::_exit(static_cast<int>(ErrorCode::interrupted));
}

// A failed assertion or an exception that nobody caught: its message has been printed.
extern "C" void on_abort(int) {
  remove_unfinished_files();
  ::_exit(static_cast<int>(ErrorCode::internal));
}

extern "C" void on_termination(int signal) {
  remove_unfinished_files();
  ::signal(signal, SIG_DFL);
  ::raise(signal);
}

// A signal that whoever started us chose to ignore (nohup, a job in the background) stays ignored.
void handle(int signal, void (*handler)(int)) {
  struct sigaction action {};
  if (sigaction(signal, nullptr, &action) == 0 && action.sa_handler == SIG_IGN) return;
  action = {};
  action.sa_handler = handler;
  sigemptyset(&action.sa_mask);
  sigaction(signal, &action, nullptr);
}

}  // namespace

void install_signal_handlers() {
  handle(SIGINT, on_interrupt);
  handle(SIGTERM, on_termination);
  handle(SIGHUP, on_termination);
  handle(SIGABRT, on_abort);
  std::signal(SIGPIPE, SIG_IGN);
}

void restore_pipe_signal() {
  std::signal(SIGPIPE, SIG_DFL);
}

}  // namespace stowage::cli
