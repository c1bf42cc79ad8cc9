// Which of a layer's tensors: what it is given, or what it returns.
#pragma once

#include <cstdint>

namespace stowage::executor {

enum class LayerSide : std::uint8_t { inputs, outputs };

}  // namespace stowage::executor
