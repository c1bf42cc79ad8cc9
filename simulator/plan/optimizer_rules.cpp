#include "simulator/plan/optimizer_rules.h"

#include <algorithm>
#include <string>
#include <utility>

#include "simulator/plan/layer_patterns.h"

namespace stowage::simulator {
namespace {

// Numbers of LayerPatterns. What stays inside of a layer that streams is named first.
constexpr std::int32_t kStays = 0;
constexpr std::int32_t kStreams = 1;

class RuleMaker {
 public:
  RuleMaker(const Trace& trace, const OptimizerDecisions& decisions)
      : trace_(trace),
        decisions_(decisions),
        layers_(layers_of_optimizer_state(trace)),
        has_(layers_around(trace, layers_)),
        number_of_(trace.layers.size(), LayerPatterns::kNothing) {
    for (std::size_t s = 0; s < layers_.size(); ++s) {
      if (!layers_[s].valid()) continue;
      number_of_[layers_[s].index()] = decisions.state_streams[s] ? kStreams : kStays;
    }
  }

  [[nodiscard]] std::vector<OptimizerRule> run() const {
    const LayerPatterns patterns(trace_, has_, number_of_);
    const bool any_inside = stays_inside();
    for (const auto& [wide, spelling] :
         {std::pair{true, Spelling::loose}, std::pair{true, Spelling::exact}}) {
      std::vector<OptimizerRule> rules;
      if (any_inside) add(patterns.of(kStays, wide, spelling), StatePlace::device, rules);
      add(patterns.of(kStreams, wide, spelling), StatePlace::stream, rules);
      if (says_it(rules)) return rules;
    }
    std::vector<OptimizerRule> rules = one_a_layer();
    STOWAGE_ASSERT(says_it(rules) && "rules by layer cannot say where each piece of state is");
    return rules;
  }

 private:
  static void add(const std::vector<std::string>& patterns, StatePlace place,
                  std::vector<OptimizerRule>& rules) {
    for (const std::string& pattern : patterns) rules.push_back({pattern, place});
  }

  [[nodiscard]] bool stays_inside() const {
    for (std::size_t l = 0; l < number_of_.size(); ++l) {
      if (number_of_[l] != kStays) continue;
      for (LayerId up = trace_.layers.parent[l]; up.valid();
           up = trace_.layers.parent[up.index()]) {
        if (number_of_[up.index()] == kStreams) return true;
      }
    }
    return false;
  }

  // Parents come ahead of their children: the innermost layers first.
  [[nodiscard]] std::vector<OptimizerRule> one_a_layer() const {
    std::vector<OptimizerRule> rules;
    for (std::size_t l = number_of_.size(); l-- > 0;) {
      if (number_of_[l] == LayerPatterns::kNothing) continue;
      rules.push_back({as_pattern(trace_.string(trace_.layers.name[l]), Spelling::exact),
                       number_of_[l] == kStreams ? StatePlace::stream : StatePlace::device});
    }
    return rules;
  }

  [[nodiscard]] bool says_it(const std::vector<OptimizerRule>& rules) const {
    const auto resolved = resolve_optimizer(trace_, rules);
    if (!resolved) return false;
    for (std::size_t s = 0; s < layers_.size(); ++s) {
      if (layers_[s].valid() && resolved->state_streams[s] != decisions_.state_streams[s]) {
        return false;
      }
    }
    return true;
  }

  const Trace& trace_;
  const OptimizerDecisions& decisions_;
  const std::vector<LayerId> layers_;
  const std::vector<bool> has_;
  std::vector<std::int32_t> number_of_;  // by layer
};

}  // namespace

std::vector<LayerId> layers_of_optimizer_state(const Trace& trace) {
  const Storages& storages = trace.storages;
  std::vector<LayerId> layers(storages.size());
  for (std::size_t s = 0; s < layers.size(); ++s) {
    if (storages.storage_class[s] != StorageClass::optimizer_state) continue;
    const StorageId parameter = storages.parameter[s];
    if (parameter.valid()) layers[s] = storages.layer[parameter.index()];
  }
  return layers;
}

Result<OptimizerDecisions> resolve_optimizer(const Trace& trace,
                                             const std::vector<OptimizerRule>& rules) {
  OptimizerDecisions decisions;
  if (rules.empty()) return decisions;
  const std::vector<LayerId> layers = layers_of_optimizer_state(trace);
  const std::vector<bool> has = layers_around(trace, layers);
  NumberedLayers numbers(trace, has, "optimizer state");
  for (std::size_t rule = 0; rule < rules.size(); ++rule) {
    const Status added = numbers.add(rules[rule].layer, static_cast<std::int32_t>(rule),
                                     "/optimizer/" + std::to_string(rule) + "/layer");
    if (added) continue;
    // Where nothing has state, nothing is said by letting it stay.
    const bool asks = rules[rule].state != StatePlace::device;
    if (asks || std::find(has.begin(), has.end(), true) != has.end()) return added.error();
  }
  decisions.state_streams.assign(trace.storages.size(), false);
  for (std::size_t s = 0; s < layers.size(); ++s) {
    if (!layers[s].valid()) continue;
    const std::int32_t rule = numbers.number_of(layers[s]);
    decisions.state_streams[s] =
        rule >= 0 && rules[static_cast<std::size_t>(rule)].state == StatePlace::stream;
  }
  return decisions;
}

std::vector<OptimizerRule> to_optimizer_rules(const Trace& trace,
                                              const OptimizerDecisions& decisions) {
  const auto& streams = decisions.state_streams;
  if (std::find(streams.begin(), streams.end(), true) == streams.end()) return {};
  STOWAGE_ASSERT(streams.size() == trace.storages.size());
  return RuleMaker(trace, decisions).run();
}

}  // namespace stowage::simulator
