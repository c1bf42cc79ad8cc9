// Selective activation checkpointing: torch.utils.checkpoint with a policy of ops
// (create_selective_checkpoint_contexts, MUST_SAVE for the ops of a list, PREFER_RECOMPUTE for all
// others), as torchtitan applies it to every layer. Its lists name products of matrices, attention
// and, for vision, convolutions.
//
// torchtitan counts products of matrices in each layer and saves the results of every second one
// only: `every=2`.
//
// Approximated: there a layer's forward runs again as a whole, with what the list names put in its
// place; here what the list does not name is made again by its own ops, and what they cannot make
// (products with parameters, random numbers, writes) stays, which a note counts. Layers are not
// chosen: it is everything that is saved.
#include <algorithm>
#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "planner/policies/policies.h"
#include "simulator/plan/pattern.h"
#include "simulator/plan/pattern_text.h"
#include "simulator/step/op_chains.h"
#include "simulator/step/op_spans.h"
#include "simulator/step/plan_structure.h"
#include "traces/nearest.h"
#include "traces/size_text.h"

namespace stowage::planner::builtin {
namespace {

constexpr const char* kList = "mm+addmm+bmm+baddbmm+*convolution*+*scaled_dot_product*";

// That no op of the recording is called so; none: one is.
std::optional<Error> names_no_op(const Trace& trace, const std::string& name,
                                 const simulator::Pattern& pattern) {
  constexpr std::string_view kSpace = "aten::";
  std::vector<std::string> names;
  std::set<StringId> seen;
  for (const StringId op : trace.ops.name) {
    if (!seen.insert(op).second) continue;
    const std::string& known = trace.string(op);
    if (pattern.matches(known)) return std::nullopt;
    if (known.starts_with(kSpace)) names.push_back(known.substr(kSpace.size()));
  }
  const std::string near = nearest(name, names);
  return bad_option("save", name,
                    "no op of the recording is called so" +
                        (near.empty() ? std::string() : "; the nearest is '" + near + "'"));
}

// Of the default list some may be of no use to a model, of a user's none.
Result<std::vector<simulator::Pattern>> listed_ops(const Trace& trace, const std::string& text) {
  std::vector<simulator::Pattern> patterns;
  for (std::size_t start = 0; start <= text.size();) {
    const std::size_t plus = std::min(text.find('+', start), text.size());
    const std::string name = text.substr(start, plus - start);
    const auto pattern = simulator::Pattern::parse("aten::" + name);
    if (plus == start || !pattern) return bad_option("save", text, "names of ops, such as mm+bmm");
    if (text != kList) {
      if (auto error = names_no_op(trace, name, *pattern)) return *std::move(error);
    }
    patterns.push_back(*pattern);
    start = plus + 1;
  }
  return patterns;
}

// "layers.3" of "layers.3.attn"; empty: in no numbered layer.
std::string numbered_layer(const Trace& trace, OpId op) {
  const LayerId layer = trace.ops.layer[op.index()];
  if (!layer.valid()) return "";
  const simulator::NumberedPath path =
      simulator::take_apart(trace.string(trace.layers.name[layer.index()]));
  return path.number < 0 ? "" : path.prefix + std::to_string(path.number);
}

struct ListedOps {
  std::vector<bool> is_listed;     // by op
  std::int32_t most_products = 0;  // of matrices, in a layer; counted where `every` is above 0
};

// What the list names. `every`: of the products of matrices in a layer it leaves out every Nth; 0:
// none.
ListedOps ops_of_list(const Trace& trace, const std::vector<simulator::Pattern>& patterns,
                      std::int32_t every) {
  ListedOps listed;
  std::vector<bool>& is_listed = listed.is_listed;
  is_listed.assign(trace.ops.size(), false);
  std::map<std::string, std::int32_t> products;
  for (std::size_t o = 0; o < trace.ops.size(); ++o) {
    const std::string& name = trace.string(trace.ops.name[o]);
    is_listed[o] = std::any_of(patterns.begin(), patterns.end(),
                               [&](const auto& pattern) { return pattern.matches(name); });
    const bool is_product =
        every > 0 && is_listed[o] && trace.ops.primitive[o] != 0 && name.ends_with("mm");
    if (!is_product) continue;
    const std::string layer = numbered_layer(trace, OpId(o));
    if (layer.empty()) continue;
    const std::int32_t number = ++products[layer];
    listed.most_products = std::max(listed.most_products, number);
    if (number % every == 0) is_listed[o] = false;
  }
  return listed;
}

// What the list does not name, by what becomes of it.
class Unlisted {
 public:
  Unlisted(const Trace& trace, const simulator::ChainFinder& chains,
           const std::vector<bool>& is_listed)
      : trace_(trace) {
    const simulator::OpSpans spans(trace);
    for (std::size_t s = 0; s < trace.saved.size(); ++s) {
      const StorageId of = trace.saved.storage[s];
      const bool is_own = of.valid() && trace.storages.alloc_event[of.index()].valid();
      if (!is_own || trace.storages.device[of.index()] != 0) continue;
      const OpId maker = spans.primitive(trace.storages.alloc_op[of.index()]);
      if (maker.valid() && is_listed[maker.index()]) continue;
      if (const Status able = chains.check(SavedId(s)); able) {
        sites_[of].push_back(trace.string(trace.saved.site[s]));
      } else {
        stays(of, able.error().message);
      }
    }
  }

