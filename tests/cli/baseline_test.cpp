// Baselines as files: the same bytes again, every bad one refused, and what is comparable.
#include "cli/baseline_json.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "simulator/replay/replay.h"
#include "tests/cli/golden.h"
#include "tests/support/small_trace.h"
#include "traces/build_info.h"

namespace stowage::cli_tests {
namespace {

using cli::Baseline;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using testing::small_trace;
using testing::small_trace_peak;
using OrderedJson = nlohmann::ordered_json;

Baseline small_baseline() {
  const Trace trace = small_trace(2);
  const simulator::StepIndex index(trace);
  Baseline baseline;
  baseline.step = {"small:layers=2", 4, 0, "fp32", "", "none", "", 1};
  baseline.made_with = {"0.1.0", "2.11.0", "cpu", "", "tracked", 1, true, ""};
  baseline.measured.peak_requested = small_trace_peak(2);
  baseline.measured.peak_active = small_trace_peak(2);
  baseline.content = report::peak_content(index, simulator::resident_schedule(index));
  return baseline;
}

TEST(BaselineJson, IsAsItWasAndReadsBackTheSame) {
  Baseline baseline = small_baseline();
  const std::string text = cli::baseline_to_json(baseline);
  expect_golden("baseline.json", text);
  auto read = cli::baseline_from_json(text, "b.json");
  ASSERT_TRUE(read.ok()) << read.error().text();
  EXPECT_EQ(*read, baseline);
  EXPECT_EQ(cli::baseline_to_json(*read), text);

  baseline.made_with.plan = "sha256:0123";
  baseline.made_with.placement = "planned";
  baseline.made_with.device = "cuda";
  baseline.made_with.device_name = "GPU \"1\"";
  baseline.made_with.deterministic = false;
  baseline.measured = {1, 2, 3, 4, 5, 6};
  baseline.content.on_host = baseline.content.on_device;
  baseline.content.on_host[0].holding = report::Holding::host;
  baseline.content.on_device.clear();
  read = cli::baseline_from_json(cli::baseline_to_json(baseline), "b.json");
  ASSERT_TRUE(read.ok()) << read.error().text();
  EXPECT_EQ(*read, baseline);
}

TEST(BaselineJson, RefusesWhatItDidNotWriteAndSaysWhere) {
  const std::string good = cli::baseline_to_json(small_baseline());
  const auto refused = [](const std::string& text, const std::string& pointer,
                          const std::string& words) {
    SCOPED_TRACE(pointer + " " + words);
    const auto read = cli::baseline_from_json(text, "b.json");
    ASSERT_FALSE(read.ok());
    EXPECT_EQ(read.error().code, ErrorCode::bad_input);
    EXPECT_EQ(read.error().file, "b.json");
    EXPECT_EQ(read.error().pointer, pointer);
    EXPECT_THAT(read.error().message, HasSubstr(words));
    EXPECT_EQ(read.error().text().find('\n'), std::string::npos);
  };
  const auto with = [&good](const std::string& pointer, const OrderedJson& value) {
    OrderedJson json = OrderedJson::parse(good);
    json[OrderedJson::json_pointer(pointer)] = value;
    return json.dump();
  };
  refused("", "", "no JSON");
  refused("<<<<<<< HEAD\n" + good, "", "no JSON");
  refused("[]", "", "an object");
  refused("{}", "", "\"schema\" is missing");
  refused(with("/schema", "stowage-baseline/2"), "/schema", "stowage-baseline/2 is not this");
  refused(with("/schema", "stowage-plan/1"), "/schema", "is no baseline");
  refused(with("/schema", 1), "/schema", "a text");
  refused(with("/step", nullptr), "/step", "an object");
  refused(with("/step/batch", "4"), "/step/batch", "a whole number");
  refused(with("/made_with/threads", -1), "/made_with/threads", "a whole number");
  refused(with("/made_with/deterministic", "yes"), "/made_with/deterministic", "true or false");
  refused(with("/measured/peak_requested_bytes", nullptr), "/measured/peak_requested_bytes",
          "a whole number");
  refused(with("/measured/peak_requested_bytes", 1e30), "/measured/peak_requested_bytes",
          "a whole number");
  refused(with("/measured/host_bytes", std::uint64_t{1} << 63), "/measured/host_bytes",
          "a whole number");
  refused(with("/at_peak/storages", 3), "/at_peak/storages", "a list");
  refused(with("/at_peak/storages/0/class", "activatoin"), "/at_peak/storages/0/class",
          "activatoin");
  refused(with("/at_peak/storages/0/sites", {1}), "/at_peak/storages/0/sites", "texts");
  for (const char* key : {"step", "made_with", "measured", "at_peak"}) {
    OrderedJson json = OrderedJson::parse(good);
    json.erase(key);
    refused(json.dump(), "", std::string("\"") + key + "\" is missing");
  }
}

TEST(BaselineJson, AnyPrefixOfAFileIsRefusedAndNothingCrashes) {
  const std::string good = cli::baseline_to_json(small_baseline());
  for (std::size_t length = 0; length + 2 < good.size(); length += 7) {
    EXPECT_FALSE(cli::baseline_from_json(good.substr(0, length), "b.json").ok()) << length;
  }
}

TEST(Baseline, OfAnotherStepIsBadInput) {
  const Baseline baseline = small_baseline();
  EXPECT_TRUE(cli::check_same_step(baseline, "b.json", baseline.step, "").ok());
  const auto refused = [&baseline](const std::string& pointer, const auto& change) {
    cli::StepIdentity other = baseline.step;
    change(other);
    const Status status = cli::check_same_step(baseline, "b.json", other, "what to do");
    ASSERT_FALSE(status.ok()) << pointer;
    EXPECT_EQ(status.error().code, ErrorCode::bad_input);
    EXPECT_EQ(status.error().pointer, pointer);
    EXPECT_THAT(status.error().message, HasSubstr("another step"));
  };
  refused("/step/model", [](cli::StepIdentity& s) { s.model = "small:layers=3"; });
  refused("/step/batch", [](cli::StepIdentity& s) { s.batch = 5; });
  refused("/step/seq", [](cli::StepIdentity& s) { s.seq = 5; });
  refused("/step/dtype", [](cli::StepIdentity& s) { s.dtype = "bf16"; });
  refused("/step/optimizer", [](cli::StepIdentity& s) { s.optimizer = "sgd"; });
  refused("/step/seed", [](cli::StepIdentity& s) { s.seed = 2; });
}

TEST(Baseline, OfAnotherVersionOrDeviceIsNotComparable) {
  const cli::MadeWith then = small_baseline().made_with;
  EXPECT_THAT(cli::differences(then, then), IsEmpty());
  cli::MadeWith now = then;
  now.libtorch = "2.12.0";
  now.threads = 2;
  now.plan = "sha256:0123456789abcdef";
  EXPECT_THAT(
      cli::differences(then, now),
      ElementsAre("made with LibTorch 2.11.0, this is 2.12.0", "made with threads 1, this is 2",
                  "made with plan none, this is sha256:0123456789ab"));
  now = then;
  now.device = "cuda";
  now.device_name = "GPU";
  EXPECT_THAT(cli::differences(then, now), ElementsAre("made with device cpu, this is cuda"));
  now = then;
  now.stowage = "0.2.0";
  now.deterministic = false;
  EXPECT_THAT(cli::differences(then, now), ElementsAre("made with stowage 0.1.0, this is 0.2.0",
                                                       "made with determinism on, this is off"));
  now = then;
  now.allocator = "expandable_segments:True";
  EXPECT_EQ(cli::differences(then, now).size(), 1U);
}

// By its name, not as two hashes: it is one option of the command.
TEST(Baseline, OfTheOtherMemoryIsNotComparable) {
  cli::MadeWith then = small_baseline().made_with;
  then.plan = "sha256:1";
  then.placement = "planned";
  cli::MadeWith now = then;
  now.placement = "caching";
  EXPECT_THAT(cli::differences(then, now),
              ElementsAre("made in planned memory, this is in the caching allocator's memory"));
  EXPECT_THAT(cli::differences(now, then),
              ElementsAre("made in the caching allocator's memory, this is in planned memory"));
  // A plain step is in neither.
  now.plan = now.placement = "";
  EXPECT_THAT(cli::differences(then, now), ElementsAre("made with plan sha256:1, this is none"));
}

TEST(BaselineJson, WithoutAPlacementItsPlanRanInTheCachingAllocatorsMemory) {
  Baseline baseline = small_baseline();
  baseline.made_with.plan = "sha256:1";
  std::string text = cli::baseline_to_json(baseline);
  const std::string key = ",\n    \"placement\": null";
  ASSERT_NE(text.find(key), std::string::npos) << text;
  text.erase(text.find(key), key.size());
  const auto read = cli::baseline_from_json(text, "b.json");
  ASSERT_TRUE(read.ok()) << read.error().text();
  EXPECT_EQ(read->made_with.placement, "caching");
}

// A CPU's kind and a GPU run's threads change no bytes.
TEST(Baseline, SaysWithWhatItWasMade) {
  stowage::Run run;
  run.threads = 2;
  Environment env;
  env.device = "cpu";
  env.device_name = "Some CPU";
  env.torch = "2.11.0";
  cli::MadeWith made = cli::made_with(run, env, "", "");
  EXPECT_EQ(made.device_name, "");
  EXPECT_EQ(made.threads, 2);
  EXPECT_EQ(made.stowage, kVersion);
  env.device = "cuda";
  env.device_name = "Some GPU";
  made = cli::made_with(run, env, "sha256:1", "planned");
  EXPECT_EQ(made.device_name, "Some GPU");
  EXPECT_EQ(made.threads, 0);
  EXPECT_EQ(made.plan, "sha256:1");
  EXPECT_EQ(made.placement, "planned");
}

TEST(Baseline, AModelFromAFileIsKnownByTheFilesName) {
  EXPECT_EQ(cli::portable_model("gpt2:layers=6"), "gpt2:layers=6");
  EXPECT_EQ(cli::portable_model("plugin:libnet.so"), "plugin:libnet.so");
  EXPECT_EQ(cli::portable_model("plugin:/a/b/libnet.so"), "plugin:libnet.so");
  EXPECT_EQ(cli::portable_model("plugin:build/libnet.so:layers=2,data=/x/y"),
            "plugin:libnet.so:layers=2,data=/x/y");
  EXPECT_EQ(cli::portable_model("plugin:/a:b/libnet.so"), "plugin:libnet.so");
  EXPECT_EQ(cli::portable_model("script:../net.pt:shape=8x3"), "script:net.pt:shape=8x3");
}

TEST(DecisionsHash, IsOfWhatThePlanDecidesAlone) {
  simulator::Plan plan;
  plan.saved.emplace_back();
  plan.saved[0].site = "*";
  plan.saved[0].decision = simulator::Decision::offload;
  const std::string hash = cli::decisions_hash(plan);
  EXPECT_EQ(hash.rfind("sha256:", 0), 0U);
  simulator::Plan replanned = plan;
  replanned.target.fingerprint = "sha256:1";
  replanned.predicted.emplace().step = 5;
  replanned.lower_bound_step = 4;
  replanned.gap_ppm = 3;
  replanned.made_by.created = "2026-11-20T12:00:00Z";
  EXPECT_EQ(cli::decisions_hash(replanned), hash);
  replanned.placement = simulator::PlacementMode::planned;
  EXPECT_EQ(cli::decisions_hash(replanned), hash) << "the memory is told by its name";
  plan.saved[0].decision = simulator::Decision::keep;
  EXPECT_NE(cli::decisions_hash(plan), hash);
  plan.saved[0].decision = simulator::Decision::offload;
  plan.budget.device = 5;
  EXPECT_NE(cli::decisions_hash(plan), hash);
}

}  // namespace
}  // namespace stowage::cli_tests
