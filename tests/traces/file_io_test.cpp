#include "traces/file_io.h"

#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>

#include "traces/build_info.h"

namespace stowage {
namespace {

namespace fs = std::filesystem;

class FileIo : public ::testing::Test {
 protected:
  void SetUp() override {
    std::string pattern = (fs::temp_directory_path() / "stowage-file-io-XXXXXX").string();
    ASSERT_NE(::mkdtemp(pattern.data()), nullptr);
    folder_ = pattern;
  }
  void TearDown() override { fs::remove_all(folder_); }

  [[nodiscard]] std::string path(const char* name) const { return (folder_ / name).string(); }
  void put(const char* name, const std::string& text) const {
    std::ofstream(path(name), std::ios::binary) << text;
  }
  [[nodiscard]] std::string raw(const char* name) const {
    std::ifstream in(path(name), std::ios::binary);
    return {std::istreambuf_iterator<char>(in), {}};
  }
  [[nodiscard]] std::ptrdiff_t files() const {
    return std::distance(fs::directory_iterator(folder_), fs::directory_iterator());
  }

  fs::path folder_;
};

TEST_F(FileIo, WritesAndReads) {
  const std::string text("a\0b\n", 4);
  ASSERT_TRUE(write_file(path("plain"), text));
  EXPECT_EQ(raw("plain"), text);
  EXPECT_EQ(*read_file(path("plain")), text);
  ASSERT_TRUE(write_file(path("empty"), ""));
  EXPECT_EQ(*read_file(path("empty")), "");
  EXPECT_EQ(files(), 2);
}

TEST_F(FileIo, CompressesByNameAndUnpacksByContent) {
  const std::string text(100'000, 'x');
  ASSERT_TRUE(write_file(path("a.gz"), text));
  ASSERT_TRUE(write_file(path("b.gz"), text));
  EXPECT_EQ(raw("a.gz"), raw("b.gz"));
  EXPECT_LT(raw("a.gz").size(), 1000U);
  EXPECT_EQ(raw("a.gz").substr(4, 4), std::string(4, '\0'));  // no time in the header
  EXPECT_EQ(*read_file(path("a.gz")), text);
  fs::rename(path("a.gz"), path("a.json"));
  EXPECT_EQ(*read_file(path("a.json")), text);
  put("two", raw("b.gz") + raw("b.gz"));
  EXPECT_EQ(read_file(path("two"))->size(), 2 * text.size());
}

TEST_F(FileIo, RefusesGzipTruncatedAtAnyLength) {
  const std::string packed = gzip("{\"schema\":{\"name\":\"stowage-trace\",\"major\":1}}");
  for (std::size_t length = 2; length < packed.size(); ++length) {
    put("t.gz", packed.substr(0, length));
    const auto text = read_file(path("t.gz"));
    ASSERT_FALSE(text) << length;
    EXPECT_EQ(text.error().code, ErrorCode::bad_input);
    EXPECT_EQ(text.error().message, "truncated gzip") << length;
    EXPECT_EQ(text.error().file, path("t.gz"));
  }
}

TEST_F(FileIo, RefusesCorruptGzip) {
  const std::string packed = gzip(std::string(1000, 'x') + "tail");
  for (std::size_t at = 0; at < packed.size(); ++at) {
    if (at >= 4 && at < 10) continue;  // time, flags of speed and system: no content
    std::string broken = packed;
    broken[at] = static_cast<char>(broken[at] ^ 0x55);
    const auto text = gunzip(broken, "x.gz");
    ASSERT_FALSE(text) << at;
    EXPECT_EQ(text.error().code, ErrorCode::bad_input);
  }
  EXPECT_FALSE(gunzip(packed + "garbage", "x.gz"));
}

TEST_F(FileIo, RefusesABomb) {
  const std::string packed = gzip(std::string(1 << 20, '\0'));
  EXPECT_TRUE(gunzip(packed, "x.gz", 1 << 20));
  EXPECT_FALSE(gunzip(packed, "x.gz", (1 << 20) - 1));
  const auto text = gunzip(packed, "x.gz", 1 << 19);
  ASSERT_FALSE(text);
  EXPECT_EQ(text.error().message, "unpacks to more than 512 KiB");
  put("large", std::string(2000, 'x'));
  EXPECT_FALSE(read_file(path("large"), 1999));
  EXPECT_TRUE(read_file(path("large"), 2000));
  EXPECT_EQ(read_file(path("large"), 1 << 10).error().message, "is larger than 1.00 KiB");
  EXPECT_FALSE(read_file("/dev/zero", 1 << 20));
}

// How far the peak of a process's memory rises when it reads `file`, in KiB.
std::int64_t memory_to_read(const std::string& file, std::int64_t max_bytes) {
  int ends[2];
  if (::pipe(ends) != 0) return -1;
  const pid_t child = ::fork();
  if (child == 0) {
    rusage used{};
    ::getrusage(RUSAGE_SELF, &used);
    const std::int64_t before = used.ru_maxrss;
    static_cast<void>(read_file(file, max_bytes));
    ::getrusage(RUSAGE_SELF, &used);
    const std::int64_t more = used.ru_maxrss - before;
    ::_exit(::write(ends[1], &more, sizeof more) == sizeof more ? 0 : 1);
  }
  std::int64_t more = -1;
  ::close(ends[1]);
  if (::read(ends[0], &more, sizeof more) != sizeof more) more = -1;
  ::close(ends[0]);
  ::waitpid(child, nullptr, 0);
  return more;
}

// A buffer that doubles took three times the limit.
TEST_F(FileIo, UnpackingTakesLittleMoreThanTheLimit) {
  if (!kSanitizers.empty()) GTEST_SKIP() << "a sanitizer keeps what is freed";
  constexpr std::int64_t kLimit = 40 << 20;
  const std::string packed = gzip(std::string(100 << 20, '\0'));
  put("bomb.gz", packed);
  put("two.gz", packed + gzip("x"));  // its last four bytes do not tell its size
  put("fits.gz", gzip(std::string(kLimit, '\0')));
  EXPECT_FALSE(read_file(path("bomb.gz"), kLimit));
  EXPECT_FALSE(read_file(path("two.gz"), kLimit));
  EXPECT_EQ(read_file(path("fits.gz"), kLimit)->size(), static_cast<std::size_t>(kLimit));
  for (const char* name : {"bomb.gz", "fits.gz"}) {
    const std::int64_t taken = memory_to_read(path(name), kLimit);
    EXPECT_GT(taken, 0) << name;
    EXPECT_LT(taken, kLimit / 1024 * 5 / 4) << name;
  }
}

TEST_F(FileIo, NamesWhatCannotBeRead) {
  const auto missing = read_file(path("missing"));
  ASSERT_FALSE(missing);
  EXPECT_EQ(missing.error().code, ErrorCode::bad_input);
  EXPECT_EQ(missing.error().message, "there is no such file");
  EXPECT_EQ(missing.error().file, path("missing"));
  const auto folder = read_file(folder_.string());
  ASSERT_FALSE(folder);
  EXPECT_EQ(folder.error().code, ErrorCode::bad_input);
  EXPECT_EQ(folder.error().message, "is a directory, not a file");
}

TEST_F(FileIo, RefusesWhereItCannotWrite) {
  for (const std::string& target :
       {path("missing/file"), folder_.string(), std::string("/dev/full"), std::string()}) {
    const auto status = write_file(target, "data");
    ASSERT_FALSE(status) << target;
    EXPECT_EQ(status.error().code, ErrorCode::environment);
  }
  EXPECT_NE(write_file("/dev/full", "data").error().message.find("No space left"),
            std::string::npos);
  EXPECT_TRUE(fs::is_character_file("/dev/full"));
  EXPECT_TRUE(write_file("/dev/null", "data"));
  EXPECT_TRUE(fs::is_character_file("/dev/null"));
  EXPECT_EQ(files(), 0);
}

TEST_F(FileIo, LeavesNothingBehindWhenTheDiskIsFull) {
  put("old", "old content");
  rlimit before{};
  ASSERT_EQ(::getrlimit(RLIMIT_FSIZE, &before), 0);
  const auto handler = std::signal(SIGXFSZ, SIG_IGN);
  rlimit tiny = before;
  tiny.rlim_cur = 4096;
  ASSERT_EQ(::setrlimit(RLIMIT_FSIZE, &tiny), 0);
  const auto replaced = write_file(path("old"), std::string(100'000, 'n'));
  const auto created = write_file(path("new"), std::string(100'000, 'n'));
  ASSERT_EQ(::setrlimit(RLIMIT_FSIZE, &before), 0);
  std::signal(SIGXFSZ, handler);
  ASSERT_FALSE(replaced);
  ASSERT_FALSE(created);
  EXPECT_EQ(replaced.error().code, ErrorCode::environment);
  EXPECT_EQ(raw("old"), "old content");
  EXPECT_EQ(files(), 1);
}

void clean_up_and_leave(int) {
  remove_unfinished_files();
  ::_exit(130);
}

// The signal arrives in the middle of the write: the limit on the file's size raises it there.
TEST_F(FileIo, ASignalHandlerRemovesTheFileInFlight) {
  put("old", "old content");
  const pid_t child = ::fork();
  ASSERT_GE(child, 0);
  if (child == 0) {
    const rlimit tiny{4096, 4096};
    std::signal(SIGXFSZ, clean_up_and_leave);
    if (::setrlimit(RLIMIT_FSIZE, &tiny) != 0) ::_exit(1);
    const bool written = write_file(path("old"), std::string(100'000, 'n')).ok();
    ::_exit(written ? 2 : 3);
  }
  int status = 0;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  ASSERT_TRUE(WIFEXITED(status));
  EXPECT_EQ(WEXITSTATUS(status), 130);
  EXPECT_EQ(raw("old"), "old content");
  EXPECT_EQ(files(), 1);
}

TEST_F(FileIo, KeepsModeAndSymbolicLinks) {
  put("target", "1");
  fs::permissions(path("target"), fs::perms::owner_read | fs::perms::owner_write);
  fs::create_symlink("target", path("link"));
  ASSERT_TRUE(write_file(path("link"), "2"));
  EXPECT_TRUE(fs::is_symlink(path("link")));
  EXPECT_EQ(raw("target"), "2");
  EXPECT_EQ(fs::status(path("target")).permissions(),
            fs::perms::owner_read | fs::perms::owner_write);
}

TEST_F(FileIo, RemovesNothingOfFinishedFiles) {
  ASSERT_TRUE(write_file(path("done"), "data"));
  remove_unfinished_files();
  EXPECT_EQ(raw("done"), "data");
}

}  // namespace
}  // namespace stowage