  // Sites that ops make again: all of `sites_`, or, where some of them cannot with all the others,
  // one storage more at a time, as long as they can.
  std::vector<std::string> made_again(const simulator::ChainFinder& chains) {
    std::vector<std::string> all;
    for (const auto& [storage, sites] : sites_) all.insert(all.end(), sites.begin(), sites.end());
    if (all.empty() || chains.find(all)) return all;
    all.clear();
    for (const auto& [storage, sites] : sites_) {
      std::vector<std::string> more = all;
      more.insert(more.end(), sites.begin(), sites.end());
      if (const auto found = chains.find(more); found) {
        all = std::move(more);
      } else {
        stays(storage, found.error().message);
      }
    }
    return all;
  }

  // One for each reason, the most bytes first.
  [[nodiscard]] std::vector<std::string> notes() const {
    std::vector<std::pair<Bytes, std::string>> rows;
    for (const auto& [why, storages] : stays_) {
      Bytes bytes = 0;
      for (const StorageId each : storages) bytes += trace_.storages.bytes[each.index()];
      rows.emplace_back(-bytes, std::to_string(storages.size()) + " saved, " + format_bytes(bytes) +
                                    ", not of the list, stay: " + why);
    }
    std::sort(rows.begin(), rows.end());
    std::vector<std::string> notes;
    for (auto& [bytes, text] : rows) notes.push_back("policy selective: " + std::move(text));
    return notes;
  }

 private:
  // "layers.3#1 cannot be made again by ops: WHY" -> WHY
  void stays(StorageId storage, const std::string& message) {
    constexpr std::string_view kWhy = "cannot be made again by ops: ";
    const std::size_t at = message.find(kWhy);
    stays_[at == std::string::npos ? "not all that saves it can be made again"
                                   : message.substr(at + kWhy.size())]
        .insert(storage);
  }

  const Trace& trace_;
  std::map<StorageId, std::vector<std::string>> sites_;  // that ops can make again
  std::map<std::string, std::set<StorageId>> stays_;     // by reason
};

}  // namespace

PolicyInfo selective_info() {
  return {"selective",
          "What listed ops make is saved, everything else that ops can make again is made again",
          {{"save", kList, "ops whose results are saved, patterns joined by +"},
           {"every", "0", "of a layer's products of matrices every Nth is not saved; 0: all are"}},
          true};
}

Rules selective_rules(const simulator::StepIndex& index, const Options& options) {
  const Trace& recording = index.step().recording();
  const auto saved_ops = listed_ops(recording, options.at("save"));
  if (!saved_ops) return saved_ops.error();
  const Result<std::int32_t> every = whole_number(options, "every", 0, "products");
  if (!every) return every.error();
  const ListedOps listed = ops_of_list(recording, *saved_ops, *every);
  const simulator::ChainFinder chains(recording);
  Unlisted unlisted(recording, chains, listed.is_listed);
  simulator::Structure structure;
  structure.ops = unlisted.made_again(chains);
  if (structure.ops.empty()) {
    return Error{ErrorCode::bad_input,
                 "policy selective: ops can make nothing of what the recording saves again", "", "",
                 "record it again if it is of a schema before 1.9, or list fewer ops"};
  }
  std::sort(structure.ops.begin(), structure.ops.end());
  PolicyRules rules{simulator::op_rules(recording, structure), {}, {}};
  rules.saved.push_back(keep_the_rest());
  rules.notes = unlisted.notes();
  if (*every > listed.most_products) {
    rules.notes.insert(rules.notes.begin(), "policy selective: no numbered layer has more than " +
                                                std::to_string(listed.most_products) +
                                                " listed products of matrices, so that every=" +
                                                std::to_string(*every) + " leaves out none");
  }
  return rules;
}

}  // namespace stowage::planner::builtin
