#include "traces/fingerprint.h"

#include <gtest/gtest.h>

#include "tests/traces/synthetic_trace.h"

namespace stowage {
namespace {

using testing::small_trace;

TEST(Fingerprint, IsStable) {
  const Trace trace = small_trace();
  EXPECT_EQ(fingerprint(trace), fingerprint(small_trace()));
  EXPECT_EQ(fingerprint(trace).substr(0, 7), "sha256:");
  EXPECT_EQ(fingerprint(trace).size(), 7U + 64U);
  EXPECT_FALSE(first_difference(trace, small_trace()));
}

TEST(Fingerprint, NamesTheFirstPackThatDiffers) {
  const Trace there = small_trace();
  Trace here = small_trace();
  here.lists[0] = {32, 128};
  EXPECT_NE(fingerprint(there), fingerprint(here));
  EXPECT_EQ(*first_difference(there, here),
            "pack 0: layers.0#0 float32 [64,128] there, [32,128] here");
  here = small_trace();
  here.strings[here.saved.site[2].index()] = "layers.0#9";
  EXPECT_EQ(*first_difference(there, here),
            "pack 2: layers.0#1 float32 [64,128] there, layers.0#9 float32 [64,128] here");
  here = small_trace();
  here.tensors.dtype[here.saved.tensor[1].index()] = DType::bfloat16;
  EXPECT_EQ(*first_difference(there, here),
            "pack 1: layers.0#4 float32 [64,128] there, bfloat16 [64,128] here");
  here = small_trace();
  here.saved.storage_index[3] = 7;
  EXPECT_EQ(*first_difference(there, here),
            "pack 3: layers.0#2 float32 [64,128] strides [128,1] storage 3 there, storage 7 here");
}

TEST(Fingerprint, NamesMissingPacks) {
  const Trace longer = testing::SyntheticTrace(8, 8).trace();
  const Trace shorter = testing::SyntheticTrace(7, 8).trace();
  EXPECT_EQ(*first_difference(longer, shorter),
            "pack 8: layers.0#7 float32 [64,128] there, no more packs here");
  EXPECT_EQ(*first_difference(shorter, longer),
            "pack 8: no more packs there, layers.0#7 float32 [64,128] here");
}

TEST(Fingerprint, CountsTheOptionsThatChangeKernels) {
  const Trace there = small_trace();
  Trace here = small_trace();
  here.run.threads = 4;
  EXPECT_EQ(*first_difference(there, here), "threads: 2 there, 4 here");
  EXPECT_NE(fingerprint(there), fingerprint(here));
  here = small_trace();
  here.run.autocast = "bf16";
  EXPECT_EQ(*first_difference(there, here), "autocast: none there, bf16 here");
  EXPECT_NE(fingerprint(there), fingerprint(here));
  // The same gradients, scaled or not.
  here.run.autocast = "";
  here.run.grad_scaler = "init=8,growth=2,backoff=0.5,interval=100";
  EXPECT_EQ(fingerprint(there), fingerprint(here));
  here = small_trace();
  here.run.deterministic = false;
  EXPECT_EQ(*first_difference(there, here), "deterministic: yes there, no here");
  EXPECT_NE(fingerprint(there), fingerprint(here));
  here = small_trace();
  here.run.dtype = "bf16";
  EXPECT_NE(fingerprint(there), fingerprint(here));
  here = small_trace();
  here.env.allocator = "expandable_segments";
  EXPECT_NE(fingerprint(there), fingerprint(here));
  // What does not change kernels does not count, threads on a GPU among it.
  here = small_trace();
  here.run.seed = 5;
  here.run.steps = 9;
  EXPECT_EQ(fingerprint(there), fingerprint(here));
  Trace gpu = small_trace();
  gpu.env.device = "cuda";
  Trace other = gpu;
  other.run.threads = 64;
  EXPECT_EQ(fingerprint(gpu), fingerprint(other));
  EXPECT_FALSE(first_difference(gpu, other));
  EXPECT_TRUE(first_difference(gpu, there));
}

}  // namespace
}  // namespace stowage
