#include "executor/device/file_pages.h"

#include <gtest/gtest.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cstring>
#include <filesystem>
#include <string>
#include <system_error>

namespace stowage::executor {
namespace {

Bytes page() {
  return static_cast<Bytes>(sysconf(_SC_PAGESIZE));
}

TEST(FilePages, APageIsTheSameAtEachOfItsAddresses) {
  const Bytes p = page();
  // Three addresses of two pages: 0, 1, and 1 then 0.
  const auto made = FilePages::create(2 * p, 4 * p);
  ASSERT_TRUE(made.ok()) << made.error().text();
  PagedMemory& memory = **made;
  ASSERT_TRUE(memory.map({{0, 0, 2 * p}}).ok());
  ASSERT_TRUE(memory.map({{2 * p, p, p}, {3 * p, 0, p}}).ok());
  EXPECT_EQ(memory.bytes(), 2 * p);
  std::memset(memory.begin(), 1, static_cast<std::size_t>(p));
  std::memset(memory.begin() + p, 2, static_cast<std::size_t>(p));
  for (Bytes at = 0; at < p; ++at) {
    ASSERT_EQ(memory.begin()[2 * p + at], std::byte{2});
    ASSERT_EQ(memory.begin()[3 * p + at], std::byte{1});
  }
  memory.begin()[3 * p] = std::byte{7};
  EXPECT_EQ(memory.begin()[0], std::byte{7});
}

// Of the one file in memory that is open.
Bytes taken_from_the_system() {
  Bytes bytes = -1;
  for (const auto& entry : std::filesystem::directory_iterator("/proc/self/fd")) {
    std::error_code none;
    const std::string file = std::filesystem::read_symlink(entry, none).string();
    struct stat status {};
    if (file.find("memfd:stowage") == std::string::npos) continue;
    if (stat(entry.path().c_str(), &status) == 0) bytes = Bytes{512} * status.st_blocks;
  }
  return bytes;
}

TEST(FilePages, GivesBackAllButWhatIsKept) {
  const Bytes p = page();
  const auto made = FilePages::create(8 * p, 12 * p);
  ASSERT_TRUE(made.ok()) << made.error().text();
  PagedMemory& memory = **made;
  ASSERT_TRUE(memory.map({{0, 0, 8 * p}, {8 * p, 2 * p, 4 * p}}).ok());
  for (Bytes at = 0; at < 8; ++at) {
    std::memset(memory.begin() + at * p, static_cast<int>(at), static_cast<std::size_t>(p));
  }
  EXPECT_EQ(taken_from_the_system(), 8 * p);
  // Pages 3 and 4 at their second addresses, page 4 at its first, page 7.
  EXPECT_TRUE(memory.keep_only({{9 * p, 3 * p, 2 * p}, {4 * p, 4 * p, p}, {7 * p, 7 * p, p}}));
  EXPECT_EQ(taken_from_the_system(), 3 * p);
  EXPECT_EQ(memory.begin()[9 * p], std::byte{3});
  EXPECT_EQ(memory.begin()[10 * p], std::byte{4});
  EXPECT_EQ(memory.begin()[7 * p], std::byte{7});
  memory.begin()[4 * p] = std::byte{44};
  EXPECT_EQ(memory.begin()[10 * p], std::byte{44});
  // The other addresses stay the region's: nobody else is given them.
  void* const elsewhere = mmap(memory.begin(), static_cast<std::size_t>(p), PROT_NONE,
                               MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1, 0);
  EXPECT_EQ(elsewhere, MAP_FAILED);
  EXPECT_TRUE(memory.keep_only({}));
  EXPECT_EQ(taken_from_the_system(), 0);
}

TEST(FilePages, IsNotThereInAProcessThatWasForked) {
  const Bytes p = page();
  const auto made = FilePages::create(p, 2 * p);
  ASSERT_TRUE(made.ok());
  ASSERT_TRUE((*made)->map({{0, 0, p}, {p, 0, p}}).ok());
  std::array<int, 2> ends{};
  ASSERT_EQ(pipe(ends.data()), 0);
  const auto is_readable = [&](Bytes at) { return write(ends[1], (*made)->begin() + at, 1) == 1; };
  ASSERT_TRUE(is_readable(0) && is_readable(p));
  const pid_t child = fork();
  if (child == 0) _exit(is_readable(0) || is_readable(p) ? 1 : 0);
  ASSERT_GT(child, 0);
  int status = -1;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0);
}

TEST(FilePages, AForkedProcessTakesNothingFromThisOne) {
  const Bytes p = page();
  auto made = FilePages::create(p, 2 * p);
  ASSERT_TRUE(made.ok());
  ASSERT_TRUE((*made)->map({{0, 0, p}}).ok());
  std::byte* const kept = (*made)->begin();
  *kept = std::byte{7};
  const pid_t child = fork();
  if (child == 0) {
    // The addresses are taken here, too, until the memory goes.
    const auto at_the_address = [&] {
      void* const own = mmap(kept, static_cast<std::size_t>(2 * p), PROT_READ | PROT_WRITE,
                             MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1, 0);
      return own == kept;
    };
    if (at_the_address()) _exit(2);
    if ((*made)->map({{0, 0, p}}).ok()) _exit(3);
    if ((*made)->keep_only({})) _exit(6);
    if (at_the_address()) _exit(4);
    made->reset();
    if (!at_the_address()) _exit(5);
    *kept = std::byte{1};
    _exit(0);
  }
  ASSERT_GT(child, 0);
  int status = -1;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  EXPECT_TRUE(WIFEXITED(status)) << status;
  EXPECT_EQ(WEXITSTATUS(status), 0);
  EXPECT_EQ(*kept, std::byte{7});
}

TEST(FilePages, OfNothingIsNothing) {
  const auto made = FilePages::create(0, 0);
  ASSERT_TRUE(made.ok());
  EXPECT_EQ((*made)->begin(), nullptr);
}

TEST(FilePages, MoreThanTheMachineHasIsRefused) {
  constexpr Bytes kMuch = Bytes{1} << 60;
  const auto made = FilePages::create(kMuch, kMuch);
  ASSERT_FALSE(made.ok());
  EXPECT_EQ(made.error().code, ErrorCode::environment);
  EXPECT_NE(made.error().message.find("planned memory: "), std::string::npos);
}

}  // namespace
}  // namespace stowage::executor
