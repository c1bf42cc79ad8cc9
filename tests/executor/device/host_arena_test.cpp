#include "executor/device/host_arena.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <cstring>
#include <limits>
#include <utility>

#include "executor/device/host_memory.h"

namespace stowage::executor {
namespace {

TEST(HostArena, HasExactlyTheBytesAskedFor) {
  for (const Bytes bytes : {Bytes{1}, Bytes{4096}, Bytes{4097}, Bytes{10'000'001}}) {
    auto arena = HostArena::create(bytes);
    ASSERT_TRUE(arena.ok()) << arena.error().text();
    EXPECT_EQ(arena->bytes(), bytes);
    EXPECT_EQ(reinterpret_cast<std::uintptr_t>(arena->data()) % 4096, 0u);
    EXPECT_EQ(arena->data()[0], std::byte{0});
    EXPECT_EQ(arena->data()[bytes - 1], std::byte{0});
    std::memset(arena->data(), 1, static_cast<std::size_t>(bytes));
  }
}

TEST(HostArena, ZeroBytesIsAnEmptyArena) {
  auto arena = HostArena::create(0);
  ASSERT_TRUE(arena.ok());
  EXPECT_EQ(arena->data(), nullptr);
  EXPECT_EQ(arena->bytes(), 0);
  arena->poison(std::byte{0xFF});
}

TEST(HostArena, PoisonMakesFloatsNan) {
  auto arena = HostArena::create(1000);
  ASSERT_TRUE(arena.ok());
  arena->poison(std::byte{0xFF});
  float last = 0;
  std::memcpy(&last, arena->data() + 996, 4);
  EXPECT_NE(last, last);
}

TEST(HostArena, Moves) {
  auto made = HostArena::create(100);
  ASSERT_TRUE(made.ok());
  HostArena first = std::move(made).value();
  std::byte* const data = first.data();
  HostArena second;
  second = std::move(first);
  EXPECT_EQ(second.data(), data);
  EXPECT_EQ(second.bytes(), 100);
  const HostArena third(std::move(second));
  EXPECT_EQ(third.data(), data);
}

TEST(HostArena, RefusesWhatTheMachineDoesNotHave) {
  for (const Bytes bytes : {Bytes{1} << 50, std::numeric_limits<Bytes>::max()}) {
    const auto arena = HostArena::create(bytes);
    ASSERT_FALSE(arena.ok());
    EXPECT_EQ(arena.error().code, ErrorCode::environment);
    EXPECT_NE(arena.error().message.find(std::to_string(bytes)), std::string::npos);
  }
  const auto negative = HostArena::create(-1);
  ASSERT_FALSE(negative.ok());
  EXPECT_EQ(negative.error().code, ErrorCode::usage);
}

TEST(HostMemory, SomeIsAvailable) {
  EXPECT_GT(available_host_bytes(), 0);
}

}  // namespace
}  // namespace stowage::executor
