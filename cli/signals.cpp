#include "cli/signals.h"

#include <unistd.h>

#include <atomic>
#include <csignal>
#include <string>

#include "cli/fd_stream.h"
#include "report/answers/error_json.h"

#include "traces/file_io.h"
#include "traces/result.h"

namespace stowage::cli {
namespace {

std::atomic<bool> says_json = false;

// Made ahead: a handler must not.
const std::string& words_of(ErrorCode code) {
  static const std::string interrupted =
      report::error_json(Error{ErrorCode::interrupted, "interrupted", "", "", ""});
  static const std::string internal =
      report::error_json(Error{ErrorCode::internal, "internal error: what failed is said on stderr",
                               "", "", "please report it with the command line"});
  return code == ErrorCode::interrupted ? interrupted : internal;
}

// Only async-signal-safe calls from here on.
void say_last_words(ErrorCode code) {
  if (!says_json || stdout_began()) return;
  const std::string& words = words_of(code);
  [[maybe_unused]] const auto written = ::write(STDOUT_FILENO, words.data(), words.size());
}

extern "C" void on_interrupt(int) {
  remove_unfinished_files();
  static constexpr char kMessage[] = "\nstowage: interrupted\n";
  [[maybe_unused]] const auto written = ::write(STDERR_FILENO, kMessage, sizeof kMessage - 1);
  say_last_words(ErrorCode::interrupted);
  ::_exit(static_cast<int>(ErrorCode::interrupted));
}

// A failed assertion or an exception that nobody caught: its message has been printed.
extern "C" void on_abort(int) {
  remove_unfinished_files();
  say_last_words(ErrorCode::internal);
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

void set_last_words(bool json) {
  static_cast<void>(words_of(ErrorCode::interrupted));
  says_json = json;
}

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
