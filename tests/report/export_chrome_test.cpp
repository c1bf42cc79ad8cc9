// Chrome traces: what Perfetto asks of them, on every sample, on random plans, on odd names.
#include "report/export_chrome_json.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <nlohmann/json.hpp>
#include <set>

#include "tests/report/odd_names.h"

namespace stowage::report_tests {
namespace {

using Json = nlohmann::json;

// Nanoseconds again.
std::int64_t ns(const Json& micro) {
  return static_cast<std::int64_t>(micro.get<double>() * 1000 + 0.5);
}

std::pair<int, int> thread_of(const Json& event) {
  return {event.at("pid").get<int>(), event.at("tid").get<int>()};
}

// Slices of one thread nest; counters and flows are whole.
void check_chrome(const Json& json) {
  std::map<std::pair<int, int>, std::vector<std::int64_t>> open;
  std::map<std::int64_t, std::int64_t> flows;  // id -> time of the start
  std::set<std::pair<int, int>> named;
  std::set<std::pair<int, int>> used;
  for (const Json& event : json.at("traceEvents")) {
    const auto phase = event.at("ph").get<std::string>();
    if (phase == "M") {
      if (event.at("name") == "thread_name") named.insert(thread_of(event));
      continue;
    }
    ASSERT_GE(event.at("ts").get<double>(), 0);
    if (phase == "X") {
      const std::pair<int, int> thread = thread_of(event);
      used.insert(thread);
      const std::int64_t begin = ns(event.at("ts"));
      const std::int64_t end = begin + ns(event.at("dur"));
      ASSERT_GE(end, begin);
      auto& ends = open[thread];
      while (!ends.empty() && ends.back() <= begin) ends.pop_back();
      ASSERT_TRUE(ends.empty() || end <= ends.back()) << event.dump();
      ends.push_back(end);
    } else if (phase == "s") {
      ASSERT_TRUE(flows.emplace(event.at("id").get<std::int64_t>(), ns(event.at("ts"))).second);
    } else if (phase == "f") {
      const auto start = flows.find(event.at("id").get<std::int64_t>());
      ASSERT_NE(start, flows.end());
      ASSERT_LE(start->second, ns(event.at("ts")));
      ASSERT_EQ(event.at("bp"), "e");
    } else {
      ASSERT_EQ(phase, "C");
      for (const auto& [name, value] : event.at("args").items()) {
        ASSERT_GE(value.get<std::int64_t>(), 0) << name;
      }
    }
  }
  EXPECT_EQ(named, used);
}

TEST(ExportChrome, OddNamesStayNames) {
  const Trace trace = odd_trace();
  const simulator::StepIndex index(trace);
  simulator::Plan plan;
  const report::Simulation simulation = simulated(index, plan);
  const report::StepView recorded = report::recorded_step(trace);
  const report::StepView planned = report::planned_step(trace, simulation, plan, odd_name());
  const Json json = Json::parse(report::export_chrome({&recorded, &planned}));
  check_chrome(json);
  // 1000 B out and back: a copy each way, one arrow, one stall of 1000 ns with its reasons.
  int arrows = 0;
  int stalls = 0;
  int ops = 0;
  std::int64_t most = 0;
  for (const Json& event : json["traceEvents"]) {
    arrows += event["ph"] == "f";
    if (event["ph"] == "X" && event["cat"] == "stall") {
      ++stalls;
      EXPECT_EQ(ns(event["dur"]), 1000);
      EXPECT_FALSE(event["args"]["because"].get<std::string>().empty());
      EXPECT_FALSE(event["args"]["would remove it"].empty());
    }
    if (event["ph"] == "X" && event["cat"] == "op") {
      ++ops;
      EXPECT_THAT(event["name"].get<std::string>(), ::testing::HasSubstr("\r\nsecond line"));
    }
    if (event["ph"] == "C" && event["name"] == "memory (bytes)" && event["pid"] == 2) {
      most = std::max(most, event["args"]["requested"].get<std::int64_t>());
    }
  }
  EXPECT_EQ(arrows, 1);
  EXPECT_EQ(stalls, 1);
  EXPECT_EQ(ops, 4);  // two in each step
  EXPECT_EQ(most, simulation.result.peak_requested);
}

TEST(ExportChrome, IsWholeOnRandomPlans) {
  int arrows = 0;
  for (std::uint64_t seed = 0; seed < 80; ++seed) {
    SCOPED_TRACE(seed);
    const RandomCase c(seed);
    report::Simulation simulation;
    simulation.schedule = c.schedule;
    simulation.result = c.result;
    simulation.detail = c.detail;
    simulation.stalls = report::explain_stalls(c.index, c.schedule, c.result, c.detail);
    const report::StepView step =
        report::planned_step(c.trace, simulation, simulator::Plan{}, "random");
    const Json json = Json::parse(report::export_chrome({&step}));
    check_chrome(json);
    for (const Json& event : json["traceEvents"]) arrows += event["ph"] == "s";
  }
  EXPECT_GT(arrows, 50);
}

}  // namespace
}  // namespace stowage::report_tests
