#include "traces/trace_file.h"

#include <gtest/gtest.h>

#include <filesystem>

#include "tests/traces/synthetic_trace.h"
#include "traces/file_io.h"
#include "traces/sha256.h"
#include "traces/trace_json.h"

namespace stowage {
namespace {

namespace fs = std::filesystem;

class TraceFile : public ::testing::Test {
 protected:
  void SetUp() override {
    std::string pattern = (fs::temp_directory_path() / "stowage-trace-file-XXXXXX").string();
    ASSERT_NE(::mkdtemp(pattern.data()), nullptr);
    folder_ = pattern;
  }
  void TearDown() override { fs::remove_all(folder_); }
  [[nodiscard]] std::string path(const char* name) const { return (folder_ / name).string(); }

  fs::path folder_;
};

TEST_F(TraceFile, HasOneHashPackedOrNot) {
  const Trace trace = testing::small_trace();
  ASSERT_TRUE(save_trace(path("t.json"), trace));
  ASSERT_TRUE(save_trace(path("t.json.gz"), trace));
  const auto plain = load_trace(path("t.json"));
  const auto packed = load_trace(path("t.json.gz"));
  ASSERT_TRUE(plain) << plain.error().text();
  ASSERT_TRUE(packed) << packed.error().text();
  EXPECT_EQ(plain->sha256, packed->sha256);
  EXPECT_EQ(plain->sha256, sha256_of(trace_to_json(trace)));
  EXPECT_EQ(trace_to_json(packed->trace), trace_to_json(trace));
  EXPECT_LT(fs::file_size(path("t.json.gz")), fs::file_size(path("t.json")) / 2);
}

TEST_F(TraceFile, NamesTheFileInErrors) {
  const auto missing = load_trace(path("none.json"));
  ASSERT_FALSE(missing);
  EXPECT_EQ(missing.error().code, ErrorCode::bad_input);
  ASSERT_TRUE(write_file(path("bad.json"),
                         "{\"schema\":{\"name\":\"stowage-trace\",\"major\":3,"
                         "\"minor\":0,\"writer\":\"\",\"features\":[]}}"));
  const auto bad = load_trace(path("bad.json"));
  ASSERT_FALSE(bad);
  EXPECT_EQ(bad.error().text(), path("bad.json") +
                                    ": /schema/major: is 3; this version reads 1 "
                                    "(use a newer version of stowage, or record again)");
  EXPECT_EQ(save_trace(path("no/t.json"), testing::small_trace()).error().code,
            ErrorCode::environment);
}

}  // namespace
}  // namespace stowage
