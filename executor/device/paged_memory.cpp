#include "executor/device/paged_memory.h"

#include <sys/mman.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <string>
#include <utility>

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

class File {
 public:
  File() : number_(memfd_create("stowage", MFD_CLOEXEC)) {}
  ~File() {
    if (number_ >= 0) close(number_);
  }
  File(const File&) = delete;
  File& operator=(const File&) = delete;
  [[nodiscard]] int number() const { return number_; }

 private:
  int number_;
};

}  // namespace

Result<PagedMemory> PagedMemory::create(Bytes bytes, Bytes region_bytes,
                                        const std::vector<simulator::Mapping>& mappings) {
  PagedMemory memory(bytes, region_bytes);
  if (region_bytes == 0) return memory;
  if (bytes > available_host_bytes()) {
    return refused(format_bytes(bytes) + " of pages", "the machine cannot give as much now");
  }
  const File file;
  if (file.number() < 0) return refused("a file in memory", why());
  if (ftruncate(file.number(), bytes) != 0) return refused("pages", why());
  void* const region = mmap(nullptr, static_cast<std::size_t>(region_bytes), PROT_NONE,
                            MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (region == MAP_FAILED) return refused(format_bytes(region_bytes) + " of addresses", why());
  memory.begin_ = static_cast<std::byte*>(region);
  for (const simulator::Mapping& mapping : mappings) {
    STOWAGE_ASSERT(mapping.address + mapping.bytes <= region_bytes &&
                   mapping.offset + mapping.bytes <= bytes);
    const void* const mapped =
        mmap(memory.begin_ + mapping.address, static_cast<std::size_t>(mapping.bytes),
             PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED, file.number(), mapping.offset);
    if (mapped == MAP_FAILED) {
      return refused(std::to_string(mappings.size()) + " mappings", why(),
                     "the system bounds them (vm.max_map_count)");
    }
  }
  // The pages are shared, also with a process that is forked: what that writes would be written
  // here.
  if (madvise(region, static_cast<std::size_t>(region_bytes), MADV_DONTFORK) != 0) {
    return refused("memory that a forked process does not have", why());
  }
  return memory;
}

PagedMemory::PagedMemory(PagedMemory&& other) noexcept
    : bytes_(other.bytes_),
      region_bytes_(other.region_bytes_),
      begin_(std::exchange(other.begin_, nullptr)) {}

PagedMemory::~PagedMemory() {
  if (begin_ != nullptr) munmap(begin_, static_cast<std::size_t>(region_bytes_));
}

}  // namespace stowage::executor
