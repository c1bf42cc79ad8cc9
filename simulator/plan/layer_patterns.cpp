#include "simulator/plan/layer_patterns.h"

#include <map>
#include <set>
#include <utility>

#include "simulator/plan/pattern.h"
#include "traces/nearest.h"

namespace stowage::simulator {
namespace {

constexpr std::int32_t kMixed = -2;

}  // namespace

std::vector<bool> layers_around(const Trace& trace, const std::vector<LayerId>& layer_of) {
  std::vector<bool> has(trace.layers.size(), false);
  for (const LayerId layer : layer_of) {
    for (LayerId l = layer; l.valid() && !has[l.index()]; l = trace.layers.parent[l.index()]) {
      has[l.index()] = true;
    }
  }
  return has;
}

Error NumberedLayers::matches_nothing(const std::string& pattern,
                                      const std::string& pointer) const {
  Error error{ErrorCode::bad_input, "the layer \"" + pattern + "\" matches no layer with " + what_,
              "", pointer, ""};
  std::vector<std::string> names;
  for (std::size_t l = 0; l < has_.size(); ++l) {
    if (has_[l]) names.push_back(trace_.string(trace_.layers.name[l]));
  }
  const std::string near = nearest(pattern, names);
  if (!near.empty()) {
    error.hint = "the nearest layer is " + near;
  } else if (names.empty()) {
    error.hint = "the trace has no " + what_;
  } else {
    error.hint = "stowage inspect lists the layers";
  }
  return error;
}

Status NumberedLayers::add(const std::string& text, std::int32_t number,
                           const std::string& pointer) {
  const auto pattern = Pattern::parse(text);
  if (!pattern) {
    Error error = pattern.error();
    error.pointer = pointer;
    return error;
  }
  bool matches = false;
  for (std::size_t l = 0; l < number_.size(); ++l) {
    if (!has_[l] || !pattern->matches(trace_.string(trace_.layers.name[l]))) continue;
    matches = true;
    if (number_[l] < 0) number_[l] = number;
  }
  if (!matches) return matches_nothing(text, pointer);
  return Unit{};
}

std::int32_t NumberedLayers::number_of(LayerId layer) const {
  std::int32_t number = -1;
  for (LayerId l = layer; l.valid(); l = trace_.layers.parent[l.index()]) {
    const std::int32_t here = number_[l.index()];
    if (here >= 0 && (number < 0 || here < number)) number = here;
  }
  return number;
}

LayerPatterns::LayerPatterns(const Trace& trace, const std::vector<bool>& has,
                             const std::vector<std::int32_t>& number_of)
    : trace_(trace), number_of_(number_of), common_(number_of) {
  // Children follow their parents.
  for (std::size_t l = common_.size(); l-- > 0;) {
    const LayerId parent = trace.layers.parent[l];
    if (!has[l] || !parent.valid()) continue;
    std::int32_t& of_parent = common_[parent.index()];
    if (of_parent == kNothing) of_parent = common_[l];
    if (of_parent != common_[l]) of_parent = kMixed;
  }
}

std::vector<std::string> LayerPatterns::of(std::int32_t number, bool wide,
                                           Spelling spelling) const {
  std::set<LayerId> layers;
  for (std::size_t l = 0; l < number_of_.size(); ++l) {
    if (number_of_[l] != number) continue;
    LayerId top(l);
    for (LayerId up = top; wide && up.index() > 0; up = trace_.layers.parent[up.index()]) {
      if (common_[up.index()] == number || number_of_[up.index()] == number) top = up;
      if (!trace_.layers.parent[up.index()].valid()) break;
    }
    layers.insert(top);
  }
  std::vector<std::string> out;
  std::map<std::pair<std::string, std::string>, std::pair<std::size_t, Numbers>> ranges;
  for (const LayerId layer : layers) {
    const std::string& name = trace_.string(trace_.layers.name[layer.index()]);
    const NumberedPath parts = take_apart(name);
    if (!wide || parts.number < 0) {
      out.push_back(as_pattern(name, spelling));
      continue;
    }
    const auto [at, is_new] =
        ranges.try_emplace({parts.prefix, parts.suffix}, out.size(), Numbers{});
    if (is_new) out.emplace_back();
    at->second.second.insert(parts.number);
  }
  for (const auto& [ends, range] : ranges) {
    out[range.first] = as_pattern(ends.first, spelling) + numbers_text(range.second) +
                       as_pattern(ends.second, spelling);
  }
  return out;
}

}  // namespace stowage::simulator
