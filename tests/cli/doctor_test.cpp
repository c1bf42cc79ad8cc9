#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <nlohmann/json.hpp>
#include <sstream>

#include "cli/doctor_json.h"
#include "cli/machine.h"
#include "cli/verbs.h"
#include "cli/verify_json.h"
#include "tests/cli/process.h"

namespace stowage::cli_tests {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

TEST(Machine, ReadsWhatProcSays) {
  const TemporaryFolder proc;
  std::filesystem::create_directories(proc.file("driver/nvidia/gpus/0000:01:00.0"));
  std::filesystem::create_directories(proc.file("driver/nvidia/gpus/0000:02:00.0"));
  proc.write("cpuinfo", "processor\t: 0\nmodel name\t: A CPU @ 2 GHz\n");
  proc.write("meminfo", "MemTotal:       16384 kB\nMemAvailable:    8192 kB\n");
  proc.write("driver/nvidia/version",
             "NVRM version: NVIDIA UNIX x86_64 Kernel Module  535.104.05  Sat Aug 19 2023\n");
  proc.write("driver/nvidia/gpus/0000:01:00.0/information", "Model: \t\t NVIDIA H200\nIRQ: 1\n");
  const cli::Machine machine = cli::look_at_machine(proc.path());
  EXPECT_EQ(machine.cpu, "A CPU @ 2 GHz");
  EXPECT_EQ(machine.memory, 16384 * 1024);
  EXPECT_EQ(machine.memory_available, 8192 * 1024);
  EXPECT_TRUE(machine.nvidia_driver);
  EXPECT_EQ(machine.driver_version, "535.104.05");
  EXPECT_THAT(machine.gpus, ElementsAre("NVIDIA H200", "0000:02:00.0"));
}

TEST(Machine, NothingThereIsNotAnError) {
  const cli::Machine machine = cli::look_at_machine("/nowhere");
  EXPECT_EQ(machine.cpu, "");
  EXPECT_EQ(machine.memory, 0);
  EXPECT_FALSE(machine.nvidia_driver);
  EXPECT_TRUE(machine.gpus.empty());
}

TEST(Doctor, SaysWhatWorksAndHowToGetTheRest) {
  std::ostringstream out;
  std::ostringstream err;
  ASSERT_EQ(cli::verb_doctor({}, out, err), 0) << err.str();
  EXPECT_THAT(out.str(), HasSubstr("inspect, simulate, plan"));
  EXPECT_THAT(out.str(), HasSubstr("profile, execute, verify on the CPU"));
  std::ostringstream json_out;
  ASSERT_EQ(cli::verb_doctor({"--json"}, json_out, err), 0);
  const auto json = nlohmann::json::parse(json_out.str());
  EXPECT_EQ(json["schema"], "stowage-doctor/1");
  for (const char* key : {"features", "devices", "libtorch", "cupti", "link"}) {
    EXPECT_TRUE(json.contains(key)) << key;
  }
}

TEST(Doctor, TakesOverWhatTheTorchPartSays) {
  const cli::TorchFacts facts = cli::read_torch_facts(
      R"({"features": {"cuda": true}, "libtorch": {"version": "2.11.0"},
          "cupti": {"available": false}, "devices": [{"kind": "cpu"}], "link": {"h2d": 1}})");
  EXPECT_TRUE(facts.answered);
  EXPECT_EQ(cli::read_torch_facts(R"({"libtorch": "2.12"})").version, "2.12");
  EXPECT_EQ(facts.version, "2.11.0");
  EXPECT_EQ(facts.cuda_built, true);
  EXPECT_EQ(facts.cupti, false);
  cli::Doctor doctor;
  doctor.torch = facts;
  const auto json = nlohmann::json::parse(cli::doctor_json(doctor));
  EXPECT_EQ(json["devices"][0]["kind"], "cpu");
  EXPECT_EQ(json["link"]["h2d"], 1);
}

TEST(Doctor, AnyAnswerIsTaken) {
  for (const char* text : {"", "nonsense", "[1]", "{\"libtorch\": 5}", "{\"cupti\": \"x\"}"}) {
    const cli::TorchFacts facts = cli::read_torch_facts(text);
    EXPECT_EQ(facts.version, "") << text;
    EXPECT_FALSE(facts.cupti.has_value()) << text;
  }
}

constexpr const char* kVerify = R"({"schema": "stowage-verify/1", "passed": true, "bitwise": true,
  "max_abs_diff": 0.0, "steps": 3,
  "reference": {"kind": "resident", "repeatable": true, "peak_requested_bytes": 100, "step_ns": 10},
  "planned": {"peak_requested_bytes": 60, "peak_active_bytes": 60, "peak_reserved_bytes": null,
              "step_ns": 11, "stall_ns": 1, "host_bytes": 40, "losses": [1.5]},
  "predicted": {"peak_requested_bytes": 60, "step_ns": 12, "stall_ns": 0, "host_bytes": 40}})";

TEST(VerifyJson, IsRead) {
  const auto facts = cli::read_verify(kVerify, "v.json");
  ASSERT_TRUE(facts.ok()) << facts.error().text();
  EXPECT_TRUE(facts->bitwise);
  EXPECT_EQ(facts->steps, 3);
  EXPECT_EQ(facts->reference_peak, 100);
  EXPECT_EQ(facts->measured_peak, 60);
  EXPECT_FALSE(facts->measured_reserved.has_value());
  EXPECT_EQ(facts->predicted_step, 12);
}

// Its figures are not those of the step without a plan.
TEST(VerifyJson, AReferenceWithEverythingOffloadedHasNoFigures) {
  std::string text = kVerify;
  const std::string resident = R"("kind": "resident")";
  text.replace(text.find(resident), resident.size(), R"("kind": "offload_all")");
  const auto facts = cli::read_verify(text, "v.json");
  ASSERT_TRUE(facts.ok()) << facts.error().text();
  EXPECT_EQ(facts->reference_kind, "offload_all");
  EXPECT_FALSE(facts->reference_peak.has_value());
  EXPECT_FALSE(facts->reference_step.has_value());
}

TEST(VerifyJson, BadInputNamesThePlace) {
  const auto error = [](const std::string& text) {
    const auto facts = cli::read_verify(text, "v.json");
    EXPECT_FALSE(facts.ok());
    return facts.ok() ? std::string() : facts.error().text();
  };
  EXPECT_THAT(error("{"), HasSubstr("v.json: not JSON"));
  EXPECT_THAT(error(std::string(200000, '[')),
              HasSubstr("is nested more than 32 levels deep, at byte 32"));
  EXPECT_THAT(error(R"({"schema": "other/1"})"), HasSubstr("/schema: the schema is 'other/1'"));
  EXPECT_THAT(error(R"({"schema": "stowage-verify/1"})"), HasSubstr("/passed: is missing"));
  EXPECT_THAT(error(R"({"schema": "stowage-verify/1", "passed": 1, "bitwise": true})"),
              HasSubstr("/passed: is of the wrong kind"));
  EXPECT_THAT(error(R"({"schema": "stowage-verify/1", "passed": true, "bitwise": true,
                        "planned": {"step_ns": "x"}})"),
              HasSubstr("/planned/step_ns"));
}

}  // namespace
}  // namespace stowage::cli_tests
