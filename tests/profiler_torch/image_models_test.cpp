// Convolutions under a plan: what leaves in channels_last comes back in it, and every saved tensor
// of the image models belongs to a layer.
#include <ATen/record_function.h>
#include <gtest/gtest.h>

#include <map>
#include <string>
#include <vector>

#include "simulator/lowering/lowering.h"
#include "tests/profiler_torch/recorded_model.h"
#include "tests/profiler_torch/test_device.h"
#include "tests/profiler_torch/twin_sessions.h"
#include "tests/support/schedule_parts.h"

namespace stowage {
namespace {

using testing::TwinSessions;

constexpr const char* kImageResnet = "resnet50:blocks=1-1-1-1,width=8,image=32,classes=40";
constexpr const char* kImageVit = "vit:layers=2,width=32,heads=2,patch=8,image=32,classes=40";

// Sizes and strides of the tensors that the backward of convolutions and batch norms gets.
using Look = std::vector<std::int64_t>;
std::vector<Look> g_seen;

class BackwardWatch {
 public:
  BackwardWatch() {
    g_seen.clear();
    handle_ = at::addThreadLocalCallback(at::RecordFunctionCallback(&BackwardWatch::begin)
                                             .needsInputs(true)
                                             .scopes({at::RecordScope::FUNCTION}));
  }
  ~BackwardWatch() { at::removeCallback(handle_); }
  BackwardWatch(const BackwardWatch&) = delete;
  BackwardWatch& operator=(const BackwardWatch&) = delete;

 private:
  static std::unique_ptr<at::ObserverContext> begin(const at::RecordFunction& op) {
    const std::string name = op.name();
    if (name != "aten::convolution_backward" && name != "aten::native_batch_norm_backward") {
      return nullptr;
    }
    for (const c10::IValue& value : op.inputs()) {
      if (!value.isTensor() || !value.toTensor().defined()) continue;
      Look look = value.toTensor().sizes().vec();
      const auto strides = value.toTensor().strides();
      look.insert(look.end(), strides.begin(), strides.end());
      g_seen.push_back(std::move(look));
    }
    return nullptr;
  }

  at::CallbackHandle handle_;
};

// Of [n, c, h, w] and their strides.
bool is_channels_last_only(const Look& look) {
  return look.size() == 8 && look[5] == 1 && look[1] > 1 && look[2] * look[3] > 1;
}

// Everything that the step made and saved leaves.
simulator::Schedule offload_all(const TwinSessions& twins) {
  simulator::Decisions decisions;
  decisions.saved.resize(twins.trace().saved.size());
  for (std::size_t s = 0; s < twins.trace().storages.size(); ++s) {
    if (!twins.trace().storages.alloc_event[s].valid()) continue;
    for (const SavedId saved : twins.index().saved_of(StorageId(s))) {
      decisions.saved[saved.index()].decision = simulator::Decision::offload;
    }
  }
  auto lowering = simulator::lower(twins.index(), decisions);
  EXPECT_TRUE(lowering.ok());
  return std::move(lowering->schedule);
}

TEST(ImageModels, WhatLeavesInChannelsLastComesBackInIt) {
  TwinSessions twins(std::string(kImageResnet) + ",channels_last=true", 4, "none");
  const simulator::Schedule schedule = offload_all(twins);
  // Of each convolution and batch norm the input: 17 of each, the first's image stays.
  EXPECT_GT(testing::offloads_of(schedule).size(), 30U);
  const auto plan = twins.plan(schedule);
  std::vector<Look> expected;
  {
    const BackwardWatch watch;
    twins.run_twin(5);
    expected = g_seen;
  }
  {
    const BackwardWatch watch;
    const auto result = twins.run_planned(*plan, 5);
    EXPECT_EQ(result.error, "");
  }
  EXPECT_TRUE(g_seen == expected);
  // Gradient and input of each convolution and norm that is larger than a pixel, and kernels. On a
  // GPU cuDNN has one op for what are several on the CPU.
  EXPECT_GT(std::count_if(g_seen.begin(), g_seen.end(), is_channels_last_only),
            testing::on_gpu() ? 30 : 60);
  twins.expect_same_state(*plan);
}

TEST(ImageModels, InTheUsualFormatNothingIsInChannelsLast) {
  TwinSessions twins(kImageResnet, 4, "none");
  const BackwardWatch watch;
  twins.run_twin(5);
  EXPECT_GT(g_seen.size(), testing::on_gpu() ? 40U : 60U);
  EXPECT_EQ(std::count_if(g_seen.begin(), g_seen.end(), is_channels_last_only), 0);
}

TEST(ImageModels, EverySavedTensorBelongsToALayer) {
  for (const char* const spec : {kImageResnet, kImageVit}) {
    SCOPED_TRACE(spec);
    const auto recorded = testing::record_model(spec, 4, "none");
    const Trace& trace = *recorded.trace;
    std::map<std::string, int> saved_in;
    for (std::size_t s = 0; s < trace.saved.size(); ++s) {
      const std::string site = trace.string(trace.saved.site[s]);
      EXPECT_FALSE(site.starts_with("step")) << site;
      ++saved_in[site.substr(0, site.find('#'))];
    }
    const std::vector<std::string> layers =
        spec == kImageVit
            ? std::vector<std::string>{"embed", "layers.0.attn", "layers.1.mlp", "head", "loss"}
            : std::vector<std::string>{"stem",           "layer1.0.conv1", "layer2.0.conv2",
                                       "layer4.0.conv3", "head",           "loss"};
    for (const std::string& each : layers) EXPECT_GT(saved_in[each], 0) << each;
    if (spec == kImageResnet) {
      // conv: input, kernels; norm: input, weight, running and own statistics, two each; relu. The
      // shortcut has no relu. cuDNN's norm also saves what it reserves.
      const int reserved = testing::on_gpu() ? 1 : 0;
      EXPECT_EQ(saved_in["layer1.0.conv1"], 9 + reserved);
      EXPECT_EQ(saved_in["layer1.0.conv3"], 17 + 2 * reserved);
    }
  }
}

}  // namespace
}  // namespace stowage
