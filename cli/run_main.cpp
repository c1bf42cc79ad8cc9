#include "cli/run_main.h"

#include <cerrno>
#include <cstring>

#include "cli/fd_stream.h"
#include "cli/signals.h"
#include "cli/terminal.h"
#include "traces/result.h"

namespace stowage::cli {

int run_main(int argc, char** argv, Program program) {
  keep_standard_streams();
  install_signal_handlers();
  set_terminal(detect_terminal());
  FdBuffer out_buffer(1);
  FdBuffer err_buffer(2);
  std::ostream out(&out_buffer);
  std::ostream err(&err_buffer);
  err.setf(std::ios::unitbuf);

  int code = program(Args(argv + (argc > 0 ? 1 : 0), argv + argc), out, err);
  out.flush();
  if (out_buffer.error() != 0) {
    const char* reason = out_buffer.error() == EPIPE ? "it was closed before everything was written"
                         : out_buffer.error() == EBADF ? "it is closed"
                                                       : std::strerror(out_buffer.error());
    err << "stowage: error: stdout: " << reason << '\n';
    if (code == 0) code = static_cast<int>(ErrorCode::environment);
  }
  return code;
}

}  // namespace stowage::cli
