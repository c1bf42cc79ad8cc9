#include "executor/device/file_pages.h"

#include <fcntl.h>
#include <pthread.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include "executor/device/host_memory.h"
#include "traces/size_text.h"

namespace stowage::executor {
namespace {

Error refused(const std::string& what, const std::string& why, const std::string& hint = {}) {
  return {ErrorCode::environment, "planned memory: " + what + ": " + why, "", "", hint};
}

std::string why() {
  return std::strerror(errno);
}

// From now on nothing can be read from or written to them, and nothing else comes to lie there.
// False: the system refuses that.
bool take_addresses(std::byte* at, Bytes bytes) {
  return mmap(at, static_cast<std::size_t>(bytes), PROT_NONE,
              MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED, -1, 0) != MAP_FAILED;
}

// The process's regions, for a fork of it.
struct Regions {
  std::mutex mutex;
  std::vector<std::pair<std::byte*, Bytes>> all;
};

Regions& regions() {
  static Regions* const all = [] {
    pthread_atfork([] { regions().mutex.lock(); }, [] { regions().mutex.unlock(); },
                   [] {
                     for (const auto& [begin, bytes] : regions().all) {
                       if (!take_addresses(begin, bytes)) std::abort();
                     }
                     regions().mutex.unlock();
                   });
    return new Regions;
  }();
  return *all;
}

}  // namespace

Result<std::unique_ptr<PagedMemory>> FilePages::create(Bytes bytes, Bytes region_bytes) {
  std::unique_ptr<FilePages> pages(new FilePages(bytes, region_bytes));
  if (region_bytes == 0) return std::unique_ptr<PagedMemory>(std::move(pages));
  if (bytes > available_host_bytes()) {
    return refused(format_bytes(bytes) + " of pages", "the machine cannot give as much now");
  }
  pages->file_ = memfd_create("stowage", MFD_CLOEXEC);
  if (pages->file_ < 0) return refused("a file in memory", why());
  if (ftruncate(pages->file_, bytes) != 0) return refused("pages", why());
  void* const region = mmap(nullptr, static_cast<std::size_t>(region_bytes), PROT_NONE,
                            MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (region == MAP_FAILED) return refused(format_bytes(region_bytes) + " of addresses", why());
  pages->set_begin(static_cast<std::byte*>(region));
  const std::lock_guard lock(regions().mutex);
  regions().all.emplace_back(pages->begin(), region_bytes);
  return std::unique_ptr<PagedMemory>(std::move(pages));
}

Status FilePages::map(const std::vector<simulator::Mapping>& mappings) {
  if (is_forked())
    return refused("pages", "they are those of the process that this one is a fork of");
  for (const simulator::Mapping& mapping : mappings) {
    STOWAGE_ASSERT(mapping.address + mapping.bytes <= region_bytes() &&
                   mapping.offset + mapping.bytes <= bytes());
    std::byte* const at = begin() + mapping.address;
    const auto length = static_cast<std::size_t>(mapping.bytes);
    if (mmap(at, length, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED, file_, mapping.offset) ==
        MAP_FAILED) {
      return refused(std::to_string(mappings.size()) + " mappings", why(),
                     "the system bounds them (vm.max_map_count)");
    }
    if (madvise(at, length, MADV_DONTFORK) != 0) {
      return refused("memory that a forked process does not have", why());
    }
  }
  return Unit{};
}

bool FilePages::keep_only(const std::vector<simulator::Mapping>& mappings) {
  if (is_forked()) return false;
  const auto gaps = [&](auto&& begin_of, Bytes size, auto&& give_back) {
    std::vector<simulator::Mapping> sorted = mappings;
    std::sort(sorted.begin(), sorted.end(),
              [&](const auto& a, const auto& b) { return begin_of(a) < begin_of(b); });
    Bytes from = 0;
    for (const simulator::Mapping& each : sorted) {
      if (begin_of(each) > from) give_back(from, begin_of(each) - from);
      from = std::max(from, begin_of(each) + each.bytes);
    }
    if (from < size) give_back(from, size - from);
  };
  // The addresses stay the region's. What cannot be given back stays.
  gaps(
      [](const simulator::Mapping& each) { return each.address; }, region_bytes(),
      [&](Bytes from, Bytes length) { static_cast<void>(take_addresses(begin() + from, length)); });
  gaps([](const simulator::Mapping& each) { return each.offset; }, bytes(),
       [&](Bytes from, Bytes length) {
         static_cast<void>(
             fallocate(file_, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, from, length));
       });
  return true;
}

FilePages::~FilePages() {
  if (begin() != nullptr) {
    const std::lock_guard lock(regions().mutex);
    std::erase_if(regions().all, [&](const auto& each) { return each.first == begin(); });
    munmap(begin(), static_cast<std::size_t>(region_bytes()));
  }
  if (file_ >= 0) close(file_);
}

}  // namespace stowage::executor
