// An output stream on a file descriptor that remembers why a write failed, which iostreams do not:
// "No space left on device" and a closed pipe must not end in silence.
#pragma once

#include <array>
#include <ostream>
#include <streambuf>

namespace stowage::cli {

class FdBuffer : public std::streambuf {
 public:
  // Does not own the descriptor.
  explicit FdBuffer(int fd);
  ~FdBuffer() override;
  FdBuffer(const FdBuffer&) = delete;
  FdBuffer& operator=(const FdBuffer&) = delete;

  // errno of the first write that failed, 0 = none. After one nothing more is written.
  [[nodiscard]] int error() const { return error_; }

 protected:
  int_type overflow(int_type c) override;
  int sync() override;

 private:
  bool flush_buffer();

  int fd_;
  int error_ = 0;
  std::array<char, 16384> data_;
};

// Whether an FdBuffer has written to stdout yet. May be asked in a signal handler.
[[nodiscard]] bool stdout_began();

// Where the program was started without stdin, stdout or stderr (`2>&-`), the next files and pipes
// that it opens would take their numbers, and what is meant for a stream would go there. Puts
// /dev/null in these places, opened the other way round: reading or writing fails as it does on
// what is closed (EBADF). Ahead of everything else in main().
void keep_standard_streams();

}  // namespace stowage::cli
