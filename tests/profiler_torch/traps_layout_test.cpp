// Saved tensors of every layout and dtype come back as they left: through a custom function that
// saves a tensor and, in backward, compares what it gets with what it saved.
#include <ATen/Functions.h>
#include <gtest/gtest.h>
#include <torch/csrc/autograd/custom_function.h>

#include <algorithm>
#include <memory>
#include <string>
#include <typeinfo>
#include <vector>

#include "tests/profiler_torch/hand_step.h"
#include "tests/profiler_torch/tensor_look.h"
#include "tests/profiler_torch/test_device.h"
#include "tests/support/schedule_parts.h"

namespace stowage {
namespace {

using simulator::Lowering;
using testing::backward;
using testing::HandStep;
using testing::input;
using testing::look_at;
using testing::parameter;
using testing::TensorLook;

std::vector<TensorLook> g_saved;  // what Carry saved, since the test began
int g_compared = 0;

// The identity of x that saves `other`.
struct Carry : torch::autograd::Function<Carry> {
  static at::Tensor forward(torch::autograd::AutogradContext* ctx, const at::Tensor& x,
                            const at::Tensor& other) {
    ctx->save_for_backward({other});
    ctx->saved_data["row"] = static_cast<std::int64_t>(g_saved.size());
    g_saved.push_back(look_at(other));
    return x.view_as(x);
  }

