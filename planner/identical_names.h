// Names of identical layers.
#pragma once

#include <string>

namespace stowage::planner {

// The same for identical layers: "layers.3.mlp#2" -> "layers.#.mlp#2".
[[nodiscard]] std::string without_numbers(const std::string& site);

}  // namespace stowage::planner
