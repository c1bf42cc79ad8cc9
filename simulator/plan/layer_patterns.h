// Layers that the patterns of a plan name, and patterns that name given layers: what shards of
// parameters and rules by layer have in common.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "simulator/plan/pattern_text.h"
#include "traces/result.h"
#include "traces/trace.h"

namespace stowage::simulator {

// Layers that hold one of these storages, themselves or in a layer inside. `layer_of`: by storage,
// none for those that are not meant. Cost: O(storages + layers).
[[nodiscard]] std::vector<bool> layers_around(const Trace& trace,
                                              const std::vector<LayerId>& layer_of);

// Which number the patterns of a plan give each layer: the lowest of those that name it or a layer
// around it.
class NumberedLayers {
 public:
  // `has`: the layers that can be named; `what` they have, for messages. Both outlive it, as the
  // trace does.
  NumberedLayers(const Trace& trace, const std::vector<bool>& has, std::string what)
      : trace_(trace), has_(has), what_(std::move(what)), number_(trace.layers.size(), -1) {}

  // In order of numbers. Errors (bad_input), with the pointer given: a pattern that does not parse,
  // or that matches no layer (with the nearest one). Cost: O(layers).
  [[nodiscard]] Status add(const std::string& pattern, std::int32_t number,
                           const std::string& pointer);
  // -1: none does.
  [[nodiscard]] std::int32_t number_of(LayerId layer) const;

 private:
  [[nodiscard]] Error matches_nothing(const std::string& pattern, const std::string& pointer) const;

  const Trace& trace_;
  const std::vector<bool>& has_;
  std::string what_;
  std::vector<std::int32_t> number_;  // by layer: the first one that names it
};

// Patterns for layers that have numbers.
class LayerPatterns {
 public:
  static constexpr std::int32_t kNothing = -3;  // a layer holds nothing of its own

  // `number_of`: by layer; it and the trace outlive it.
  LayerPatterns(const Trace& trace, const std::vector<bool>& has,
                const std::vector<std::int32_t>& number_of);

  // `wide`: a layer stands for all that is inside it, digits in names become ranges. Whether
  // NumberedLayers gives the numbers back is to be seen: a layer inside another one of a lower
  // number cannot be named so.
  [[nodiscard]] std::vector<std::string> of(std::int32_t number, bool wide,
                                            Spelling spelling) const;

 private:
  const Trace& trace_;
  const std::vector<std::int32_t>& number_of_;
  std::vector<std::int32_t> common_;  // of all in and inside a layer
};

}  // namespace stowage::simulator
