// torch.autograd.graph.save_on_cpu: the pack hook copies every saved tensor to the host and the CPU
// waits for the copy; the unpack hook copies it back on the compute stream. Each view is copied for
// itself, parameters, buffers and inputs included (their originals stay, of course).
#include <set>
#include <utility>

#include "planner/policies/policies.h"
#include "simulator/plan/rule_match.h"

namespace stowage::planner::builtin {

using simulator::CopyMode;
using simulator::Decision;
using simulator::ReleasePoint;
using simulator::ReloadPoint;
using simulator::SavedRule;

PolicyInfo save_on_cpu_info() {
  return {"save_on_cpu",
          "Every saved tensor is copied out at pack, blocking, and back at unpack, as the PyTorch "
          "function does",
          {}};
}

Rules save_on_cpu_rules(const simulator::StepIndex& index, const Options& /*options*/) {
  SavedRule rule;
  rule.site = "*";
  rule.decision = Decision::offload;
  rule.release.kind = ReleasePoint::Kind::pack;
  rule.reload.kind = ReloadPoint::Kind::unpack;
  rule.copy_out = CopyMode::blocking;
  rule.copy_in = CopyMode::compute;
  rule.share = false;

  std::vector<SavedRule> rules;
  const Trace& trace = index.trace();
  std::set<StorageClass> older;  // only rules that name the class match these
  for (const StorageId storage : trace.saved.storage) {
    if (simulator::pre_existing(trace, storage)) {
      older.insert(trace.storages.storage_class[storage.index()]);
    }
  }
  for (const StorageClass storage_class : older) {
    rule.storage_class = storage_class;
    rules.push_back(rule);
  }
  rule.storage_class.reset();
  rules.push_back(rule);
  return PolicyRules{std::move(rules), {}, {}};
}

}  // namespace stowage::planner::builtin
