// torchtune's OffloadActivations (TRL maintains it): saved tensors from min_bytes up are copied out
// on a side stream, each view for itself; the originals are held in a stash for a few more packs so
// that the copy can hide, and come back when they are unpacked. Parameters and buffers stay.
// Source: pytorch/torchtune, torchtune/training/_activation_offloading.py. Approximated: there
// every pack counts for the stash, here every offloaded one.
#include <utility>

#include "planner/policies/policies.h"
#include "traces/size_text.h"

namespace stowage::planner::builtin {

using simulator::Decision;
using simulator::ReleasePoint;
using simulator::ReloadPoint;
using simulator::SavedRule;

PolicyInfo torchtune_info() {
  return {"torchtune",
          "Saved tensors leave on a side stream with a stash, and return on demand",
          {{"stash", "5", "packs for which a tensor stays after its own pack"},
           {"min_bytes", "1KiB", "smaller saved tensors stay"}}};
}

Rules torchtune_rules(const simulator::StepIndex& index, const Options& options) {
  SavedRule rule;
  rule.decision = Decision::offload;
  rule.release.kind = ReleasePoint::Kind::pack;
  const Result<std::int32_t> stash = whole_number(options, "stash", 0, "packs");
  if (!stash) return stash.error();
  rule.release.lag = *stash;
  const auto min_bytes = parse_size(options.at("min_bytes"));
  if (!min_bytes) return bad_option("min_bytes", options.at("min_bytes"), "a size such as 1KiB");
  rule.site = "*";
  rule.min_bytes = *min_bytes;
  rule.reload.kind = ReloadPoint::Kind::unpack;
  rule.share = false;

  std::vector<SavedRule> rules;
  add_if_it_matches(index, rule, rules);
  rules.push_back(keep_the_rest());
  return PolicyRules{std::move(rules), {}, {}};
}

}  // namespace stowage::planner::builtin
