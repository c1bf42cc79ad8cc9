// The main job as a user runs it, with the real commands: profile, plan, verify. For tests whose
// commands include stowage-torch.
#pragma once

#include <gtest/gtest.h>

#include <fstream>
#include <nlohmann/json.hpp>
#include <stdexcept>
#include <string>
#include <vector>

#include "tests/cli/process.h"

namespace stowage::cli_tests {

// Exit code `code` and one line on stderr with all of `words` in it; one more where an older file
// lies where the answer should have gone.
inline void expect_error(const Outcome& outcome, int code, const std::vector<std::string>& words) {
  SCOPED_TRACE(outcome.err + outcome.out);
  EXPECT_EQ(outcome.code, code);
  EXPECT_EQ(outcome.err.rfind("stowage: error: ", 0), 0U);
  const bool stays = outcome.err.find(" is as it was before: nothing was") != std::string::npos;
  EXPECT_EQ(count_lines(outcome.err), stays ? 2 : 1);
  for (const std::string& word : words) {
    EXPECT_NE(outcome.err.find(word), std::string::npos) << word;
  }
}

// One model on the CPU device with one thread; trace and plan in a folder of their own.
struct MainJob {
  TemporaryFolder folder;
  std::string trace = folder.file("t.json.gz");
  std::string plan = folder.file("p.json");

  // What `profile` says. Fails the test when it fails. No batch: the model's.
  nlohmann::json profile(const std::string& model, const std::string& batch,
                         const std::string& optimizer,
                         const std::vector<std::string>& more = {}) const {
    std::vector<std::string> args = {"profile",  model, "--optimizer", optimizer, "--threads", "1",
                                     "--device", "cpu", "-o",          trace,     "--json"};
    if (!batch.empty()) args.insert(args.end(), {"--batch", batch});
    args.insert(args.end(), more.begin(), more.end());
    const Outcome outcome = stowage(args);
    EXPECT_EQ(outcome.code, 0) << outcome.err;
    if (outcome.code != 0) return {};
    nlohmann::json result = nlohmann::json::parse(outcome.out);
    EXPECT_EQ(result.at("schema"), "stowage-profile/1");
    EXPECT_EQ(result.at("passes").at("clean").at("peak_requested_bytes"),
              result.at("passes").at("structure").at("peak_requested_bytes"));
    return result;
  }

  void make_plan(const std::vector<std::string>& options) const {
    std::vector<std::string> args = {"plan", trace, "-o", plan};
    args.insert(args.end(), options.begin(), options.end());
    const Outcome outcome = stowage(args);
    ASSERT_EQ(outcome.code, 0) << outcome.err;
  }

  // A plan by hand for the trace: `rest` is what it says besides, from its first key on.
  void write_plan(const std::string& rest) const {
    std::ofstream(plan) << R"({ "schema": "stowage-plan/1", "for": { "trace_file": ")" << trace
                        << R"(" }, )" << rest << " }";
  }

  // What `verify` says of four steps: bitwise, the peak as predicted to the byte, nothing stored
  // beside the plan, and in planned memory nothing that was not foreseen.
  nlohmann::json verify_exactly(const std::vector<std::string>& more = {}) const {
    std::vector<std::string> args = {"verify", "--plan", plan, "--steps", "4", "--json"};
    args.insert(args.end(), more.begin(), more.end());
    const Outcome verified = stowage(args);
    EXPECT_EQ(verified.code, 0) << verified.err << verified.out;
    if (verified.code != 0) throw std::runtime_error(verified.err);
    nlohmann::json result = nlohmann::json::parse(verified.out);
    EXPECT_TRUE(result.at("bitwise").get<bool>());
    const nlohmann::json& planned = result.at("planned");
    EXPECT_EQ(planned.at("peak_requested_bytes"),
              result.at("predicted").at("peak_requested_bytes"));
    EXPECT_EQ(planned.at("unplanned_stored_bytes"), 0);
    if (const nlohmann::json& memory = planned.at("planned_memory"); memory.is_object()) {
      EXPECT_EQ(memory.at("unforeseen"), 0) << memory;
      EXPECT_EQ(memory.at("conflicts"), 0) << memory;
    }
    return result;
  }

  // The lowest peak of any plan, in bytes: that of an answer which says that a byte is not enough.
  [[nodiscard]] long floor() const {
    const Outcome outcome = stowage({"plan", trace, "--budget", "1", "--json"});
    EXPECT_EQ(outcome.code, 1) << outcome.err;
    if (outcome.code != 1) return 0;
    return nlohmann::json::parse(outcome.out).at("floor").at("bytes").get<long>();
  }
  // A plan for the floor and 5 %.
  void make_plan_near_the_floor() const {
    const double budget = 1.05 * static_cast<double>(floor());
    make_plan({"--budget", std::to_string(static_cast<long>(budget))});
  }

  // Bitwise, and the peak as predicted to the byte. `moves`: the plan takes something away.
  void verify(bool moves) const {
    const Outcome outcome = stowage({"verify", "--plan", plan, "--json"});
    ASSERT_EQ(outcome.code, 0) << outcome.err << outcome.out;
    const auto result = nlohmann::json::parse(outcome.out);
    EXPECT_EQ(result.at("schema"), "stowage-verify/1");
    EXPECT_EQ(result.at("passed"), true);
    EXPECT_EQ(result.at("bitwise"), true);
    EXPECT_EQ(result.at("max_abs_diff"), 0.0);
    EXPECT_GT(result.at("compared_tensors").get<int>(), 10);
    EXPECT_EQ(result.at("reference").at("repeatable"), true);
    EXPECT_EQ(result.at("planned").at("peak_requested_bytes"),
              result.at("predicted").at("peak_requested_bytes"));
    EXPECT_EQ(result.at("error").at("peak_requested_bytes"), 0);
    EXPECT_TRUE(result.at("planned").at("peak_reserved_bytes").is_null());
    EXPECT_EQ(result.at("planned").at("losses"), result.at("reference").at("losses"));
    EXPECT_EQ(result.at("planned").at("host_bytes").get<long>() > 0, moves);
  }
};

}  // namespace stowage::cli_tests
