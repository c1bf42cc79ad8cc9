// Selective activation checkpointing: torch.utils.checkpoint with a policy of ops
// (create_selective_checkpoint_contexts, MUST_SAVE for the ops of a list, PREFER_RECOMPUTE for all
// others), as torchtitan applies it to every layer. Its lists name products of matrices, attention
// and, for vision, convolutions.
//
// Approximated: there a layer's forward runs again as a whole, with what the list names put in its
// place; here what the list does not name is made again by its own ops, and what they cannot make
// (random numbers, writes) stays. Layers are not chosen: it is everything that is saved.
#include <algorithm>
#include <map>
#include <string>
#include <vector>

#include "planner/policies/policies.h"
#include "simulator/plan/pattern.h"
#include "simulator/step/op_chains.h"
#include "simulator/step/op_spans.h"
#include "simulator/step/plan_structure.h"

namespace stowage::planner::builtin {
namespace {

constexpr const char* kList = "mm+addmm+bmm+baddbmm+*convolution*+*scaled_dot_product*";

Result<std::vector<simulator::Pattern>> listed_ops(const std::string& text) {
  std::vector<simulator::Pattern> patterns;
  for (std::size_t start = 0; start <= text.size();) {
    const std::size_t plus = std::min(text.find('+', start), text.size());
    const auto pattern = simulator::Pattern::parse("aten::" + text.substr(start, plus - start));
    if (plus == start || !pattern) return bad_option("save", text, "names of ops, such as mm+bmm");
    patterns.push_back(*pattern);
    start = plus + 1;
  }
  return patterns;
}

// Sites of each storage that ops can make again, but for what an op of the list makes.
std::map<StorageId, std::vector<std::string>> candidates(
    const Trace& trace, const simulator::ChainFinder& chains,
    const std::vector<simulator::Pattern>& saved_ops) {
  const simulator::OpSpans spans(trace);
  std::map<StorageId, std::vector<std::string>> sites;
  for (std::size_t s = 0; s < trace.saved.size(); ++s) {
    const StorageId of = trace.saved.storage[s];
    if (!of.valid() || !chains.check(SavedId(s))) continue;
    const OpId maker = spans.primitive(trace.storages.alloc_op[of.index()]);
    const bool is_listed =
        maker.valid() &&
        std::any_of(saved_ops.begin(), saved_ops.end(), [&](const simulator::Pattern& pattern) {
          return pattern.matches(trace.string(trace.ops.name[maker.index()]));
        });
    if (!is_listed) sites[of].push_back(trace.string(trace.saved.site[s]));
  }
  return sites;
}

}  // namespace

PolicyInfo selective_info() {
  return {"selective",
          "What listed ops make is saved, everything else that ops can make again is made again",
          {{"save", kList, "ops whose results are saved, patterns joined by +"}},
          true};
}

Rules selective_rules(const simulator::StepIndex& index, const Options& options) {
  const auto saved_ops = listed_ops(options.at("save"));
  if (!saved_ops) return saved_ops.error();
  const Trace& recording = index.step().recording();
  const simulator::ChainFinder chains(recording);
  simulator::Structure structure;
  for (const auto& [storage, sites] : candidates(recording, chains, *saved_ops)) {
    structure.ops.insert(structure.ops.end(), sites.begin(), sites.end());
  }
  if (!structure.ops.empty() && !chains.find(structure.ops)) {
    // Some of them cannot, with all the others: one storage more at a time, as long as they can.
    structure.ops.clear();
    for (const auto& [storage, sites] : candidates(recording, chains, *saved_ops)) {
      std::vector<std::string> more = structure.ops;
      more.insert(more.end(), sites.begin(), sites.end());
      if (chains.find(more)) structure.ops = std::move(more);
    }
  }
  if (structure.ops.empty()) {
    return Error{ErrorCode::bad_input,
                 "policy selective: ops can make nothing of what the recording saves again", "", "",
                 "record it again if it is of a schema before 1.9, or list fewer ops"};
  }
  std::sort(structure.ops.begin(), structure.ops.end());
  PolicyRules rules{simulator::op_rules(recording, structure), {}, {}};
  rules.saved.push_back(keep_the_rest());
  return rules;
}

}  // namespace stowage::planner::builtin
