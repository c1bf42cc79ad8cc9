#include "simulator/plan/parameter_shards.h"

#include <algorithm>
#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "simulator/plan/pattern.h"
#include "simulator/plan/pattern_text.h"
#include "traces/nearest.h"

namespace stowage::simulator {
namespace {

bool is_parameter(const Trace& trace, std::size_t storage) {
  return trace.storages.storage_class[storage] == StorageClass::parameter &&
         trace.storages.layer[storage].valid();
}

// Layers that hold a parameter, themselves or in a layer inside.
std::vector<bool> layers_with_parameters(const Trace& trace) {
  std::vector<bool> has(trace.layers.size(), false);
  for (std::size_t s = 0; s < trace.storages.size(); ++s) {
    if (!is_parameter(trace, s)) continue;
    for (LayerId l = trace.storages.layer[s]; l.valid() && !has[l.index()];
         l = trace.layers.parent[l.index()]) {
      has[l.index()] = true;
    }
  }
  return has;
}

Error matches_nothing(const Trace& trace, const std::vector<bool>& has, const std::string& pattern,
                      const std::string& pointer) {
  Error error{ErrorCode::bad_input,
              "the layer \"" + pattern + "\" matches no layer with parameters", "", pointer, ""};
  std::vector<std::string> names;
  for (std::size_t l = 0; l < has.size(); ++l) {
    if (has[l]) names.push_back(trace.string(trace.layers.name[l]));
  }
  const std::string near = nearest(pattern, names);
  if (!near.empty()) {
    error.hint = "the nearest layer is " + near;
  } else if (names.empty()) {
    error.hint = "the trace has no parameters";
  } else {
    error.hint = "stowage inspect lists the layers";
  }
  return error;
}

// Patterns for the layers of one shard.
class ShardWriter {
 public:
  ShardWriter(const Trace& trace, const std::vector<bool>& has,
              const std::vector<std::int32_t>& shard_of_layer)
      : trace_(trace), has_(has), shard_of_layer_(shard_of_layer) {
    // Whether all parameters in and inside a layer are of one shard; children follow their parents.
    common_ = shard_of_layer;
    for (std::size_t l = common_.size(); l-- > 0;) {
      const LayerId parent = trace.layers.parent[l];
      if (!has[l] || !parent.valid()) continue;
      std::int32_t& of_parent = common_[parent.index()];
      if (of_parent == kNoParameters) of_parent = common_[l];
      if (of_parent != common_[l]) of_parent = kMixed;
    }
  }

  static constexpr std::int32_t kNoParameters = -3;  // of its own
  static constexpr std::int32_t kMixed = -2;

