// Every layer's parameters come to the device before its forward and before its backward and leave
// after them: what a loop of module.to(device) and module.to("cpu") around each layer does, and
// what offloading of whole parameters with FSDP or DeepSpeed comes down to on one device. Saved
// tensors stay. Layers are those that hold parameters of their own; with an optimizer its step on
// the device is such a visit, too.
//
// Leaving waits for the copy of what the optimizer wrote, as .to("cpu") does.
//
// Approximated: parameters that nobody wrote are dropped instead of copied out again, and a layer's
// copies run on the side stream while compute waits for them.
#include <string>
#include <utility>

#include "planner/policies/policies.h"
#include "planner/streaming_layers.h"
#include "simulator/plan/decisions.h"
#include "simulator/plan/parameter_shards.h"

namespace stowage::planner::builtin {

PolicyInfo layerwise_info() {
  return {"layerwise",
          "Each layer's parameters come before its forward and backward and leave after",
          {{"prefetch", "0", "layers ahead of their use at which the copies start"}}};
}

Rules layerwise_rules(const simulator::StepIndex& index, const Options& options) {
  const Result<std::int32_t> prefetch = whole_number(options, "prefetch", 0, "layers");
  if (!prefetch) return prefetch.error();
  const Trace& trace = index.trace();
  simulator::ParameterDecisions parameters;
  parameters.shard_of = shard_for_each_layer(trace);
  parameters.stream = simulator::ParameterPlan::Stream::always;
  parameters.prefetch = *prefetch;
  return PolicyRules{{keep_the_rest()}, simulator::to_shards(trace, parameters), 0};
}

}  // namespace stowage::planner::builtin
