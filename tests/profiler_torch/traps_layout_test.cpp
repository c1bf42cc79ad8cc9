// Saved tensors of every layout and dtype come back as they left: through a custom function that
// saves a tensor and, in backward, compares what it gets with what it saved.
#include <ATen/Functions.h>
#include <gtest/gtest.h>
#include <torch/csrc/autograd/custom_function.h>

#include <algorithm>
#include <string>
#include <vector>

#include "tests/profiler_torch/hand_step.h"
#include "tests/profiler_torch/test_device.h"
#include "tests/support/tenants.h"

namespace stowage {
namespace {

using testing::backward;
using testing::HandStep;
using testing::input;
using testing::parameter;

// What must be equal: everything but the place in memory (modulo the alignment that kernels see).
struct Look {
  std::vector<std::int64_t> sizes;
  std::vector<std::int64_t> strides;
  at::ScalarType dtype = at::kFloat;
  bool conjugate = false;
  bool negative = false;
  std::uintptr_t alignment = 0;
  std::vector<char> bits;
  bool operator==(const Look&) const = default;
};

Look look_at(const at::Tensor& tensor) {
  Look look;
  look.sizes = tensor.sizes().vec();
  look.strides = tensor.strides().vec();
  look.dtype = tensor.scalar_type();
  look.conjugate = tensor.is_conj();
  look.negative = tensor.is_neg();
  if (tensor.numel() == 0) return look;
  look.alignment = reinterpret_cast<std::uintptr_t>(tensor.const_data_ptr()) % 64;
  // Element by element, without an op or an allocation of the device.
  const auto item = tensor.itemsize();
  std::vector<std::int64_t> places;
  for (std::int64_t n = 0; n < tensor.numel(); ++n) {
    std::int64_t rest = n;
    std::int64_t place = 0;
    for (std::size_t d = look.sizes.size(); d-- > 0;) {
      place += rest % look.sizes[d] * look.strides[d];
      rest /= look.sizes[d];
    }
    places.push_back(place);
  }
  const std::int64_t last = *std::max_element(places.begin(), places.end());
  const std::vector<char> all = testing::fetch(testing::hand_device(), tensor.const_data_ptr(),
                                               static_cast<std::size_t>((last + 1) * item));
  for (const std::int64_t place : places) {
    const auto from = all.begin() + place * item;
    look.bits.insert(look.bits.end(), from, from + item);
  }
  return look;
}

std::vector<Look> g_saved;  // what Carry saved, since the test began
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
  EXPECT_EQ(g_compared, 2 * 3 * static_cast<int>(testing::styles().size()));
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
  };
  return all;
}

INSTANTIATE_TEST_SUITE_P(All, EachLayout, ::testing::ValuesIn(layouts()),
                         [](const auto& layout) { return std::string(layout.param.name); });

}  // namespace
}  // namespace stowage
