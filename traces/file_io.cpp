#include "traces/file_io.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cerrno>
#include <cstddef>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <new>

#include "traces/size_text.h"

namespace stowage {
namespace {

constexpr std::size_t kMaxPath = 4096;
constexpr std::size_t kSlots = 16;
constexpr std::size_t kReadChunk = std::size_t{1} << 16;

// Temporary files in flight, for remove_unfinished_files(). A signal handler reads `path` only
// while `state` is kListed, which is stored after the path.
struct Slot {
  enum State : int { kFree, kTaken, kListed };
  std::atomic<int> state{kFree};
  char path[kMaxPath] = {};
};
std::array<Slot, kSlots> slots;
static_assert(std::atomic<int>::is_always_lock_free);

// Lists a path while it lives, then deletes the file unless it was kept.
class Unfinished {
 public:
  explicit Unfinished(const std::string& path) : path_(path) {
    if (path.size() >= kMaxPath) return;
    for (Slot& slot : slots) {
      int expected = Slot::kFree;
      if (!slot.state.compare_exchange_strong(expected, Slot::kTaken)) continue;
      std::memcpy(slot.path, path.c_str(), path.size() + 1);
      slot.state.store(Slot::kListed, std::memory_order_release);
      slot_ = &slot;
      return;
    }
  }
  Unfinished(const Unfinished&) = delete;
  Unfinished& operator=(const Unfinished&) = delete;
  ~Unfinished() {
    if (!kept_) ::unlink(path_.c_str());
    if (slot_ != nullptr) slot_->state.store(Slot::kFree, std::memory_order_release);
  }
  void keep() { kept_ = true; }

 private:
  std::string path_;
  Slot* slot_ = nullptr;
  bool kept_ = false;
};

class Descriptor {
 public:
  explicit Descriptor(int fd) : fd_(fd) {}
  Descriptor(const Descriptor&) = delete;
  Descriptor& operator=(const Descriptor&) = delete;
  ~Descriptor() {
    if (fd_ >= 0) ::close(fd_);
  }
  [[nodiscard]] int get() const { return fd_; }
  // Some file systems report a full disk only here.
  int close() {
    const int fd = fd_;
    fd_ = -1;
    return ::close(fd);
  }

