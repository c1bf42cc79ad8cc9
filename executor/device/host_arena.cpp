#include "executor/device/host_arena.h"

#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <string>
#include <thread>
#include <utility>
#include <vector>

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

// Writes zeros everywhere. Taking pages from the system is what costs, and threads share that: 16
// of them touch 1 GB in 0.05 s.
void touch(std::byte* data, std::size_t bytes) {
  constexpr std::size_t kPart = std::size_t{64} << 20;
  constexpr std::size_t kMostThreads = 16;
  const std::size_t parts = (bytes + kPart - 1) / kPart;
  const std::size_t threads = std::min(
      {parts, kMostThreads, std::size_t{std::max(1U, std::thread::hardware_concurrency())}});
  const auto work = [&](std::size_t first) {
    for (std::size_t part = first; part < parts; part += threads) {
      const std::size_t begin = part * kPart;
      std::memset(data + begin, 0, std::min(kPart, bytes - begin));
    }
  };
  std::vector<std::jthread> others;
  for (std::size_t i = 1; i < threads; ++i) others.emplace_back(work, i);
  work(0);
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
  touch(static_cast<std::byte*>(data), mapped);
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
