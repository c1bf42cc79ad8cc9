// Steps with everything offloaded train as those with everything kept.
#include "profiler/torch/offloaded_steps.h"

#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "cli/torch/session.h"
#include "tests/profiler_torch/test_device.h"
#include "tests/support/or_throw.h"

namespace stowage {
namespace {

using executor::NamedTensor;
using profiler::OffloadedSteps;
using testing::or_throw;

// What a training run leaves behind, by name.
struct Trained {
  std::vector<double> losses;
  std::vector<std::pair<std::string, std::vector<char>>> tensors;
  bool operator==(const Trained&) const = default;
};

constexpr int kTrainedSteps = 3;

std::vector<char> bytes_of(executor::Device& device, const at::Tensor& tensor) {
  if (!tensor.is_cpu()) return testing::fetch(device, tensor);
  const auto* const begin = static_cast<const char*>(tensor.const_data_ptr());
  return {begin, begin + tensor.nbytes()};
}

// `limit` < 0: with everything kept.
Trained trained(const std::string& spec, const std::string& optimizer, Bytes limit) {
  cli::RunFlags flags;
  flags.device = testing::test_device_name();
  flags.batch = 4;
  flags.optimizer = optimizer;
  flags.threads = 1;
  cli::CommandFiles files;
  const std::unique_ptr<cli::Session> session =
      or_throw(cli::Session::create(or_throw(cli::make_request(spec, flags, files))));
  std::unique_ptr<OffloadedSteps> steps;
  if (limit >= 0) {
    steps = or_throw(OffloadedSteps::create(session->device(), session->functions(), limit));
  }
  Trained result;
  for (int k = 0; k < kTrainedSteps; ++k) {
    session->step().prepare(k);
    if (steps) or_throw(steps->step());
    result.losses.push_back(steps ? session->last_loss() : session->step().step());
  }
  for (const auto& all : {session->step().parameters(), session->step().optimizer_state()}) {
    for (const NamedTensor& each : steps ? steps->values(all) : all) {
      result.tensors.emplace_back(each.name, bytes_of(session->device(), each.tensor));
    }
  }
  return result;
}

void expect_the_same(const std::string& spec, const std::string& optimizer) {
  SCOPED_TRACE(spec + " " + optimizer);
  const Trained kept = trained(spec, optimizer, -1);
  // A limit that is asked for and set on no device: how much model state is there at a time. Within
  // twice the state all of it stays, as long as no gradients are kept, and saved tensors leave.
  Bytes state = 0;
  for (const auto& [name, bytes] : kept.tensors) state += static_cast<Bytes>(bytes.size());
  for (const Bytes limit : {Bytes{1}, Bytes{100'000}, 2 * state, Bytes{1} << 30}) {
    SCOPED_TRACE(limit);
    const Trained offloaded = trained(spec, optimizer, limit);
    EXPECT_EQ(offloaded.losses, kept.losses);
    EXPECT_TRUE(offloaded == kept);
  }
}

TEST(OffloadedSteps, TrainAsThoseWithEverythingKept) {
  for (const char* optimizer :
       {"none", "sgd", "adam", "adamw", "adam:master=fp32", "sgd:update=backward",
        "adamw:update=backward", "adamw:master=fp32,update=backward"}) {
    expect_the_same("mlp:layers=3,width=64", optimizer);
  }
}

TEST(OffloadedSteps, OfTransformersToo) {
  expect_the_same("gpt2:layers=2,width=32,seq=16,vocab=64,dropout=0.1", "adamw:update=backward");
  expect_the_same("llama3-8b:layers=2,width=128,heads=4,seq=16,vocab=64,loss=cross-entropy",
                  "adamw:master=fp32,update=backward");
  expect_the_same("llama3-8b:layers=2,width=128,heads=4,seq=16,vocab=64,dtype=bf16", "adam");
}

}  // namespace
}  // namespace stowage