 private:
  int fd_;
};

Error file_error(ErrorCode code, const std::string& path, std::string message, std::string hint) {
  Error error;
  error.code = code;
  error.file = path;
  error.message = std::move(message);
  error.hint = std::move(hint);
  return error;
}

Error read_error(const std::string& path, int number) {
  std::string message = std::string("cannot be read: ") + std::strerror(number);
  if (number == ENOENT) message = "there is no such file";
  if (number == EISDIR) message = "is a directory, not a file";
  return file_error(ErrorCode::bad_input, path, std::move(message),
                    number == ENOENT   ? "check the path"
                    : number == EISDIR ? "give a file in it"
                                       : "");
}

Error write_error(const std::string& path, int number) {
  std::string hint;
  if (number == ENOSPC || number == EDQUOT || number == EFBIG) {
    hint = "free some space or write somewhere else; nothing was left behind";
  } else if (number == EACCES || number == EPERM || number == EROFS) {
    hint = "choose a folder that you may write to";
  } else if (number == ENOENT || number == ENOTDIR) {
    hint = "create the folder first";
  } else if (number == EISDIR) {
    hint = "give a file in it";
  }
  return file_error(ErrorCode::environment, path,
                    std::string("cannot be written: ") + std::strerror(number), std::move(hint));
}

// 0, or the errno of the failed write.
int write_all(int fd, std::string_view data) {
  while (!data.empty()) {
    const ssize_t written = ::write(fd, data.data(), data.size());
    if (written < 0) {
      if (errno == EINTR) continue;
      return errno;
    }
    if (written == 0) return ENOSPC;
    data.remove_prefix(static_cast<std::size_t>(written));
  }
  return 0;
}

Result<std::string> read_all(int fd, const std::string& name, std::int64_t max_bytes) {
  std::string out;
  struct stat info {};
  std::size_t size = 0;
  if (::fstat(fd, &info) == 0 && S_ISREG(info.st_mode)) {
    if (info.st_size > max_bytes)
      size = kReadChunk;  // refused below
    else
      size = static_cast<std::size_t>(info.st_size);
  }
  out.resize(size + 1);  // one more, to see the end without growing
  std::size_t made = 0;
  for (;;) {
    if (made == out.size()) {
      grow(out, std::min(std::max(made * 2, kReadChunk), static_cast<std::size_t>(max_bytes) + 1));
    }
    const ssize_t got = ::read(fd, out.data() + made, out.size() - made);
    if (got < 0) {
      if (errno == EINTR) continue;
      return read_error(name, errno);
    }
    if (got == 0) break;
    made += static_cast<std::size_t>(got);
    if (made > static_cast<std::size_t>(max_bytes)) {
      return file_error(ErrorCode::bad_input, name,
                        "is larger than " + format_bytes(max_bytes, ByteUnits::binary),
                        "this is no file that Stowage writes");
    }
  }
  out.resize(made);
  return out;
}

}  // namespace

void grow(std::string& text, std::size_t size) {
  if (size <= text.size()) return;
  std::string larger;
  larger.reserve(size);
  larger = text;
  larger.resize(size);
  text.swap(larger);
}

namespace {

bool ends_in_gz(const std::string& path) {
  return path.size() > 3 && path.compare(path.size() - 3, 3, ".gz") == 0;
}

// Where a symbolic link leads, so that the link stays and its target is replaced.
std::string resolved(const std::string& path) {
  const std::unique_ptr<char, void (*)(void*)> real(::realpath(path.c_str(), nullptr), std::free);
  return real ? std::string(real.get()) : path;
}

std::string temporary_beside(const std::string& path) {
  static std::atomic<unsigned> counter{0};
  const std::size_t slash = path.rfind('/');
  const std::string folder = slash == std::string::npos ? "" : path.substr(0, slash + 1);
  return folder + ".stowage-" + std::to_string(::getpid()) + "-" +
         std::to_string(counter.fetch_add(1)) + ".tmp";
}

Status write_in_place(const std::string& path, std::string_view data) {
  Descriptor fd(::open(path.c_str(), O_WRONLY | O_CLOEXEC));
  if (fd.get() < 0) return write_error(path, errno);
  if (const int number = write_all(fd.get(), data)) return write_error(path, number);
  if (fd.close() != 0) return write_error(path, errno);
  return Unit{};
}

Status replace(const std::string& path, std::string_view data, const struct stat* old) {
  const std::string target = resolved(path);
  const std::string temporary = temporary_beside(target);
  Unfinished unfinished(temporary);
  Descriptor fd(::open(temporary.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666));
  if (fd.get() < 0) {
    const int number = errno;
    if (number == EEXIST) unfinished.keep();  // somebody else's
    return write_error(path, number);
  }
  if (old != nullptr) ::fchmod(fd.get(), old->st_mode & 07777);
  if (const int number = write_all(fd.get(), data)) return write_error(path, number);
  // A file system without fsync (EINVAL) cannot be asked.
  if (::fsync(fd.get()) != 0 && errno != EINVAL) return write_error(path, errno);
  if (fd.close() != 0) return write_error(path, errno);
  if (::rename(temporary.c_str(), target.c_str()) != 0) return write_error(path, errno);
  unfinished.keep();
  return Unit{};
}

}  // namespace

Result<std::string> read_file(const std::string& path, std::int64_t max_bytes) {
  const bool input = path == "-";
  const std::string name = input ? "<stdin>" : path;
  try {
    Descriptor fd(input ? ::dup(STDIN_FILENO) : ::open(path.c_str(), O_RDONLY | O_CLOEXEC));
    if (fd.get() < 0) return read_error(name, errno);
    Result<std::string> raw = read_all(fd.get(), name, max_bytes);
    if (!raw) return raw;
    if (raw->size() >= 2 && raw->compare(0, 2, "\x1f\x8b") == 0) {
      return gunzip(*raw, name, max_bytes);
    }
    return raw;
  } catch (const std::bad_alloc&) {
    return file_error(ErrorCode::environment, name, "does not fit into this machine's memory", "");
  }
}

Status check_writable(const std::string& path) {
  if (path == "-") return Unit{};
  if (path.empty()) return write_error("''", ENOENT);
  struct stat info {};
  const bool exists = ::stat(path.c_str(), &info) == 0;
  if (!exists && errno != ENOENT) return write_error(path, errno);
  if (exists && S_ISDIR(info.st_mode)) return write_error(path, EISDIR);
  if (exists && ::access(path.c_str(), W_OK) != 0) return write_error(path, errno);
  if (exists && !S_ISREG(info.st_mode)) return Unit{};
  const std::string target = resolved(path);
  const std::size_t slash = target.rfind('/');
  const std::string folder = slash == std::string::npos ? "." : target.substr(0, slash + 1);
  if (::access(folder.c_str(), W_OK | X_OK) != 0) return write_error(path, errno);
  return Unit{};
}

Status write_file(const std::string& path, std::string_view data) {
  if (path == "-") {
    const int number = write_all(STDOUT_FILENO, data);
    if (number != 0) return write_error("<stdout>", number);
    return Unit{};
  }
  if (path.empty()) return write_error("''", ENOENT);
  std::string packed;
  if (ends_in_gz(path)) {
    packed = gzip(data);
    data = packed;
  }
  struct stat info {};
  if (::stat(path.c_str(), &info) != 0) return replace(path, data, nullptr);
  if (S_ISDIR(info.st_mode)) return write_error(path, EISDIR);
  if (!S_ISREG(info.st_mode)) return write_in_place(path, data);
  if (::access(path.c_str(), W_OK) != 0) return write_error(path, errno);
  return replace(path, data, &info);
}

void remove_unfinished_files() noexcept {
  const int saved = errno;
  for (Slot& slot : slots) {
    if (slot.state.load(std::memory_order_acquire) == Slot::kListed) ::unlink(slot.path);
  }
  errno = saved;
}

}  // namespace stowage
