// verify --reference: runs without a plan that are kept in a file.
#include <gtest/gtest.h>

#include <fstream>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "tests/cli/process.h"

namespace stowage {
namespace {

using cli_tests::Outcome;
using cli_tests::TemporaryFolder;
using nlohmann::json;

// One recording with two plans.
class VerifyReference : public ::testing::Test {
 protected:
  TemporaryFolder folder;
  std::string trace = folder.file("t.json");
  std::string plan = folder.file("p.json");
  std::string other_plan = folder.file("q.json");
  std::string kept = folder.file("kept.json");

  void SetUp() override {
    ASSERT_EQ(cli_tests::stowage({"profile", "mlp:layers=3,width=32", "--batch", "64", "--threads",
                                  "1", "--device", "cpu", "--optimizer", "adamw", "-o", trace})
                  .code,
              0);
    ASSERT_EQ(
        cli_tests::stowage({"plan", trace, "--policy", "torchtune:min_bytes=1", "-o", plan}).code,
        0);
    ASSERT_EQ(cli_tests::stowage({"plan", trace, "--policy", "save_on_cpu", "-o", other_plan}).code,
              0);
  }

  Outcome verify(const std::string& of, const std::vector<std::string>& more = {}) const {
    std::vector<std::string> args = {"verify", "--plan", of, "--reference", kept};
    args.insert(args.end(), more.begin(), more.end());
    return cli_tests::stowage(args);
  }