  // `wide`: a layer stands for all that is inside it, numbers become ranges.
  [[nodiscard]] std::vector<std::string> patterns(std::int32_t shard, bool wide,
                                                  Spelling spelling) const {
    std::set<LayerId> layers;
    for (std::size_t l = 0; l < shard_of_layer_.size(); ++l) {
      if (shard_of_layer_[l] != shard) continue;
      LayerId top(l);
      for (LayerId up = top; wide && up.index() > 0; up = trace_.layers.parent[up.index()]) {
        if (common_[up.index()] == shard || shard_of_layer_[up.index()] == shard) top = up;
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

 private:
  const Trace& trace_;
  const std::vector<bool>& has_;
  const std::vector<std::int32_t>& shard_of_layer_;
  std::vector<std::int32_t> common_;
};

}  // namespace

Result<ParameterDecisions> resolve_parameters(const Trace& trace, const ParameterPlan& plan) {
  ParameterDecisions decisions;
  decisions.stream = plan.stream;
  decisions.prefetch = plan.prefetch;
  if (plan.shards.empty()) return decisions;
  const std::vector<bool> has = layers_with_parameters(trace);
  std::vector<std::int32_t> named(trace.layers.size(), -1);  // first shard that names the layer
  for (std::size_t shard = 0; shard < plan.shards.size(); ++shard) {
    for (std::size_t i = 0; i < plan.shards[shard].size(); ++i) {
      const std::string& text = plan.shards[shard][i];
      const std::string pointer =
          "/parameters/shards/" + std::to_string(shard) + "/" + std::to_string(i);
      const auto pattern = Pattern::parse(text);
      if (!pattern) {
        Error error = pattern.error();
        error.pointer = pointer;
        return error;
      }
      bool matches = false;
      for (std::size_t l = 0; l < named.size(); ++l) {
        if (!has[l] || !pattern->matches(trace.string(trace.layers.name[l]))) continue;
        matches = true;
        if (named[l] < 0) named[l] = static_cast<std::int32_t>(shard);
      }
      if (!matches) return matches_nothing(trace, has, text, pointer);
    }
  }
  decisions.shard_of.assign(trace.storages.size(), -1);
  for (std::size_t s = 0; s < trace.storages.size(); ++s) {
    if (!is_parameter(trace, s)) continue;
    std::int32_t& shard = decisions.shard_of[s];
    for (LayerId l = trace.storages.layer[s]; l.valid(); l = trace.layers.parent[l.index()]) {
      const std::int32_t here = named[l.index()];
      if (here >= 0 && (shard < 0 || here < shard)) shard = here;
    }
  }
  return decisions;
}

ParameterPlan to_shards(const Trace& trace, const ParameterDecisions& decisions) {
  ParameterPlan plan;
  plan.stream = decisions.stream;
  plan.prefetch = decisions.prefetch;
  if (decisions.shard_of.empty()) return plan;
  STOWAGE_ASSERT(decisions.shard_of.size() == trace.storages.size());
  const std::vector<bool> has = layers_with_parameters(trace);
  std::vector<std::int32_t> of_layer(trace.layers.size(), ShardWriter::kNoParameters);
  std::map<std::int32_t, std::int32_t> number;  // of the shards that are written
  for (std::size_t s = 0; s < trace.storages.size(); ++s) {
    if (!is_parameter(trace, s)) continue;
    of_layer[trace.storages.layer[s].index()] = decisions.shard_of[s];
    if (decisions.shard_of[s] >= 0) number[decisions.shard_of[s]] = 0;
  }
  std::int32_t next = 0;
  for (auto& [shard, written] : number) written = next++;
  if (!plan.stream.by_shard().empty() && !number.empty()) {
    std::vector<StreamMode> modes;
    for (const auto& [shard, written] : number) {
      modes.push_back(decisions.stream.of(static_cast<std::size_t>(shard)));
    }
    plan.stream = StreamModes(std::move(modes));
  }
  const ShardWriter writer(trace, has, of_layer);
  for (const auto& [wide, spelling] :
       {std::pair{true, Spelling::loose}, std::pair{true, Spelling::exact},
        std::pair{false, Spelling::loose}, std::pair{false, Spelling::exact}}) {
    plan.shards.clear();
    for (const auto& [shard, written] : number) {
      plan.shards.push_back(writer.patterns(shard, wide, spelling));
    }
    const auto resolved = resolve_parameters(trace, plan);
    if (!resolved) continue;
    bool same = true;
    for (std::size_t s = 0; s < trace.storages.size(); ++s) {
      const std::int32_t wanted = is_parameter(trace, s) ? decisions.shard_of[s] : -1;
      const std::int32_t got = resolved->shard_of.empty() ? -1 : resolved->shard_of[s];
      same = same && got == (wanted < 0 ? -1 : number[wanted]);
    }
    if (same) return plan;
  }
  STOWAGE_ASSERT(false && "patterns of layers cannot say which shard each parameter is of");
  return plan;
}

std::optional<ParameterPlan> to_parameters(const Trace& trace,
                                           const ParameterDecisions& decisions) {
  if (decisions.stream.off()) return std::nullopt;
  ParameterPlan plan = to_shards(trace, decisions);
  return plan.stream.off() ? std::nullopt : std::optional(std::move(plan));
}

}  // namespace stowage::simulator
