// Which layers of a step are attributed, as a model spec says it: `attribute=layers.*+head`.
#pragma once

#include <string>
#include <vector>

#include "executor/layer_side.h"
#include "executor/model_spec.h"
#include "simulator/plan/pattern.h"
#include "traces/result.h"

namespace stowage::executor {

// The option of a model spec that makes its step an attribution step; every model has it.
inline constexpr const char* kAttributeOption = "attribute";

struct AttributedLayers {
  std::string text;  // of the pattern
  simulator::Pattern pattern;
  LayerSide side = LayerSide::outputs;
};

// Patterns of layer paths (simulator/plan/pattern.h), joined by "+"; "inputs:PATTERN" is what these
// layers are given, instead of what they return. An empty text has none. Errors (usage): no such
// pattern.
[[nodiscard]] Result<std::vector<AttributedLayers>> parse_attribution(const std::string& text);

// Of a spec; empty: a training step.
[[nodiscard]] std::string attribution_of(const ModelSpec& spec);
// The same model's training step.
[[nodiscard]] ModelSpec without_attribution(ModelSpec spec);

}  // namespace stowage::executor
