// Attribution steps as a user has them: recorded, planned, verified, written to a file.
#include <gtest/gtest.h>

#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <iterator>
#include <map>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "tests/cli/main_job.h"

namespace stowage {
namespace {

using cli_tests::expect_error;
using cli_tests::MainJob;
using cli_tests::Outcome;
using cli_tests::stowage;
using nlohmann::json;

constexpr const char* kAttributedMlp = "mlp:layers=4,width=64,hidden=256,loss=mean";
constexpr const char* kTwelveLayers =
    "vit:layers=12,width=32,heads=2,patch=8,image=32,classes=40,loss=mean";

std::string bytes_of_file(const std::string& file) {
  std::ifstream in(file, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), {}};
}

// Of a safetensors file: the header, and each tensor's numbers.
struct Attributions {
  json header;
  std::map<std::string, std::vector<float>> values;
};

Attributions read_attributions(const std::string& file) {
  const std::string bytes = bytes_of_file(file);
  std::uint64_t length = 0;
  std::memcpy(&length, bytes.data(), sizeof(length));
  Attributions read{json::parse(bytes.substr(8, length)), {}};
  EXPECT_EQ(length % 8, 0U);
  for (const auto& [name, tensor] : read.header.items()) {
    EXPECT_EQ(tensor.at("dtype"), "F32");
    const auto begin = tensor.at("data_offsets")[0].get<std::size_t>();
    const auto end = tensor.at("data_offsets")[1].get<std::size_t>();
    std::vector<float>& values = read.values[name];
    values.resize((end - begin) / sizeof(float));
    std::memcpy(values.data(), bytes.data() + 8 + length + begin, end - begin);
  }
  return read;
}

long peak_under(const MainJob& job, const std::string& policy) {
  const Outcome outcome = stowage({"simulate", job.trace, "--policy", policy, "--json"});
  EXPECT_EQ(outcome.code, 0) << outcome.err;
  return json::parse(outcome.out).at("peak_requested_bytes").get<long>();
}

// With A an activation and H the hidden layer's: of each layer but the first GELU saves its input
// (H); the weights' gradients are not asked for, so nothing else is saved. The peak is in backward
// of the last layer's GELU: parameters, the batch (A), four activations and one gradient that are
// held, three H that are saved, and the gradients of GELU's output and input.
TEST(Attribution, TakesUnderPolicyCaptumWhatArithmeticSays) {
  const MainJob job;
  job.profile(kAttributedMlp, "128", "none", {"--attribute", "layers.*"});
  constexpr long kParameters = 4L * 4 * (2 * 64 * 256 + 64 + 256);
  constexpr long kActivation = 4L * 128 * 64;
  constexpr long kHidden = 4L * 128 * 256;
  const long captum = peak_under(job, "captum");
  // The loss and its gradient are some bytes.
  EXPECT_LE(std::abs(captum - (kParameters + 6 * kActivation + 5 * kHidden)), 64);
  EXPECT_EQ(captum, peak_under(job, "resident"));
  job.make_plan({"--budget", "75%"});
  const json verified = job.verify_exactly();
  EXPECT_LE(verified.at("planned").at("peak_requested_bytes").get<long>(), captum * 3 / 4);
  // Of each step the loss, four attributions and 16 parameters.
  EXPECT_EQ(verified.at("compared_tensors"), 4 * (1 + 4 + 16));
  const Outcome said = stowage({"verify", "--plan", job.plan, "--steps", "2"});
  EXPECT_EQ(said.code, 0) << said.err;
  EXPECT_NE(said.out.find("loss, attributions, parameters and buffers of 2 steps"),
            std::string::npos)
      << said.out;
}

TEST(Attribution, OfTwelveLayersTakesHalfOfCaptumsPeak) {
  const MainJob job;
  job.profile(kTwelveLayers, "8", "none", {"--attribute", "layers.[0-11]"});
  const long captum = peak_under(job, "captum");
  job.make_plan({"--budget", std::to_string(captum / 2)});
  const json verified = job.verify_exactly();
  EXPECT_LE(verified.at("planned").at("peak_requested_bytes").get<long>(), captum / 2);
}

TEST(Attribution, IsTheSameUnderAnyPlan) {
  const MainJob job;
  job.profile(kTwelveLayers, "2", "none", {"--attribute", "layers.*.mlp+inputs:layers.3+head"});
  job.write_plan(R"("saved": [{"site": "*", "do": "offload"}])");
  EXPECT_GT(job.verify_exactly().at("planned").at("host_bytes").get<long>(), 0);
  // The plan's model may be named without its layers.
  const Outcome named = stowage({"verify", "--plan", job.plan, "--model", kTwelveLayers});
  EXPECT_EQ(named.code, 0) << named.err;
  // What is held in a layer that runs again is made again.
  job.write_plan(R"("recompute": [{"segment": "layers.*"}])");
  job.verify_exactly();
  job.write_plan(
      R"("recompute": [{"segment": "layers.[2-5].mlp"}], "saved": [{"site": "*", "do": "offload"}])");
  job.verify_exactly();
}

TEST(Attribution, IsWrittenWithAPlanAndWithout) {
  const MainJob job;
  const std::string plain = job.folder.file("plain.safetensors");
  const std::string planned = job.folder.file("planned.safetensors");
  const Outcome written =
      stowage({"attribute", kAttributedMlp, "--batch", "8", "--threads", "1", "--device", "cpu",
               "--layers", "layers.[1-2]+inputs:layers.2", "-o", plain, "--json"});
  ASSERT_EQ(written.code, 0) << written.err;
  const json said = json::parse(written.out);
  EXPECT_EQ(said.at("schema"), "stowage-attribute/1");
  ASSERT_EQ(said.at("layers").size(), 3U);
  EXPECT_EQ(said.at("layers")[0].at("name"), "layers.1");
  EXPECT_EQ(said.at("layers")[1].at("name"), "layers.2:input");
  EXPECT_EQ(said.at("layers")[2].at("shape"), json::parse("[8, 64]"));
  const Attributions values = read_attributions(plain);
  ASSERT_EQ(values.values.size(), 3U);
  // What a layer is given is what the one before it returned.
  EXPECT_EQ(values.values.at("layers.2:input"), values.values.at("layers.1"));
  EXPECT_NE(values.values.at("layers.2"), values.values.at("layers.1"));

  job.profile(kAttributedMlp, "8", "none", {"--attribute", "layers.[1-2]+inputs:layers.2"});
  job.write_plan(R"("saved": [{"site": "*", "do": "offload"}])");
  const Outcome again = stowage({"attribute", "--plan", job.plan, "-o", planned});
  ASSERT_EQ(again.code, 0) << again.err;
  EXPECT_NE(again.out.find("wrote " + planned), std::string::npos) << again.out;
  EXPECT_EQ(bytes_of_file(planned), bytes_of_file(plain));
}

// score = mean of the outputs, so the gradient of the last layer's is 1 / elements.
TEST(Attribution, OfAMeanIsItsShare) {
  const MainJob job;
  const std::string file = job.folder.file("a.safetensors");
  const Outcome written =
      stowage({"attribute", kAttributedMlp, "--batch", "8", "--threads", "1", "--device", "cpu",
               "--layers", "layers.3", "-o", file, "--json"});
  ASSERT_EQ(written.code, 0) << written.err;
  const Attributions read = read_attributions(file);
  double sum = 0;
  for (const float share : read.values.at("layers.3")) sum += share;
  EXPECT_NEAR(sum, json::parse(written.out).at("score").get<double>(), 1e-8);
}

TEST(Attribution, OnTwoDevicesIsOnePartBehindTheOther) {
  const MainJob job;
  job.profile(kAttributedMlp, "8", "none", {"--attribute", "layers.[2-3]"});
  job.write_plan(R"("saved": [{"site": "*", "do": "offload"}])");
  const std::string one = job.folder.file("one.safetensors");
  const std::string two = job.folder.file("two.safetensors");
  const std::string planned = job.folder.file("planned.safetensors");
  const std::vector<std::string> step = {
      "attribute", kAttributedMlp, "--batch",      "8", "--threads", "1", "--device",
      "cpu",       "--layers",     "layers.[2-3]", "-o"};
  const auto run = [](std::vector<std::string> args, const std::vector<std::string>& more) {
    args.insert(args.end(), more.begin(), more.end());
    return stowage(args);
  };
  ASSERT_EQ(run(step, {one}).code, 0);
  const Outcome outcome = run(step, {two, "--devices", "2", "--json"});
  ASSERT_EQ(outcome.code, 0) << outcome.err;
  const json said = json::parse(outcome.out);
  ASSERT_EQ(said.at("devices").size(), 2U);
  EXPECT_EQ(said.at("layers")[0].at("shape"), json::parse("[16, 64]"));
  const Attributions of_one = read_attributions(one);
  const Attributions of_two = read_attributions(two);
  for (const auto& [name, values] : of_one.values) {
    const std::vector<float>& both = of_two.values.at(name);
    ASSERT_EQ(both.size(), 2 * values.size());
    const auto half = both.begin() + static_cast<std::ptrdiff_t>(values.size());
    EXPECT_EQ(std::vector<float>(both.begin(), half), values) << name;
    EXPECT_NE(std::vector<float>(half, both.end()), values) << name;
  }
  // Each device's share of its own score.
  const std::vector<float>& last = of_two.values.at("layers.3");
  for (std::size_t device = 0; device < 2; ++device) {
    double sum = 0;
    for (std::size_t i = 0; i < last.size() / 2; ++i) sum += last[device * last.size() / 2 + i];
    EXPECT_NEAR(sum, said.at("devices")[device].at("score").get<double>(), 1e-8);
  }
  ASSERT_EQ(stowage({"attribute", "--plan", job.plan, "--devices", "2", "-o", planned}).code, 0);
  EXPECT_EQ(bytes_of_file(planned), bytes_of_file(two));
}

TEST(Attribution, RefusesWhatItIsNot) {
  const MainJob job;
  const auto attribute = [&](const std::vector<std::string>& more) {
    std::vector<std::string> args = {
        "attribute", kAttributedMlp, "--batch", "2",
        "--device",  "cpu",          "-o",      job.folder.file("none.safetensors")};
    args.insert(args.end(), more.begin(), more.end());
    return stowage(args);
  };
  expect_error(attribute({}), 2, {"no --layers"});
  expect_error(attribute({"--layers", "layer.*"}), 3, {"no layer", "'layer.*'"});
  expect_error(attribute({"--layers", "layers.0,layers.1"}), 2, {"a comma", "join patterns by +"});
  expect_error(attribute({"--layers", "layers.["}), 2, {"attribute=layers.["});
  expect_error(attribute({"--layers", "layers.*", "--optimizer", "sgd"}), 2, {"--optimizer sgd"});
  const auto profile = [&](const std::vector<std::string>& more) {
    std::vector<std::string> args = {"profile",  kAttributedMlp, "--batch", "2",
                                     "--device", "cpu",          "-o",      job.trace};
    args.insert(args.end(), more.begin(), more.end());
    return stowage(args);
  };
  expect_error(profile({"--attribute", "layers.*", "--micro-batches", "*=2"}), 2,
               {"--micro-batches with --attribute"});
  job.profile("mlp:layers=2,width=16", "2", "none");
  job.write_plan(R"("saved": [])");
  expect_error(
      stowage({"attribute", "--plan", job.plan, "-o", job.folder.file("none.safetensors")}), 2,
      {"a step that trains"});
  expect_error(stowage({"attribute", "--plan", "-", "--devices", "2", "-o",
                        job.folder.file("none.safetensors")}),
               2, {"--plan - with --devices 2"});
  // Said in numbers, not as something else.
  const Outcome captum = stowage({"simulate", job.trace, "--policy", "captum"});
  EXPECT_EQ(captum.code, 0) << captum.err;
  EXPECT_NE((captum.out + captum.err).find("attributes nothing"), std::string::npos)
      << captum.out << captum.err;
}

}  // namespace
}  // namespace stowage
