#include "simulator/plan/leaving_rules.h"

#include <algorithm>
#include <string>
#include <utility>

#include "simulator/plan/layer_patterns.h"

namespace stowage::simulator {
namespace {

// Numbers of LayerPatterns. What stays inside of a layer that leaves is named first.
constexpr std::int32_t kStays = 0;
constexpr std::int32_t kLeaves = 1;

class RuleMaker {
 public:
  RuleMaker(const Trace& trace, const std::vector<LayerId>& layers, const std::vector<bool>& leaves)
      : trace_(trace),
        layers_(layers),
        leaves_(leaves),
        has_(layers_around(trace, layers_)),
        number_of_(trace.layers.size(), LayerPatterns::kNothing) {
    for (std::size_t s = 0; s < layers_.size(); ++s) {
      if (!layers_[s].valid()) continue;
      number_of_[layers_[s].index()] = leaves[s] ? kLeaves : kStays;
    }
  }

  [[nodiscard]] std::vector<LeavingRule> run() const {
    const LayerPatterns patterns(trace_, has_, number_of_);
    const bool any_inside = stays_inside();
    for (const auto& [wide, spelling] :
         {std::pair{true, Spelling::loose}, std::pair{true, Spelling::exact}}) {
      std::vector<LeavingRule> rules;
      if (any_inside) add(patterns.of(kStays, wide, spelling), false, rules);
      add(patterns.of(kLeaves, wide, spelling), true, rules);
      if (says_it(rules)) return rules;
    }
    std::vector<LeavingRule> rules = one_a_layer();
    STOWAGE_ASSERT(says_it(rules) && "rules by layer cannot say what leaves");
    return rules;
  }

 private:
  static void add(const std::vector<std::string>& patterns, bool leaves,
                  std::vector<LeavingRule>& rules) {
    for (const std::string& pattern : patterns) rules.push_back({pattern, leaves, false});
  }

  [[nodiscard]] bool stays_inside() const {
    for (std::size_t l = 0; l < number_of_.size(); ++l) {
      if (number_of_[l] != kStays) continue;
      for (LayerId up = trace_.layers.parent[l]; up.valid();
           up = trace_.layers.parent[up.index()]) {
        if (number_of_[up.index()] == kLeaves) return true;
      }
    }
    return false;
  }

  // Parents come ahead of their children: the innermost layers first.
  [[nodiscard]] std::vector<LeavingRule> one_a_layer() const {
    std::vector<LeavingRule> rules;
    for (std::size_t l = number_of_.size(); l-- > 0;) {
      if (number_of_[l] == LayerPatterns::kNothing) continue;
      rules.push_back({as_pattern(trace_.string(trace_.layers.name[l]), Spelling::exact),
                       number_of_[l] == kLeaves, false});
    }
    return rules;
  }

  [[nodiscard]] bool says_it(const std::vector<LeavingRule>& rules) const {
    const auto resolved = resolve_leaving(trace_, layers_, rules, {});
    if (!resolved) return false;
    for (std::size_t s = 0; s < layers_.size(); ++s) {
      if (layers_[s].valid() && (*resolved)[s] != leaves_[s]) return false;
    }
    return true;
  }

  const Trace& trace_;
  const std::vector<LayerId>& layers_;
  const std::vector<bool>& leaves_;
  const std::vector<bool> has_;
  std::vector<std::int32_t> number_of_;  // by layer
};

}  // namespace

Result<std::vector<bool>> resolve_leaving(const Trace& trace, const std::vector<LayerId>& layers,
                                          const std::vector<LeavingRule>& rules,
                                          const LeavingWords& words) {
  const std::vector<bool> has = layers_around(trace, layers);
  NumberedLayers numbers(trace, has, words.what);
  for (std::size_t rule = 0; rule < rules.size(); ++rule) {
    const Status added = numbers.add(rules[rule].layer, static_cast<std::int32_t>(rule),
                                     words.pointer + "/" + std::to_string(rule) + "/layer");
    if (added || rules[rule].may_match_nothing) continue;
    // Where nothing has any, nothing is said by letting it stay.
    if (rules[rule].leaves || std::find(has.begin(), has.end(), true) != has.end()) {
      return added.error();
    }
  }
  std::vector<bool> leaves(trace.storages.size(), false);
  for (std::size_t s = 0; s < layers.size(); ++s) {
    if (!layers[s].valid()) continue;
    const std::int32_t rule = numbers.number_of(layers[s]);
    leaves[s] = rule >= 0 && rules[static_cast<std::size_t>(rule)].leaves;
  }
  return leaves;
}

std::vector<LeavingRule> to_leaving_rules(const Trace& trace, const std::vector<LayerId>& layers,
                                          const std::vector<bool>& leaves) {
  if (std::find(leaves.begin(), leaves.end(), true) == leaves.end()) return {};
  STOWAGE_ASSERT(leaves.size() == trace.storages.size());
  return RuleMaker(trace, layers, leaves).run();
}

}  // namespace stowage::simulator
