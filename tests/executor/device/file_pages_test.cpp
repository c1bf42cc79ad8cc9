#include "executor/device/file_pages.h"

#include <gtest/gtest.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstring>

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

TEST(FilePages, IsNotThereInAProcessThatWasForked) {
  const Bytes p = page();
  const auto made = FilePages::create(p, 2 * p);
  ASSERT_TRUE(made.ok());
  ASSERT_TRUE((*made)->map({{0, 0, p}, {p, 0, p}}).ok());
  const auto is_mapped = [&] {
    return msync((*made)->begin(), static_cast<std::size_t>(2 * p), MS_ASYNC) == 0;
  };
  ASSERT_TRUE(is_mapped());
  const pid_t child = fork();
  if (child == 0) _exit(is_mapped() ? 1 : 0);
  ASSERT_GT(child, 0);
  int status = -1;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0);
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
