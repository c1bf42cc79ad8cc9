#include "planner/host_update_rules.h"

#include <algorithm>
#include <set>

#include "planner/streaming_layers.h"
#include "simulator/plan/optimizer_rules.h"

namespace stowage::planner {

std::vector<simulator::OptimizerRule> optimizer_rules(const StructureSearch& in,
                                                      simulator::OptimizerDecisions decisions,
                                                      UpdatesOnHost* all, const Pins* pinned) {
  const Trace& trace = in.index().trace();
  const std::vector<StorageId>& on_host = in.structure().host_updates;
  if (on_host.empty()) return simulator::to_optimizer_rules(trace, decisions);
  const bool are_all =
      all != nullptr && on_host.size() == all->climber().base().structure().host_updates.size();
  const std::vector<LayerId> layers = streaming_layers(trace);
  const std::vector<LayerId> updated = simulator::layers_of_updated_parameters(trace);
  std::set<LayerId> streaming;
  for (std::size_t s = 0; s < decisions.state_streams.size(); ++s) {
    if (decisions.state_streams[s]) streaming.insert(layers[trace.storages.parameter[s].index()]);
  }
  std::set<LayerId> asked;
  for (std::size_t s = 0; s < updated.size(); ++s) {
    if (!updated[s].valid()) continue;
    const StorageId recorded = in.index().step().origin(StorageId(s)).row;
    const bool is_one = std::find(on_host.begin(), on_host.end(), recorded) != on_host.end();
    const bool is_pinned = pinned != nullptr && pinned->updates_on_host(layers[s]);
    const bool is_free = pinned == nullptr || !pinned->updates_on_device(layers[s]);
    const bool may_be = are_all && is_free && streaming.count(layers[s]) == 0;
    if (is_one || is_pinned || may_be) asked.insert(layers[s]);
  }
  for (std::size_t s = 0; s < updated.size(); ++s) {
    if (updated[s].valid() && asked.count(layers[s]) > 0) decisions.updated_on_host[s] = true;
  }
  return simulator::to_optimizer_rules(trace, decisions);
}

}  // namespace stowage::planner
