// The `stowage-torch` command: streams, signals, and the exit code when stdout cannot be written.
#include <cerrno>
#include <cstring>
#include <ostream>

#include "cli/console.h"
#include "cli/fd_stream.h"
#include "cli/signals.h"
#include "cli/terminal.h"
#include "cli/torch/torch_verbs.h"

int main(int argc, char** argv) {
  using namespace stowage;
  cli::install_signal_handlers();
  cli::set_terminal(cli::detect_terminal());
  cli::FdBuffer out_buffer(1);
  cli::FdBuffer err_buffer(2);
  std::ostream out(&out_buffer);
  std::ostream err(&err_buffer);
  err.setf(std::ios::unitbuf);

  int code = cli::run_stowage_torch(cli::Args(argv + (argc > 0 ? 1 : 0), argv + argc), out, err);
  out.flush();
  if (out_buffer.error() != 0) {
    const char* reason = out_buffer.error() == EPIPE ? "it was closed before everything was written"
                                                     : std::strerror(out_buffer.error());
    err << "stowage: error: stdout: " << reason << '\n';
    if (code == 0) code = static_cast<int>(ErrorCode::environment);
  }
  return code;
}
