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

std::unique_ptr<cli::Session> new_session(const std::string& spec, const std::string& optimizer,
                                          const std::string& autocast = {}) {
  cli::RunFlags flags;
  flags.device = testing::test_device_name();
  flags.batch = 4;
  flags.optimizer = optimizer;
  if (!autocast.empty()) flags.autocast = autocast;
  flags.threads = 1;
  cli::CommandFiles files;
  return or_throw(cli::Session::create(or_throw(cli::make_request(spec, flags, files))));
}

// `limit` < 0: with everything kept.
Trained trained(const std::string& spec, const std::string& optimizer, Bytes limit) {
  const std::unique_ptr<cli::Session> session = new_session(spec, optimizer);
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

Bytes bytes_of(const std::vector<NamedTensor>& tensors) {
  Bytes bytes = 0;
  for (const NamedTensor& each : tensors) bytes += static_cast<Bytes>(each.tensor.nbytes());
  return bytes;
}

struct Held {
  bool state_stays;
  Bytes parameters;
  Bytes state;  // and parameters
};

Held held_within(Bytes limit, const std::string& optimizer, const std::string& autocast) {
  const std::unique_ptr<cli::Session> session =
      new_session("mlp:layers=3,width=64", optimizer, autocast);
  const std::unique_ptr<OffloadedSteps> steps =
      or_throw(OffloadedSteps::create(session->device(), session->functions(), limit));
  const std::vector<NamedTensor> parameters = session->step().parameters();
  const std::vector<NamedTensor> state = session->step().optimizer_state();
  EXPECT_FALSE(state.empty());
  EXPECT_TRUE(steps->values(state).empty()) << "no step has made it";
  const std::vector<NamedTensor> values = steps->values(parameters);
  EXPECT_EQ(values.size(), parameters.size());
  return {values.front().tensor.is_same(parameters.front().tensor), bytes_of(parameters),
          bytes_of(parameters) + bytes_of(state)};
}

// Half of such a limit is for ops.
TEST(OffloadedSteps, ModelStateStaysWhereAllOfItFitsBesideOps) {
  struct Case {
    std::string optimizer;
    std::string autocast;
    Bytes halves;  // of the parameters' bytes, which come in the step
  };
  for (const Case& each :
       {Case{"adamw:update=backward", "", 0}, Case{"adamw:master=fp32,update=backward", "", 0},
        Case{"adamw", "", 2}, Case{"adamw:update=backward", "bf16", 1}, Case{"adamw", "bf16", 3}}) {
    SCOPED_TRACE(each.optimizer + " " + each.autocast);
    const Held held = held_within(1, each.optimizer, each.autocast);
    EXPECT_FALSE(held.state_stays);
    const Bytes needed = held.state + each.halves * held.parameters / 2;
    EXPECT_TRUE(held_within(2 * needed, each.optimizer, each.autocast).state_stays);
    EXPECT_FALSE(held_within(2 * needed - 2, each.optimizer, each.autocast).state_stays);
  }
}

}  // namespace
}  // namespace stowage
