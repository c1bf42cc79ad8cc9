// Values that a plan or a trace says of its step: what is wrong with them is that file's mistake.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <string>
#include <utility>
#include <vector>

#include "tests/cli/main_job.h"
#include "traces/file_io.h"

namespace stowage::cli_tests {
namespace {

using Json = nlohmann::json;

class RecordedValues : public ::testing::Test {
 protected:
  void SetUp() override {
    job_.profile("mlp:layers=2,width=32", "4", "none");
    job_.make_plan({"--budget", "90%"});
    plan_ = Json::parse(read_text(job_.plan));
  }
  // Whether its trace is there or the step is recorded again.
  std::string with(const std::string& key, const Json& value, bool has_trace) const {
    Json plan = plan_;
    if (!has_trace) {
      plan["for"].erase("trace_file");
      plan["for"].erase("trace");
    }
    plan["for"][key] = value;
    return job_.folder.write("bad.json", plan.dump());
  }

  MainJob job_;
  Json plan_;
};

TEST_F(RecordedValues, OfAPlanHaveTheirPointer) {
  const std::vector<std::pair<std::string, Json>> bad = {
      {"model", "nomodel"},    {"model", "mlp:layers=x"}, {"batch", 2'000'000'000'000},
      {"dtype", "fp99"},       {"autocast", "fp99"},      {"optimizer", "adamw:lr=x"},
      {"grad_scaler", "up=x"}, {"device", "tpu"},         {"threads", 5000}};
  for (const auto& [key, value] : bad) {
    SCOPED_TRACE(key);
    const std::string file = with(key, value, key == "dtype" || key == "model");
    const std::string where = file + ": /for/" + key + ": ";
    expect_error(stowage({"verify", "--plan", file, "--quiet"}), 3, {where});
    if (key != "dtype" && key != "batch") continue;
    // Another option changes nothing of it.
    expect_error(stowage({"execute", "--plan", file, "--quiet", "--seed", "2", "--seq", "8"}), 3,
                 {where});
    expect_error(stowage({"check", "--plan", file, "--quiet", "--budget", "1GB", "--seed", "2"}), 3,
                 {where});
  }
}

TEST_F(RecordedValues, OfThePlansTraceHaveTheirPointer) {
  Json trace = Json::parse(*read_file(job_.trace));
  trace["run"]["dtype"] = "fp99";
  const std::string file = job_.folder.write("bad.trace.json", trace.dump());
  expect_error(stowage({"verify", "--plan", job_.plan, "--trace", file, "--quiet"}), 3,
               {file + ": /run/dtype: unknown dtype 'fp99'"});
  trace["run"]["dtype"] = "fp32";
  trace["run"]["model"] = "python:train.py:step";
  job_.folder.write("bad.trace.json", trace.dump());
  expect_error(stowage({"execute", "--plan", job_.plan, "--trace", file, "--quiet"}), 3,
               {file + ": /run/model: "});
}

TEST_F(RecordedValues, OfTheCommandLineAreUsageErrors) {
  expect_error(stowage({"verify", "--plan", job_.plan, "--optimizer", "adamw:lr=x"}), 2, {"lr=x"});
  expect_error(stowage({"verify", "--plan", job_.plan, "--dtype", "fp99"}), 2,
               {"--dtype fp99 contradicts the recorded step (fp32)"});
}

}  // namespace
}  // namespace stowage::cli_tests
