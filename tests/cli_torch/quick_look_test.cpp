// `profile --quick` and `verify --quick`: fewer steps, the same bytes, and said wherever it shows.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "tests/cli/process.h"

namespace stowage {
namespace {

using cli_tests::Outcome;
using cli_tests::stowage;
using cli_tests::TemporaryFolder;
using nlohmann::json;
using ::testing::HasSubstr;
using ::testing::Not;

const char* const kSaid = "(a quick look: its times are of few steps)";

struct Recording {
  TemporaryFolder folder;
  std::string quick = folder.file("q.json.gz");
  std::string whole = folder.file("w.json.gz");

  json profile(const std::string& trace, std::vector<std::string> more) const {
    more.insert(more.begin(), {"profile", "mlp:layers=2,width=64", "--batch", "4", "--device",
                               "cpu", "--threads", "1", "--json", "-o", trace});
    const Outcome outcome = stowage(more);
    EXPECT_EQ(outcome.code, 0) << outcome.err;
    return json::parse(outcome.out, nullptr, false);
  }
};

TEST(QuickLook, ARecordingHasTheBytesOfTheWholeOneAndSaysSo) {
  const Recording recording;
  const json quick = recording.profile(recording.quick, {"--quick"});
  const json whole = recording.profile(recording.whole, {});
  EXPECT_EQ(quick.at("quick"), true);
  EXPECT_EQ(whole.at("quick"), false);
  for (const char* key : {"fingerprint", "peak_requested_bytes", "ops", "saved_tensors"}) {
    EXPECT_EQ(quick.at(key), whole.at(key)) << key;
  }
  EXPECT_THAT(stowage({"inspect", recording.quick}).out, HasSubstr(kSaid));
  EXPECT_THAT(stowage({"inspect", recording.whole}).out, Not(HasSubstr("quick look")));
  const Outcome planned =
      stowage({"plan", recording.quick, "--budget", "90%", "-o", recording.folder.file("p.json")});
  EXPECT_THAT(planned.out, HasSubstr(kSaid));
}

TEST(QuickLook, AVerificationJudgesTheSameAndSaysSo) {
  const Recording recording;
  const std::string plan = recording.folder.file("p.json");
  ASSERT_FALSE(recording.profile(recording.whole, {}).is_discarded());
  ASSERT_EQ(stowage({"plan", recording.whole, "--budget", "80%", "-o", plan}).code, 0);
  const Outcome words = stowage({"verify", "--plan", plan, "--quick"});
  EXPECT_EQ(words.code, 0) << words.err;
  EXPECT_THAT(words.out, HasSubstr("(a quick look: times of few steps)"));
  const json quick = json::parse(stowage({"verify", "--plan", plan, "--quick", "--json"}).out);
  const json whole = json::parse(stowage({"verify", "--plan", plan, "--json"}).out);
  EXPECT_EQ(quick.at("quick_steps"), true);
  EXPECT_EQ(whole.at("quick_steps"), false);
  EXPECT_EQ(quick.at("quick"), false);  // of the recording
  for (const char* key : {"passed", "bitwise", "compared_tensors", "steps"}) {
    EXPECT_EQ(quick.at(key), whole.at(key)) << key;
  }
  EXPECT_EQ(quick.at("measured").at("losses").size(), 7U);
  EXPECT_EQ(whole.at("measured").at("losses").size(), 15U);
}

TEST(QuickLook, NoReferenceIsKeptOfIt) {
  const TemporaryFolder folder;
  const Outcome outcome =
      stowage({"verify", "--plan", "p.json", "--quick", "--reference", folder.file("r.json")});
  EXPECT_EQ(outcome.code, 2);
  EXPECT_THAT(outcome.err, HasSubstr("--quick with --reference"));
}

}  // namespace
}  // namespace stowage
