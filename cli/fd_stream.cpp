#include "cli/fd_stream.h"

#include <fcntl.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>

namespace stowage::cli {
namespace {

std::atomic<bool> began = false;
static_assert(std::atomic<bool>::is_always_lock_free);

}  // namespace

bool stdout_began() {
  return began;
}

void keep_standard_streams() {
  for (const int fd : {STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO}) {
    if (::fcntl(fd, F_GETFD) >= 0 || errno != EBADF) continue;
    // The lowest free number is this one: those below it are there.
    [[maybe_unused]] const int placed =
        ::open("/dev/null", fd == STDIN_FILENO ? O_WRONLY : O_RDONLY);
  }
}

FdBuffer::FdBuffer(int fd) : fd_(fd) {
  setp(data_.data(), data_.data() + data_.size());
}

FdBuffer::~FdBuffer() {
  flush_buffer();
}

bool FdBuffer::flush_buffer() {
  const char* from = pbase();
  if (fd_ == STDOUT_FILENO && from < pptr()) began = true;
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
