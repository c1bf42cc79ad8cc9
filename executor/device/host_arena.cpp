#include "executor/device/host_arena.h"

#include <sys/mman.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <string>
#include <utility>

#include "executor/device/host_memory.h"

namespace stowage::executor {

namespace {

std::size_t page_bytes() {
  return static_cast<std::size_t>(sysconf(_SC_PAGESIZE));
}

// Whole pages; `bytes` is at most half the address space, so this cannot overflow.
std::size_t mapped_bytes(Bytes bytes) {
  const std::size_t page = page_bytes();
  return (static_cast<std::size_t>(bytes) + page - 1) / page * page;
}

Error refused(Bytes bytes, const std::string& why) {
  return Error{.code = ErrorCode::environment,
               .message = "cannot take " + std::to_string(bytes) + " bytes of host memory: " + why,
               .file = {},
               .pointer = {},
               .hint = "plan with a --host-budget that this machine has"};
}

}  // namespace

Result<HostArena> HostArena::create(Bytes bytes) {
  if (bytes < 0) {
    return Error{.code = ErrorCode::usage,
                 .message = "a host arena of " + std::to_string(bytes) + " bytes",
                 .file = {},
                 .pointer = {},
                 .hint = "the size must not be negative"};
  }
  if (bytes == 0) return HostArena();
  const Bytes available = available_host_bytes();
  if (bytes > available) {
    return refused(bytes, std::to_string(available) + " are available");
  }
  const std::size_t mapped = mapped_bytes(bytes);
  void* const data =
      mmap(nullptr, mapped, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (data == MAP_FAILED) return refused(bytes, std::strerror(errno));
  madvise(data, mapped, MADV_HUGEPAGE);  // a hint: fewer page-table misses where it is granted
  std::memset(data, 0, mapped);
  return HostArena(static_cast<std::byte*>(data), bytes);
}

HostArena::~HostArena() {
  if (unpin_ != nullptr) unpin_(data_);
  if (data_ != nullptr) munmap(data_, mapped_bytes(bytes_));
}

HostArena::HostArena(HostArena&& other) noexcept
    : data_(std::exchange(other.data_, nullptr)),
      bytes_(std::exchange(other.bytes_, 0)),
      unpin_(std::exchange(other.unpin_, nullptr)) {}

HostArena& HostArena::operator=(HostArena&& other) noexcept {
  std::swap(data_, other.data_);
  std::swap(bytes_, other.bytes_);
  std::swap(unpin_, other.unpin_);
  return *this;
}

void HostArena::poison(std::byte value) {
  if (data_ != nullptr) {
    std::memset(data_, std::to_integer<int>(value), static_cast<std::size_t>(bytes_));
  }
}

}  // namespace stowage::executor
