#include "executor/attribution_spec.h"

#include <algorithm>
#include <string_view>
#include <utility>

#include "executor/models/option_reader.h"

namespace stowage::executor {

namespace {
constexpr std::string_view kInputs = "inputs:";
}

Result<std::vector<AttributedLayers>> parse_attribution(const std::string& text) {
  std::vector<AttributedLayers> all;
  // It stands among options, which commas part.
  if (text.find(',') != text.npos) {
    return usage_error("attribute=" + text + ": a comma is not allowed",
                       "join patterns by +, as layers.0+layers.2");
  }
  for (std::size_t begin = 0; !text.empty() && begin <= text.size();) {
    const std::size_t plus = std::min(text.find('+', begin), text.size());
    std::string word = text.substr(begin, plus - begin);
    begin = plus + 1;
    const bool is_inputs = word.starts_with(kInputs);
    if (is_inputs) word.erase(0, kInputs.size());
    Result<simulator::Pattern> pattern = simulator::Pattern::parse(word);
    if (!pattern) {
      return usage_error("attribute=" + text + ": " + pattern.error().message,
                         "patterns of layers, as layers.*+head or inputs:layers.[0-3]");
    }
    all.push_back({std::move(word), std::move(pattern).value(),
                   is_inputs ? LayerSide::inputs : LayerSide::outputs});
  }
  return all;
}

std::string attribution_of(const ModelSpec& spec) {
  const auto found = spec.options.find(kAttributeOption);
  return found == spec.options.end() ? "" : found->second;
}

ModelSpec without_attribution(ModelSpec spec) {
  spec.options.erase(kAttributeOption);
  return spec;
}

}  // namespace stowage::executor