  json verified(const std::string& of, const std::vector<std::string>& more = {}) const {
    std::vector<std::string> with_json = more;
    with_json.emplace_back("--json");
    const Outcome outcome = verify(of, with_json);
    EXPECT_EQ(outcome.code, 0) << outcome.err << outcome.out;
    return json::parse(outcome.out);
  }
};

TEST_F(VerifyReference, IsRunOnceForManyPlans) {
  const json first = verified(plan);
  EXPECT_EQ(first.at("reference").at("reused"), false);
  EXPECT_EQ(first.at("reference").at("file"), kept);
  EXPECT_EQ(first.at("compared_by_digest").get<int>() + 3, first.at("compared_tensors").get<int>());
  const std::string text = cli_tests::read_text(kept);

  const json second = verified(other_plan);
  EXPECT_EQ(second.at("reference").at("reused"), true);
  EXPECT_EQ(second.at("bitwise"), true);
  EXPECT_EQ(second.at("compared_tensors"), first.at("compared_tensors"));
  json reference = second.at("reference");
  reference["reused"] = false;
  EXPECT_EQ(reference, first.at("reference"));  // its times, too: nothing was run
  EXPECT_EQ(cli_tests::read_text(kept), text);

  const Outcome told = verify(plan);
  EXPECT_EQ(told.code, 0) << told.err;
  EXPECT_NE(told.out.find("kept in " + kept), std::string::npos) << told.out;
  EXPECT_NE(told.out.find("by 128-bit digests"), std::string::npos) << told.out;
}

TEST_F(VerifyReference, WithoutTheOptionValuesAreCompared) {
  const Outcome outcome = cli_tests::stowage({"verify", "--plan", plan, "--json"});
  ASSERT_EQ(outcome.code, 0) << outcome.err;
  const json result = json::parse(outcome.out);
  EXPECT_EQ(result.at("compared_by_digest"), 0);
  EXPECT_EQ(result.at("reference").at("reused"), false);
  EXPECT_TRUE(result.at("reference").at("file").is_null());
}

TEST_F(VerifyReference, OfAnotherStepIsRunAgain) {
  ASSERT_EQ(verified(plan).at("reference").at("reused"), false);
  const Outcome seed = verify(plan, {"--seed", "2", "--json"});
  ASSERT_EQ(seed.code, 0) << seed.err;
  EXPECT_EQ(json::parse(seed.out).at("reference").at("reused"), false);
  EXPECT_NE(seed.err.find("seed (1, now 2)"), std::string::npos) << seed.err;
  EXPECT_EQ(verified(plan, {"--seed", "2"}).at("reference").at("reused"), true);

  const Outcome steps = verify(plan, {"--seed", "2", "--steps", "2", "--json"});
  ASSERT_EQ(steps.code, 0) << steps.err;
  EXPECT_EQ(json::parse(steps.out).at("reference").at("reused"), false);
  EXPECT_NE(steps.err.find("compared steps (3, now 2)"), std::string::npos) << steps.err;
}

// The last byte of the file's dump belongs to the digest of the last parameter of the last step.
TEST_F(VerifyReference, APlannedRunThatDiffersFails) {
  ASSERT_EQ(verified(plan).at("reference").at("reused"), false);
  json file = json::parse(cli_tests::read_text(kept));
  std::string dump = file.at("dump").get<std::string>();
  dump.back() = dump.back() == '0' ? '1' : '0';
  file["dump"] = dump;
  std::ofstream(kept) << file.dump();

  const Outcome outcome = verify(plan, {"--json"});
  EXPECT_EQ(outcome.code, 1) << outcome.err;
  const json result = json::parse(outcome.out);
  EXPECT_EQ(result.at("passed"), false);
  EXPECT_EQ(result.at("bitwise"), false);
  EXPECT_EQ(result.at("differing_tensors"), 1);
  EXPECT_TRUE(result.at("max_abs_diff").is_null());
  EXPECT_EQ(result.at("first_difference").get<std::string>().rfind("step 2 optimizer state ", 0),
            0U)
      << result.at("first_difference");
  const Outcome text = verify(plan);
  EXPECT_EQ(text.code, 1);
  EXPECT_NE(text.out.find("by what their digests do not tell"), std::string::npos) << text.out;
}

// Of a version that did not compare all that is compared now: run and written again.
TEST_F(VerifyReference, OneWithoutOptimizerStateIsWrittenAgain) {
  ASSERT_EQ(verified(plan).at("reference").at("reused"), false);
  json file = json::parse(cli_tests::read_text(kept));
  file.at("run").at("facts").erase("compared");
  std::ofstream(kept) << file.dump();
  const json result = verified(plan);
  EXPECT_EQ(result.at("passed"), true);
  EXPECT_EQ(result.at("reference").at("reused"), false);
  EXPECT_EQ(verified(plan).at("reference").at("reused"), true);
}

TEST_F(VerifyReference, AFileOfAnotherKindIsRefused) {
  ASSERT_EQ(verified(plan).at("reference").at("reused"), false);
  const std::string whole = cli_tests::read_text(kept);
  json no_facts = json::parse(whole);
  no_facts.at("run").erase("facts");
  json cut_dump = json::parse(whole);
  const std::string dump = cut_dump.at("dump").get<std::string>();
  cut_dump["dump"] = dump.substr(0, dump.size() - 2);
  json no_hex = json::parse(whole);
  no_hex["dump"] = "xy" + dump.substr(2);
  json empty_dump = json::parse(whole);
  empty_dump["dump"] = "";
  for (const std::string& text :
       {std::string(), whole.substr(0, whole.size() / 2), cli_tests::read_text(plan),
        no_facts.dump(), cut_dump.dump(), no_hex.dump(), empty_dump.dump()}) {
    SCOPED_TRACE(text.substr(0, 100));
    std::ofstream(kept) << text;
    const Outcome outcome = verify(plan);
    EXPECT_EQ(outcome.code, 3) << outcome.err;
    EXPECT_EQ(outcome.err.rfind("stowage: error: " + kept, 0), 0U) << outcome.err;
    EXPECT_NE(outcome.err.find("delete the file"), std::string::npos) << outcome.err;
    EXPECT_EQ(cli_tests::count_lines(outcome.err), 1);
    EXPECT_EQ(cli_tests::read_text(kept), text);
  }
}

TEST_F(VerifyReference, WhatDoesNotGoTogether) {
  EXPECT_EQ(verify(plan, {"--rtol", "1e-5"}).code, 2);
  EXPECT_EQ(cli_tests::stowage({"verify", "--plan", plan, "--reference", "-"}).code, 2);
  EXPECT_EQ(cli_tests::stowage({"verify", "--plan", plan, "--reference", plan}).code, 2);
  const Outcome nowhere =
      cli_tests::stowage({"verify", "--plan", plan, "--reference", folder.file("no/such/r.json")});
  EXPECT_EQ(nowhere.code, 4) << nowhere.err;
}

}  // namespace
}  // namespace stowage
