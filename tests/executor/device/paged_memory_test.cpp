#include "executor/device/paged_memory.h"

#include <gtest/gtest.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstring>
#include <utility>

namespace stowage::executor {
namespace {

Bytes page() {
  return static_cast<Bytes>(sysconf(_SC_PAGESIZE));
}

TEST(PagedMemory, APageIsTheSameAtEachOfItsAddresses) {
  const Bytes p = page();
  // Three addresses of two pages: 0, 1, and 1 then 0.
  auto made = PagedMemory::create(2 * p, 4 * p, {{0, 0, 2 * p}, {2 * p, p, p}, {3 * p, 0, p}});
  ASSERT_TRUE(made.ok()) << made.error().text();
  const PagedMemory memory = std::move(made).value();
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

TEST(PagedMemory, IsNotThereInAProcessThatWasForked) {
  const Bytes p = page();
  const auto made = PagedMemory::create(p, 2 * p, {{0, 0, p}, {p, 0, p}});
  ASSERT_TRUE(made.ok());
  const auto is_mapped = [&] {
    return msync(made->begin(), static_cast<std::size_t>(2 * p), MS_ASYNC) == 0;
  };
  ASSERT_TRUE(is_mapped());
  const pid_t child = fork();
  if (child == 0) _exit(is_mapped() ? 1 : 0);
  ASSERT_GT(child, 0);
  int status = -1;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0);
}

TEST(PagedMemory, OfNothingIsNothing) {
  const auto made = PagedMemory::create(0, 0, {});
  ASSERT_TRUE(made.ok());
  EXPECT_EQ(made->begin(), nullptr);
}

TEST(PagedMemory, MoreThanTheMachineHasIsRefused) {
  constexpr Bytes kMuch = Bytes{1} << 60;
  const auto made = PagedMemory::create(kMuch, kMuch, {{0, 0, kMuch}});
  ASSERT_FALSE(made.ok());
  EXPECT_EQ(made.error().code, ErrorCode::environment);
  EXPECT_NE(made.error().message.find("planned memory: "), std::string::npos);
}

}  // namespace
}  // namespace stowage::executor
