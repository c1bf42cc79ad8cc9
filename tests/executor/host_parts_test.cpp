#include "executor/host_parts.h"

#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>

#include "executor/optimizer.h"

namespace stowage::executor {
namespace {

HostTensors tensors_like(const at::Tensor& weights) {
  return {weights, at::zeros_like(weights), {{"p.exp_avg", at::zeros_like(weights)}}};
}

TEST(HostParts, AreTheWholeOnce) {
  constexpr std::int64_t kPart = kHostPartElements;
  for (const std::int64_t elements :
       {std::int64_t{0}, std::int64_t{1}, kPart, kPart + 1, 2 * kPart, 5 * kPart + 3}) {
    const HostTensors whole = tensors_like(at::zeros({elements}));
    const HostParts parts(whole);
    EXPECT_EQ(parts.count(), std::max<std::int64_t>((elements + kPart - 1) / kPart, 1));
    for (std::int64_t i = 0; i < parts.count(); ++i) {
      HostTensors part = parts.part(i);
      EXPECT_LE(part.weights.numel(), kPart);
      part.weights.add_(1);
      part.gradient.add_(2);
      part.state[0].tensor.add_(3);
      EXPECT_EQ(part.state[0].name, "p.exp_avg");
    }
    EXPECT_TRUE(whole.weights.eq(1).all().item<bool>()) << elements;
    EXPECT_TRUE(whole.gradient.eq(2).all().item<bool>()) << elements;
    EXPECT_TRUE(whole.state[0].tensor.eq(3).all().item<bool>()) << elements;
  }
}

TEST(HostParts, AreViewsBehindWhereTheTensorsBegin) {
  const at::Tensor memory = at::zeros({100000});
  const HostParts parts(tensors_like(memory.narrow(0, 10, 70000)));
  HostTensors part = parts.parts(1, 3);
  part.weights.fill_(1);
  EXPECT_TRUE(memory.narrow(0, 0, 10 + kHostPartElements).eq(0).all().item<bool>());
  EXPECT_TRUE(
      memory.narrow(0, 10 + kHostPartElements, 70000 - kHostPartElements).eq(1).all().item<bool>());
  EXPECT_TRUE(memory.narrow(0, 70010, 29990).eq(0).all().item<bool>());
}

TEST(HostParts, AreOneWhereTensorsLieInAnotherOrderOrHaveHoles) {
  const at::Tensor weights = at::zeros({400, 500});
  EXPECT_GT(HostParts(tensors_like(weights)).count(), 1);
  HostTensors turned = tensors_like(weights);
  turned.gradient = at::zeros({500, 400}).t();
  EXPECT_EQ(HostParts(turned).count(), 1);
  HostTensors state = tensors_like(weights);
  state.state[0].tensor = at::zeros({500, 400}).t();
  EXPECT_EQ(HostParts(state).count(), 1);
  HostTensors holes = tensors_like(at::zeros({400, 1000}).narrow(1, 0, 500));
  EXPECT_EQ(HostParts(holes).count(), 1);
  HostTensors pointwise = tensors_like(at::zeros({400, 500, 1, 1}));
  pointwise.gradient = at::zeros({400, 500, 1, 1}).contiguous(at::MemoryFormat::ChannelsLast);
  EXPECT_GT(HostParts(pointwise).count(), 1);
  // All of them turned alike: the memory is one piece.
  const HostParts alike(tensors_like(at::zeros({500, 400}).t()));
  EXPECT_GT(alike.count(), 1);
  EXPECT_EQ(alike.parts(0, alike.count()).weights.numel(), 200000);
}

}  // namespace
}  // namespace stowage::executor
