// The stable name of a saved tensor.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace stowage {

// "layers.3.mlp#2": pack number `ordinal` in the layer's call; "embed@2#0" for call 2 of a layer
// that is called more than once in the step; "layers.3#in0": input 0 of a segment that runs again
// (boundary_ordinal()).
[[nodiscard]] std::string site_text(std::string_view layer, std::int32_t call, std::int32_t ordinal,
                                    bool called_once);

}  // namespace stowage
