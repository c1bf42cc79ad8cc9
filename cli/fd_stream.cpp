#include "cli/fd_stream.h"

#include <unistd.h>

#include <cerrno>

namespace stowage::cli {

FdBuffer::FdBuffer(int fd) : fd_(fd) {
  setp(data_.data(), data_.data() + data_.size());
}

FdBuffer::~FdBuffer() {
  flush_buffer();
}

bool FdBuffer::flush_buffer() {
  const char* from = pbase();
  while (error_ == 0 && from < pptr()) {
    const ssize_t written = ::write(fd_, from, static_cast<std::size_t>(pptr() - from));
    if (written >= 0) {
      from += written;
    } else if (errno != EINTR) {
      error_ = errno;
    }
  }
  setp(data_.data(), data_.data() + data_.size());
  return error_ == 0;
}

FdBuffer::int_type FdBuffer::overflow(int_type c) {
  if (!flush_buffer()) return traits_type::eof();
  if (!traits_type::eq_int_type(c, traits_type::eof())) {
    *pptr() = traits_type::to_char_type(c);
    pbump(1);
  }
  return traits_type::not_eof(c);
}

int FdBuffer::sync() {
  return flush_buffer() ? 0 : -1;
}

}  // namespace stowage::cli
