// Families of ops, by the names that recordings have.
#include "report/work_family.h"

#include <gtest/gtest.h>

#include <utility>

namespace stowage::report {
namespace {

TEST(WorkFamily, GoesByTheNameOfAnOpOrAKernel) {
  using enum WorkFamily;
  constexpr std::pair<const char*, WorkFamily> kNames[] = {
      {"aten::mm", matrix},
      {"aten::addmm", matrix},
      {"aten::linear", matrix},
      {"aten::convolution_backward", matrix},
      {"sm80_xmma_gemm_f32f32_f32f32_f32_tn_n", matrix},
      {"aten::_scaled_dot_product_efficient_attention_backward", attention},
      {"fmha_cutlassF_f32_aligned_64x64_rf_sm80", attention},
      {"aten::_flash_attention_forward", attention},
      {"aten::native_layer_norm", normalising},
      {"aten::_softmax_backward_data", normalising},
      {"aten::nll_loss_forward", normalising},
      {"aten::sum", normalising},
      {"aten::cudnn_batch_norm", normalising},
      {"aten::add_", elementwise},
      {"aten::gelu_backward", elementwise},
      {"aten::masked_fill_", elementwise},
      {"aten::threshold_backward", elementwise},
      {"void at::native::vectorized_elementwise_kernel<4, float>", elementwise},
      {"aten::embedding_dense_backward", moving},
      {"aten::copy_", moving},
      {"aten::cat", moving},
      {"aten::zero_", moving},
      {"aten::_foreach_addcdiv_", optimizer},
      {"aten::_fused_adamw_", optimizer},
      {"aten::view", other},
      {"c10d::allreduce_", other},
      {"ncclDevKernel_AllReduce_Sum_f32_RING_LL", other},
      {"aten::_foreach_norm", normalising},
      {"aten::normal_", elementwise},
      {"aten::upsample_bilinear2d", elementwise},
      {"aten::_convert_indices_from_coo_to_csr", moving},
      {"", other},
  };
  for (const auto& [name, family] : kNames) EXPECT_EQ(family_of(name), family) << name;
}

}  // namespace
}  // namespace stowage::report
