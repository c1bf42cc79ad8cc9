#include "profiler/cupti/activity_recorder.h"

#include <gtest/gtest.h>

#include <cstdlib>

namespace stowage::profiler {
namespace {

TEST(ActivityRecorder, IsRefusedBesideKinetosDaemon) {
  ::setenv("KINETO_USE_DAEMON", "1", 1);
  const auto recorder = ActivityRecorder::create(/*cuda_has_started=*/false);
  ::unsetenv("KINETO_USE_DAEMON");
  ASSERT_FALSE(recorder.ok());
  EXPECT_EQ(recorder.error().code, ErrorCode::environment);
  EXPECT_NE(recorder.error().message.find("KINETO_USE_DAEMON"), std::string::npos);
}

TEST(ActivityRecorder, NamesTheLibraryThatWasLoaded) {
  const std::string library = cupti_library();
  EXPECT_TRUE(library.starts_with("13.")) << library;
  EXPECT_NE(library.find("libcupti"), std::string::npos) << library;
}

}  // namespace
}  // namespace stowage::profiler
