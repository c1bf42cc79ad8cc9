#include "cli/torch/measured_text.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

namespace stowage::cli {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

TEST(MeasuredText, OfPlannedMemorySaysWhatTheCachingAllocatorWouldReserve) {
  MeasuredRun run;
  run.peak_active = 100;
  run.peak_reserved = 2097152;
  simulator::Predicted predicted;
  predicted.peak_active = 100;
  predicted.peak_reserved = 2097152;
  const std::string would = "PyTorch's caching allocator would reserve 4.19 MB (4,194,304 bytes)";
  EXPECT_THAT(counters_text(run, predicted, 4194304), Not(HasSubstr(would)))
      << "the step ran in the caching allocator's memory";
  run.memory.emplace();
  EXPECT_THAT(counters_text(run, predicted, 4194304), HasSubstr(would));
  EXPECT_THAT(counters_text(run, predicted, -1), Not(HasSubstr("would reserve")));
  run.peak_reserved = -1;  // a device without such counters
  EXPECT_EQ(counters_text(run, predicted, 4194304), "");
}

}  // namespace
}  // namespace stowage::cli
