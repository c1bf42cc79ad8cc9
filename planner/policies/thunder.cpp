// Lightning Thunder's CPU offloading transform: every tensor saved for backward that is no input of
// the step leaves after its last forward use and returns right before its first backward use,
// without overlap. Options as in its notebook: only the biggest, or only what certain ops saved.
//
// As a plan: the copy blocks at the pack, the reload is on demand on the compute stream.
// Approximated: the copy stands at the first pack instead of after the last forward use. The bytes
// go where they do there, since a storage's bytes are gone at the later of release and natural
// free, and the natural free is behind the last forward use; so the peak is the same and only the
// place of the stall differs.
#include <algorithm>
#include <cstddef>
#include <optional>
#include <string_view>

#include "planner/policies/policies.h"
#include "simulator/plan/decisions.h"
#include "simulator/plan/pattern.h"
#include "simulator/plan/rule_match.h"
#include "traces/units.h"

namespace stowage::planner::builtin {

using simulator::CopyMode;
using simulator::Decision;
using simulator::ReleasePoint;
using simulator::ReloadPoint;

namespace {

// "0.25", "1", "25%" -> parts per million, in (0, 1].
std::optional<Ppm> parse_fraction(std::string_view text) {
  bool percent = false;
  if (!text.empty() && text.back() == '%') {
    percent = true;
    text.remove_suffix(1);
  }
  Ppm value = 0;
  Ppm unit = percent ? kPpm / 100 : kPpm;
  bool point = false;
  bool digits = false;
  for (const char c : text) {
    if (c == '.' && !point) {
      point = true;
    } else if (c < '0' || c > '9' || value > kPpm) {
      return std::nullopt;
    } else if (point) {
      unit /= 10;
      value += (c - '0') * unit;
      digits = true;
    } else {
      value = value * 10 + (c - '0') * unit;
      digits = true;
    }
  }
  if (!digits || value <= 0 || value > kPpm) return std::nullopt;
  return value;
}

}  // namespace

PolicyInfo thunder_info() {
  return {
      "thunder",
      "Every saved intermediate leaves, blocking, and returns right before its first backward use",
      {{"fraction", "1", "only the largest storages that make up this part of the saved bytes"},
       {"op", "*", "only what ops of this name (a pattern) saved"}}};
}

Rules thunder_rules(const simulator::StepIndex& index, const Options& options) {
  const auto fraction = parse_fraction(options.at("fraction"));
  if (!fraction) {
    return bad_option("fraction", options.at("fraction"), "a number above 0 and up to 1");
  }
  const auto op = simulator::Pattern::parse(options.at("op"));
  if (!op) return bad_option("op", options.at("op"), "a pattern such as aten::*softmax");

  const Trace& trace = index.trace();
  std::vector<StorageId> storages;
  Bytes total = 0;
  for (std::size_t s = 0; s < trace.storages.size(); ++s) {
    const StorageId storage(s);
    const auto& saved = index.saved_of(storage);
    if (saved.empty() || simulator::pre_existing(trace, storage)) continue;
    const OpId saver = trace.saved.op[saved.front().index()];
    const std::string& name =
        saver.valid() ? trace.string(trace.ops.name[saver.index()]) : std::string();
    if (!op->matches(name)) continue;
    storages.push_back(storage);
    total += trace.storages.bytes[s];
  }
  std::stable_sort(storages.begin(), storages.end(), [&](StorageId a, StorageId b) {
    return trace.storages.bytes[a.index()] > trace.storages.bytes[b.index()];
  });

  simulator::Decisions decisions;
  decisions.saved.resize(trace.saved.size());
  // Wide enough: bytes up to 2^63 times a million.
  const auto enough = static_cast<Bytes>(static_cast<Wide>(total) * *fraction / kPpm);
  Bytes taken = 0;
  for (const StorageId storage : storages) {
    if (taken >= enough) break;
    taken += trace.storages.bytes[storage.index()];
    for (const SavedId saved : index.saved_of(storage)) {
      simulator::SavedDecision& decision = decisions.saved[saved.index()];
      decision.decision = Decision::offload;
      decision.release.kind = ReleasePoint::Kind::pack;
      decision.reload.kind = ReloadPoint::Kind::unpack;
      decision.copy_out = CopyMode::blocking;
      decision.copy_in = CopyMode::compute;
    }
  }
  return PolicyRules{simulator::to_rules(trace, decisions), {}, {}};
}

}  // namespace stowage::planner::builtin
