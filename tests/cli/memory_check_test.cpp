// The judgement of `check` on figures written by hand.
#include "cli/memory_check.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "cli/check_json.h"
#include "cli/check_text.h"
#include "tests/cli/golden.h"

namespace stowage::cli_tests {
namespace {

using cli::CaseOutcome;
using cli::CheckCase;
using cli::CheckInput;
using cli::CheckReport;
using report::PeakRow;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;

report::PeakRow row(const std::string& layer, const std::string& op, std::int64_t storages,
                    Bytes bytes, std::vector<std::string> sites = {}) {
  report::PeakRow result;
  result.storage_class = StorageClass::activation;
  result.layer = layer;
  result.op = op;
  result.sites = std::move(sites);
  result.storages = storages;
  result.bytes = bytes;
  return result;
}

cli::Baseline baseline_of(const cli::StepCost& cost) {
  cli::Baseline baseline;
  baseline.measured = cost;
  baseline.content.peak_requested = cost.peak_requested;
  baseline.content.op_name = "aten::mm";
  baseline.content.layer = "layers.1";
  baseline.content.phase = "backward";
  baseline.content.on_device = {row("layers.0", "aten::gelu", 1, 400'000, {"layers.0#1"}),
                                row("layers.1", "aten::gelu", 1, 400'000, {"layers.1#1"}),
                                row("layers.1", "aten::mm", 1, 200'000)};
  return baseline;
}

const cli::StepCost kCpu = {1'000'000, 1'000'000, -1, 500, 1000, 10'000};
const cli::StepCost kGpu = {1'000'000, 1'100'000, 2'000'000, 500, 100'000, 10'000'000};

CheckInput input_of(const cli::StepCost& then, const cli::StepCost& now) {
  CheckInput input;
  input.baseline = baseline_of(then);
  input.now = now;
  return input;
}

const CheckCase& find(const std::vector<CheckCase>& cases, const std::string& name) {
  for (const CheckCase& each : cases) {
    if (each.name == name) return each;
  }
  ADD_FAILURE() << "no case " << name;
  return cases.front();
}

std::vector<std::string> outcomes(const std::vector<CheckCase>& cases) {
  std::vector<std::string> lines;
  lines.reserve(cases.size());
  for (const CheckCase& each : cases) lines.push_back(each.name + " " + name_of(each.outcome));
  return lines;
}

TEST(MemoryCheck, TheSameFiguresPass) {
  const auto cases = cli::cases_of(input_of(kGpu, kGpu));
  EXPECT_THAT(outcomes(cases),
              ElementsAre("baseline passed", "peak_requested passed", "peak_active passed",
                          "peak_reserved passed", "host_bytes passed", "stall passed"));
  EXPECT_TRUE(cli::all_passed(cases));
  for (const CheckCase& each : cases) EXPECT_FALSE(each.can_be_lowered) << each.name;
}

TEST(MemoryCheck, OnTheCpuDeviceOtherCountersAreSkippedAndSayWhy) {
  CheckInput input = input_of(kCpu, kCpu);
  input.stall_not_judged = "the copy threads compete with compute";
  const auto cases = cli::cases_of(input);
  EXPECT_THAT(outcomes(cases),
              ElementsAre("baseline passed", "peak_requested passed", "peak_active skipped",
                          "peak_reserved skipped", "host_bytes passed", "stall skipped"));
  EXPECT_THAT(find(cases, "stall").message, HasSubstr("compete"));
  EXPECT_THAT(find(cases, "peak_reserved").message, HasSubstr("no such counter"));
}

// Where it hangs on the driver's addresses reserved is told and not judged; the others are.
TEST(MemoryCheck, ReservedIsToldWhereItIsNotJudged) {
  cli::StepCost now = kGpu;
  now.peak_reserved += now.peak_reserved / 2;
  EXPECT_EQ(find(cli::cases_of(input_of(kGpu, now)), "peak_reserved").outcome, CaseOutcome::failed);
  CheckInput input = input_of(kGpu, now);
  input.reserved_not_judged = "parameters stream";
  const auto cases = cli::cases_of(input);
  EXPECT_EQ(find(cases, "peak_reserved").outcome, CaseOutcome::skipped);
  EXPECT_THAT(find(cases, "peak_reserved").message, HasSubstr("parameters stream"));
  EXPECT_TRUE(cli::all_passed(cases));
  input.budget = kGpu.peak_reserved;
  input.budget_on = simulator::PeakKind::reserved;
  EXPECT_FALSE(cli::all_passed(cli::cases_of(input)));
}

// Requested and host bytes repeat to the byte; the allocator's may differ by 1 %.
TEST(MemoryCheck, OneByteMoreFailsWhereBytesAreExact) {
  cli::StepCost now = kGpu;
  now.peak_requested += 1;
  now.peak_active += 11'000;    // 1 % of 1,100,000
  now.peak_reserved += 20'001;  // and a byte
  now.host_bytes += 1;
  const auto cases = cli::cases_of(input_of(kGpu, now));
  EXPECT_THAT(outcomes(cases),
              ElementsAre("baseline passed", "peak_requested failed", "peak_active passed",
                          "peak_reserved failed", "host_bytes failed", "stall passed"));
  EXPECT_THAT(find(cases, "peak_requested").message, HasSubstr("1 bytes more than the baseline's"));
  EXPECT_EQ(find(cases, "peak_reserved").limit, 2'020'000);
  EXPECT_FALSE(cli::all_passed(cases));
}

TEST(MemoryCheck, TheToleranceIsAShareOfTheBaseline) {
  cli::StepCost now = kGpu;
  now.peak_requested = 1'010'000;
  CheckInput input = input_of(kGpu, now);
  input.tolerances.exact = *cli::parse_share("--tolerance", "1%");
  EXPECT_TRUE(cli::all_passed(cli::cases_of(input)));
  input.now.peak_requested += 1;
  EXPECT_FALSE(cli::all_passed(cli::cases_of(input)));
}

TEST(MemoryCheck, LessPassesAndSaysThatTheBaselineCanBeLowered) {
  cli::StepCost now = kGpu;
  now.peak_requested -= 1;
  now.peak_active -= 5'000;     // within 1 %
  now.peak_reserved -= 50'000;  // beyond it
  const auto cases = cli::cases_of(input_of(kGpu, now));
  EXPECT_TRUE(cli::all_passed(cases));
  EXPECT_TRUE(find(cases, "peak_requested").can_be_lowered);
  EXPECT_FALSE(find(cases, "peak_active").can_be_lowered);
  EXPECT_TRUE(find(cases, "peak_reserved").can_be_lowered);
  EXPECT_THAT(find(cases, "peak_requested").message, HasSubstr("--update-baseline"));
}

// 2 % of a step of 10 ms are 200 us: 300 us pass, a nanosecond more does not.
TEST(MemoryCheck, TheStallIsJudgedAgainstTheStep) {
  cli::StepCost now = kGpu;
  now.stall_ns = 300'000;
  EXPECT_TRUE(cli::all_passed(cli::cases_of(input_of(kGpu, now))));
  now.stall_ns += 1;
  const auto cases = cli::cases_of(input_of(kGpu, now));
  EXPECT_EQ(find(cases, "stall").outcome, CaseOutcome::failed);
  EXPECT_EQ(find(cases, "stall").limit, 300'000);
  CheckInput untimed = input_of(kGpu, now);
  untimed.baseline->measured.stall_ns = -1;
  untimed.baseline->measured.step_ns = -1;
  EXPECT_EQ(find(cli::cases_of(untimed), "stall").outcome, CaseOutcome::skipped);
}

TEST(MemoryCheck, AnIncomparableBaselineIsNoSilentPass) {
  CheckInput input = input_of(kGpu, kGpu);
  input.incomparable = {"made with LibTorch 2.10.0, this is 2.11.0", "made with stowage a, .."};
  const auto cases = cli::cases_of(input);
  EXPECT_THAT(outcomes(cases),
              ElementsAre("baseline failed", "peak_requested skipped", "peak_active skipped",
                          "peak_reserved skipped", "host_bytes skipped", "stall skipped"));
  EXPECT_THAT(cases[0].message, HasSubstr("not comparable: made with LibTorch 2.10.0"));
  EXPECT_THAT(cases[0].details, ElementsAre("made with stowage a, ..", HasSubstr("--update")));
}

TEST(MemoryCheck, TheBudgetIsOnTheCounterThatItNames) {
  CheckInput input;
  input.now = kGpu;
  input.budget = 1'500'000;
  for (const auto& [kind, passes] : {std::pair{simulator::PeakKind::requested, true},
                                     std::pair{simulator::PeakKind::active, true},
                                     std::pair{simulator::PeakKind::reserved, false}}) {
    input.budget_on = kind;
    const auto cases = cli::cases_of(input);
    ASSERT_EQ(cases.size(), 1U);
    EXPECT_EQ(cases[0].name, "budget");
    EXPECT_EQ(cases[0].outcome == CaseOutcome::passed, passes) << name_of(kind);
  }
  input.budget_on = simulator::PeakKind::active;
  input.budget = kGpu.peak_active;
  EXPECT_TRUE(cli::all_passed(cli::cases_of(input)));
  input.budget = kGpu.peak_active - 1;
  EXPECT_THAT(cli::cases_of(input)[0].message, HasSubstr("is 1 bytes above the budget"));
}

// One more activation in layers.1, whose sites moved up by one.
TEST(MemoryCheck, AFailureNamesTheStoragesThatGrewByLayerAndSite) {
  cli::StepCost now = kCpu;
  now.peak_requested = 1'300'000;
  const CheckInput input = input_of(kCpu, now);
  auto cases = cli::cases_of(input);
  report::PeakContent content = input.baseline->content;
  content.peak_requested = 1'300'000;
  content.on_device[1] = row("layers.1", "aten::gelu", 2, 700'000, {"layers.1#1", "layers.1#2"});
  cli::explain(cases, input.baseline, content);
  const CheckCase& failed = find(cases, "peak_requested");
  ASSERT_EQ(failed.grew.size(), 1U);
  EXPECT_EQ(failed.grew[0].row.layer, "layers.1");
  EXPECT_EQ(failed.grew[0].bytes(), 300'000);
  EXPECT_EQ(failed.grew[0].storages_before, 1);
  EXPECT_THAT(failed.details, ElementsAre());
  EXPECT_THAT(
      cli::detail_lines(failed),
      ElementsAre("grew:",
                  "layers.1: 300 kB more, activation made by aten::gelu, saved as "
                  "layers.1#1, layers.1#2 (700,000 bytes in 2 storages, was 400,000 in 1)"));

  content.layer = "layers.0";
  cases = cli::cases_of(input);
  cli::explain(cases, input.baseline, content);
  EXPECT_THAT(find(cases, "peak_requested").details,
              ElementsAre("the peak is now at aten::mm in layers.0, backward; it was at aten::mm "
                          "in layers.1, backward"));
}

TEST(MemoryCheck, HostBytesAreExplainedByWhatLiesOnTheHost) {
  cli::StepCost now = kCpu;
  now.host_bytes = 900;
  CheckInput input = input_of(kCpu, now);
  auto cases = cli::cases_of(input);
  report::PeakContent content = input.baseline->content;
  content.on_device[0].bytes *= 2;  // not what is asked about
  content.on_host = {row("layers.0", "aten::gelu", 1, 400, {"layers.0#1"})};
  content.on_host[0].holding = report::Holding::host;
  cli::explain(cases, input.baseline, content);
  const CheckCase& failed = find(cases, "host_bytes");
  ASSERT_EQ(failed.grew.size(), 1U);
  EXPECT_THAT(report::growth_text(failed.grew[0]), HasSubstr("on the host"));
}

TEST(MemoryCheck, ABudgetWithoutABaselineIsExplainedByTheLargest) {
  CheckInput input;
  input.now = kCpu;
  input.budget = 10;
  auto cases = cli::cases_of(input);
  cli::explain(cases, std::nullopt, baseline_of(kCpu).content);
  EXPECT_THAT(cases[0].details,
              ElementsAre("the largest at the peak:",
                          "layers.0: 400 kB in 1 storage, activation made by aten::gelu, saved as "
                          "layers.0#1",
                          HasSubstr("layers.1: 400 kB"), HasSubstr("layers.1: 200 kB")));
}

TEST(MemoryCheck, ALongListOfStoragesIsCut) {
  CheckCase failed;
  for (int i = 0; i < 100; ++i) {
    failed.grew.push_back({row("layers." + std::to_string(i), "aten::mm", 1, 10), 0, 0});
  }
  const auto lines = cli::detail_lines(failed);
  EXPECT_EQ(lines.size(), 41U);
  EXPECT_EQ(lines.back(), "and 61 more");
}

TEST(Growth, RowsAreMatchedByClassLayerOpAndHolding) {
  const std::vector<report::PeakRow> before = {row("a", "x", 1, 10), row("b", "x", 1, 10),
                                               row("c", "x", 1, 10)};
  std::vector<report::PeakRow> now = {row("a", "x", 1, 10, {"a#9"}), row("b", "x", 1, 5),
                                      row("b", "y", 1, 7), row("d", "x", 3, 30)};
  now.push_back(row("c", "x", 1, 10));
  now.back().holding = report::Holding::reloaded;
  std::vector<std::string> grew;
  for (const report::Growth& each : report::grown(before, now)) {
    grew.push_back(each.row.layer + " " + each.row.op + " " + std::to_string(each.bytes()));
  }
  EXPECT_THAT(grew, ElementsAre("d x 30", "c x 10", "b y 7"));
  EXPECT_TRUE(report::grown(before, before).empty());
}

TEST(ParseShare, ReadsSharesAndNothingElse) {
  EXPECT_EQ(*cli::parse_share("--t", "1%"), 10'000);
  EXPECT_EQ(*cli::parse_share("--t", "0.5%"), 5'000);
  EXPECT_EQ(*cli::parse_share("--t", "0"), 0);
  EXPECT_EQ(*cli::parse_share("--t", "0%"), 0);
  for (const char* text : {"", "1", "1.5", "-1%", "x%", "%", "2000%", "1%%", "nan%"}) {
    const auto share = cli::parse_share("--t", text);
    ASSERT_FALSE(share.ok()) << text;
    EXPECT_EQ(share.error().code, ErrorCode::usage);
  }
}

CheckReport failed_report() {
  cli::StepCost now = kCpu;
  now.peak_requested = 1'300'000;
  CheckInput input = input_of(kCpu, now);
  input.stall_not_judged = "nothing moves";
  input.budget = 2'000'000;
  CheckReport report;
  report.step = {"gpt2:layers=2", 4, 256, "fp32", "", "none", "", 1};
  report.made_with = {"0.1.0", "2.11.0", "cpu", "", "tracked", 1, true, ""};
  report.baseline_file = "gpt2.json";
  report.measured = now;
  report.cases = cli::cases_of(input);
  report::PeakContent content = input.baseline->content;
  content.on_device[1] = row("layers.1", "aten::gelu", 2, 700'000, {"layers.1#1", "layers.1#2"});
  cli::explain(report.cases, input.baseline, content);
  return report;
}

TEST(CheckReport, TextAndJunitAreAsTheyWere) {
  const CheckReport report = failed_report();
  expect_golden("check.txt", cli::check_text(report, report::Paint()));
  expect_golden("check.xml",
                cli::junit_xml(cli::check_suite(report, "2026-11-21T12:00:00", 1'234'567'890)));
}

TEST(CheckReport, JsonHasTheCasesAndWhatGrew) {
  const auto json = nlohmann::json::parse(cli::check_json(failed_report()));
  EXPECT_EQ(json["schema"], "stowage-check/1");
  EXPECT_EQ(json["passed"], false);
  EXPECT_EQ(json["model"], "gpt2:layers=2");
  ASSERT_EQ(json["cases"].size(), 7U);
  const auto& failed = json["cases"][1];
  EXPECT_EQ(failed["name"], "peak_requested");
  EXPECT_EQ(failed["outcome"], "failed");
  EXPECT_EQ(failed["measured"], 1'300'000);
  EXPECT_EQ(failed["limit"], 1'000'000);
  ASSERT_EQ(failed["grew"].size(), 1U);
  EXPECT_EQ(failed["grew"][0]["layer"], "layers.1");
  EXPECT_EQ(failed["grew"][0]["bytes_before"], 400'000);
  EXPECT_TRUE(json["measured"]["peak_reserved_bytes"].is_null());
  EXPECT_TRUE(json["files"]["plan"].is_null());
}

TEST(CheckReport, ANameReplacesTheModelInJunit) {
  CheckReport report = failed_report();
  EXPECT_EQ(cli::check_suite(report, "", 0).class_name, "gpt2:layers=2");
  report.name = "memory of gpt2";
  EXPECT_EQ(cli::check_suite(report, "", 0).class_name, "memory of gpt2");
  EXPECT_EQ(cli::check_suite(report, "", 0).name, "memory of gpt2");
}

}  // namespace
}  // namespace stowage::cli_tests
