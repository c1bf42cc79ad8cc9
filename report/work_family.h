// What kind of work an op does, by its name: what compute is coloured by.
#pragma once

#include <cstdint>
#include <string_view>

namespace stowage::report {

enum class WorkFamily : std::uint8_t {
  matrix,       // matrix products, convolutions, linear layers
  attention,    // fused attention
  normalising,  // norms, softmax, losses, sums: they reduce
  elementwise,  // everything a value at a time: add, gelu, dropout, cast
  moving,       // copies, indexing, embeddings, filling: no arithmetic to speak of
  optimizer,    // updates of parameters
  other,
};
inline constexpr std::size_t kWorkFamilies = 7;

// Of an op ("aten::mm", "aten::_softmax_backward_data") or a kernel ("sm80_xmma_gemm_f32..").
[[nodiscard]] WorkFamily family_of(std::string_view op);

// "matrix products and convolutions"
[[nodiscard]] const char* words_of(WorkFamily family);

}  // namespace stowage::report
