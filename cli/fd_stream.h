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

}  // namespace stowage::cli