  static torch::autograd::variable_list backward(torch::autograd::AutogradContext* ctx,
                                                 torch::autograd::variable_list gradients) {
    const auto row = static_cast<std::size_t>(ctx->saved_data["row"].toInt());
    const at::Tensor other = ctx->get_saved_variables()[0];
    EXPECT_TRUE(look_at(other) == g_saved[row]);
    ++g_compared;
    return {gradients[0], at::Tensor()};
  }
};

struct Layout {
  const char* name;
  at::ScalarType dtype;
  std::vector<std::int64_t> shape;
  std::function<at::Tensor(const at::Tensor&)> view;
};

class EachLayout : public ::testing::TestWithParam<Layout> {};

TEST_P(EachLayout, ComesBackAsItLeft) {
  const Layout& layout = GetParam();
  const at::Tensor p = parameter({4, 4});
  const at::Tensor source = input(layout.shape, at::kFloat);
  HandStep step({p}, {source}, [&] {
    // Made inside the step, so that it can leave.
    const at::Tensor made = source.mul(7).to(layout.dtype);
    const at::Tensor x = Carry::apply(p * 2, layout.view(made));
    return backward((x * x).sum());
  });
  g_saved.clear();
  g_compared = 0;
  testing::expect_exact_in_every_style(step);
  EXPECT_EQ(g_compared, 2 * testing::exact_steps() * static_cast<int>(testing::styles().size()));
  const auto lowering =
      step.lower(testing::offload_made(step.trace(), testing::styles().front().decision));
  EXPECT_GE(testing::offloads_of(lowering.schedule).size(),
            std::string(layout.name) == "zero_size" ? 1U : 2U);
}

at::Tensor same(const at::Tensor& tensor) {
  return tensor;
}

const std::vector<Layout>& layouts() {
  static const std::vector<Layout> all = {
      {"contiguous", at::kFloat, {6, 5}, same},
      {"transposed", at::kFloat, {6, 5}, [](const at::Tensor& t) { return t.t(); }},
      {"permuted",
       at::kFloat,
       {3, 4, 5},
       [](const at::Tensor& t) {
         return t.permute({2, 0, 1});
       }},
      {"channels_last",
       at::kFloat,
       {2, 3, 4, 5},
       [](const at::Tensor& t) { return t.contiguous(at::MemoryFormat::ChannelsLast); }},
      {"offset_slice", at::kFloat, {40, 5}, [](const at::Tensor& t) { return t.slice(0, 17, 31); }},
      {"every_second",
       at::kFloat,
       {40, 5},
       [](const at::Tensor& t) { return t.slice(0, 3, 31, 2); }},
      {"column", at::kFloat, {20, 9}, [](const at::Tensor& t) { return t.select(1, 7); }},
      {"one_element", at::kFloat, {20, 9}, [](const at::Tensor& t) { return t[19][8]; }},
      {"stride_0",
       at::kFloat,
       {1, 8},
       [](const at::Tensor& t) {
         return t.expand({16, 8});
       }},
      {"all_stride_0",
       at::kFloat,
       {1},
       [](const at::Tensor& t) {
         return t.expand({16, 8});
       }},
      {"overlapping",
       at::kFloat,
       {16},
       [](const at::Tensor& t) {
         return t.as_strided({4, 4}, {2, 1}, 3);
       }},
      {"zero_size", at::kFloat, {0, 8}, same},
      {"zero_size_view", at::kFloat, {9, 8}, [](const at::Tensor& t) { return t.slice(0, 4, 4); }},
      {"zero_dim", at::kFloat, {}, same},
      {"boolean", at::kBool, {33}, same},
      {"boolean_slice", at::kBool, {333}, [](const at::Tensor& t) { return t.slice(0, 101, 301); }},
      {"int64", at::kLong, {9, 9}, [](const at::Tensor& t) { return t.t(); }},
      {"int8", at::kChar, {101}, [](const at::Tensor& t) { return t.slice(0, 67); }},
      {"bfloat16", at::kBFloat16, {9, 9}, [](const at::Tensor& t) { return t.slice(0, 5); }},
      {"float16", at::kHalf, {9, 9}, same},
      {"float64", at::kDouble, {9, 9}, [](const at::Tensor& t) { return t.t(); }},
      {"complex64",
       at::kComplexFloat,
       {9, 9},
       [](const at::Tensor& t) { return t.slice(1, 3, 8); }},
      {"conjugate", at::kComplexFloat, {9, 9}, [](const at::Tensor& t) { return t.conj(); }},
      {"adjoint", at::kComplexDouble, {9, 9}, [](const at::Tensor& t) { return t.mH(); }},
      {"negative",
       at::kComplexFloat,
       {9, 9},
       [](const at::Tensor& t) { return at::imag(t.conj()); }},
      {"real_part", at::kComplexFloat, {9, 9}, [](const at::Tensor& t) { return at::real(t); }},
      // What few ops know; wider than one byte first.
      {"complex32", at::kComplexHalf, {9, 9}, [](const at::Tensor& t) { return t.slice(0, 4); }},
      {"uint16", at::kUInt16, {9, 9}, [](const at::Tensor& t) { return t.t(); }},
      {"uint32", at::kUInt32, {9, 9}, same},
      {"uint64", at::kUInt64, {9, 9}, [](const at::Tensor& t) { return t.slice(1, 3); }},
      {"bits16", at::kHalf, {9, 9}, [](const at::Tensor& t) { return t.view(at::kBits16); }},
      {"float8_e4m3fn", at::kFloat8_e4m3fn, {9, 9}, same},
      {"float8_e5m2", at::kFloat8_e5m2, {9, 9}, [](const at::Tensor& t) { return t.t(); }},
      {"float8_e8m0fnu", at::kFloat8_e8m0fnu, {9, 9}, same},
      {"float4_pairs",
       at::kByte,
       {99},
       [](const at::Tensor& t) { return t.view(at::kFloat4_e2m1fn_x2); }},
      {"bits8", at::kByte, {99}, [](const at::Tensor& t) { return t.view(at::kBits8); }},
  };
  return all;
}

INSTANTIATE_TEST_SUITE_P(All, EachLayout, ::testing::ValuesIn(layouts()),
                         [](const auto& layout) { return std::string(layout.param.name); });

// A step whose saved tensor has another dtype than the recorded one, both unusual ones of which an
// older trace knew nothing: it must not pass for the recorded one.
TEST(UnusualDtype, ThatIsNotTheRecordedOneIsRefused) {
  const at::Tensor p = parameter({4, 4});
  const at::Tensor source = input({9, 9}, at::kFloat);
  at::ScalarType dtype = at::kUInt16;
  HandStep step({p}, {source}, [&] {
    const at::Tensor made = source.mul(7).to(dtype);
    const at::Tensor x = Carry::apply(p * 2, made);
    return backward((x * x).sum());
  });
  const auto lowering =
      step.lower(testing::offload_made(step.trace(), testing::styles()[1].decision));
  const auto plan = step.plan(lowering.schedule);
  dtype = at::kUInt32;
  const std::string text = testing::error_of([&] { step.planned(*plan, 0); });
  EXPECT_NE(text.find("has dtype uint32, recorded was uint16"), std::string::npos) << text;
  dtype = at::kUInt16;
  g_saved.clear();
  testing::expect_same(step.planned(*plan, 0), step.plain(0));
}

// A trace from before the trace knew its dtype: how wide its elements are is not known.
TEST(UnusualDtype, OfAnOldTraceIsNotMoved) {
  const at::Tensor p = parameter({4, 4});
  const at::Tensor source = input({9, 9}, at::kFloat);
  HandStep step({p}, {source}, [&] {
    const at::Tensor x = Carry::apply(p * 2, source.mul(7).to(at::kUInt16));
    return backward((x * x).sum());
  });
  const auto lowering =
      step.lower(testing::offload_made(step.trace(), testing::styles()[1].decision));
  Trace old = step.trace();
  for (std::size_t t = 0; t < old.tensors.size(); ++t) {
    if (old.tensors.dtype[t] == DType::uint16) old.tensors.dtype[t] = DType::other;
  }
  const auto plan = executor::PlannedStep::create(
      testing::hand_device(), std::make_shared<const Trace>(old), lowering.schedule, {});
  ASSERT_FALSE(plan.ok());
  EXPECT_NE(plan.error().text().find("step#0"), std::string::npos) << plan.error().text();
  EXPECT_NE(plan.error().text().find("dtype"), std::string::npos) << plan.error().text();
}

// Tensors that are no plain strided ones stay as they are; what moves beside them is right.
struct Special {
  const char* name;
  std::function<at::Tensor(const at::Tensor&)> make;
};

class EachSpecial : public ::testing::TestWithParam<Special> {};

at::Tensor g_special;

struct CarrySpecial : torch::autograd::Function<CarrySpecial> {
  static at::Tensor forward(torch::autograd::AutogradContext* ctx, const at::Tensor& x,
                            const at::Tensor& other) {
    ctx->save_for_backward({other});
    return x.view_as(x);
  }
  static torch::autograd::variable_list backward(torch::autograd::AutogradContext* ctx,
                                                 torch::autograd::variable_list gradients) {
    const at::Tensor other = ctx->get_saved_variables()[0];
    // The very implementation: whatever it holds beside its bytes is there.
    EXPECT_EQ(typeid(*other.unsafeGetTensorImpl()), typeid(*g_special.unsafeGetTensorImpl()));
    EXPECT_EQ(other.has_names(), g_special.has_names());
    at::Tensor plain = other.is_quantized() ? other.dequantize() : other;
    if (plain.layout() != at::kStrided) plain = plain.to_dense();
    if (plain.has_names()) plain = plain.rename(std::nullopt);
    ++g_compared;
    return {gradients[0] * plain.to(at::kFloat).sum(), at::Tensor()};
  }
};

TEST_P(EachSpecial, TensorStaysAndTheReportSaysSo) {
  if (testing::on_gpu() && std::string(GetParam().name) == "mkldnn") GTEST_SKIP() << "CPU only";
  const at::Tensor p = parameter({4, 4});
  const at::Tensor source = input({8, 8}, at::kFloat);
  HandStep step({p}, {source}, [&] {
    g_special = GetParam().make(source.mul(7));
    const at::Tensor x = CarrySpecial::apply(p * 2, g_special);
    const double loss = backward((x * x).sum());
    g_special.reset();
    return loss;
  });
  g_compared = 0;
  for (const testing::Style& style : testing::styles()) {
    SCOPED_TRACE(style.name);
    const Lowering lowering =
        testing::expect_exact(step, testing::offload_made(step.trace(), style.decision));
    EXPECT_FALSE(testing::offloads_of(lowering.schedule).empty());
  }
  EXPECT_EQ(g_compared, 2 * testing::exact_steps() * static_cast<int>(testing::styles().size()));
  // A rule for everything reaches it as well, and the plan's report says that it stays.
  simulator::SavedRule everything;
  everything.decision = simulator::Decision::offload;
  const Lowering lowering = step.lower(std::vector{everything});
  const auto noted = std::find_if(
      lowering.notes.begin(), lowering.notes.end(), [&](const simulator::LoweringNote& note) {
        return note.saved.valid() && !step.trace().saved.storage[note.saved.index()].valid();
      });
  ASSERT_NE(noted, lowering.notes.end());
  EXPECT_EQ(noted->text,
            "stays: it is no plain tensor in the training device's memory, or its op writes to it "
            "once it is saved");
}

INSTANTIATE_TEST_SUITE_P(
    All, EachSpecial,
    ::testing::Values(Special{"quantized",
                              [](const at::Tensor& each) {
                                return at::quantize_per_tensor(each, 0.1, 3, at::kQInt8);
                              }},
                      Special{"sparse", [](const at::Tensor& each) { return each.to_sparse(); }},
                      Special{"sparse_csr",
                              [](const at::Tensor& each) { return each.to_sparse_csr(); }},
                      Special{"mkldnn", [](const at::Tensor& each) { return each.to_mkldnn(); }},
                      Special{"named",
                              [](const at::Tensor& each) {
                                return each.rename(
                                    std::vector{at::Dimname::fromSymbol(at::Symbol::dimname("N")),
                                                at::Dimname::fromSymbol(at::Symbol::dimname("C"))});
                              }}),
    [](const auto& special) { return std::string(special.param.name); });

// cuBLAS picks its kernels by alignments up to 256 bytes; a device's blocks start at multiples of
// 512. What comes back is aligned as what left was.
TEST(Alignment, OfAViewInsideItsBlockIsKept) {
  for (const std::int64_t first : {1, 4, 16, 32, 64, 96, 127, 128, 160}) {
    SCOPED_TRACE(first);
    const std::vector<std::int64_t> shape{64};
    const ByteRange range = byte_range(shape, {1}, first, 4);
    EXPECT_EQ((first * 4 - range.begin) % 256, first * 4 % 256);
    EXPECT_EQ(range.begin % 256, 0);
  }
}

}  // namespace
}  // namespace stowage
