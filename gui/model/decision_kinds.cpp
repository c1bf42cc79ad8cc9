#include "gui/model/decision_kinds.h"

#include <algorithm>

namespace stowage::gui {
namespace {

using simulator::Decision;

// What a layer saves that runs again is neither kept nor offloaded.
template <Decision decision>
bool saved_is(const PlanDecisions& decisions, SavedId saved) {
  return !decisions.runs_again(saved) && decisions.saved_is(saved, decision);
}

bool saved_again(const PlanDecisions& decisions, SavedId saved) {
  return decisions.runs_again(saved);
}

template <Decision decision>
bool decide(PlanDocument& document, const PlanTree::Targets& targets) {
  return document.set_decision(targets.saved, decision);
}

bool recompute(PlanDocument& document, const PlanTree::Targets& targets) {
  return document.set_recompute(targets.layers, targets.alone);
}

template <bool stream>
bool parameters_are(const PlanDecisions& decisions, const StreamingLayer& layer) {
  return streams(decisions, layer) == stream;
}

template <bool stream>
bool place(PlanDocument& document, const PlanTree::Targets& targets) {
  return document.set_streaming(targets.parameters, stream);
}

QString tr(const char* text) {
  return QObject::tr(text);
}

}  // namespace

const std::vector<DecisionKind>& decision_kinds() {
  static const std::vector<DecisionKind> kinds = {
      {"keep", tr("Keep on the device"), tr("The saved tensor stays on the device until backward."),
       PlanRowKind::saved, u'K', QChar(0x25CB), saved_is<Decision::keep>, nullptr,
       decide<Decision::keep>},
      {"offload", tr("Offload to the host"),
       tr("The saved tensor is copied to the host after forward and back ahead of backward."),
       PlanRowKind::saved, u'O', QChar(0x25CF), saved_is<Decision::offload>, nullptr,
       decide<Decision::offload>},
      {"recompute", tr("Recompute in backward"),
       tr("Given up in forward and made again in backward: a layer runs again, a single saved "
          "tensor "
          "is made by a few ops."),
       PlanRowKind::saved, u'R', QChar(0x21BB), saved_again, nullptr, recompute},
      {"stay", tr("Keep the parameters on the device"), tr("The parameters stay on the device."),
       PlanRowKind::parameters, u'K', QChar(0x25CB), nullptr, parameters_are<false>, place<false>},
      {"stream", tr("Stream the parameters"),
       tr("The parameters are on the device only while they are needed."), PlanRowKind::parameters,
       u'O', QChar(0x25CF), nullptr, parameters_are<true>, place<true>},
  };
  return kinds;
}

const DecisionKind* decision_kind(const QString& id) {
  const auto& kinds = decision_kinds();
  const auto at = std::find_if(kinds.begin(), kinds.end(),
                               [&](const DecisionKind& kind) { return kind.id == id; });
  return at == kinds.end() ? nullptr : &*at;
}

int kind_of(const PlanDecisions& decisions, const PlanTree& tree, const PlanRow& row) {
  const auto& kinds = decision_kinds();
  for (std::size_t i = 0; i < kinds.size(); ++i) {
    if (kinds[i].of != row.kind) continue;
    const bool holds =
        row.kind == PlanRowKind::saved
            ? kinds[i].holds_saved(decisions, row.saved)
            : kinds[i].holds_parameters(decisions,
                                        tree.streaming[static_cast<std::size_t>(row.streaming)]);
    if (holds) return static_cast<int>(i);
  }
  return -1;
}

bool apply_key(PlanDocument& document, QChar key, bool shift, const PlanTree& tree,
               const std::vector<std::int32_t>& rows) {
  PlanTree::Targets targets = tree.targets_of(rows, shift);
  if (shift) targets.saved.clear();
  if (targets.empty() || !document.can_edit()) return false;
  // An edit that changes nothing is none.
  const PlanDecisions& now =
      document.state()->decisions ? *document.state()->decisions : *document.current()->decisions;
  const auto differs = [&](const DecisionKind& kind) {
    const auto other_saved = [&](SavedId row) { return !kind.holds_saved(now, row); };
    const auto other_layer = [&](const auto& row) { return !kind.holds_parameters(now, row); };
    return kind.key == key &&
           (kind.of == PlanRowKind::saved
                ? std::any_of(targets.saved.begin(), targets.saved.end(), other_saved)
                : std::any_of(targets.parameters.begin(), targets.parameters.end(), other_layer));
  };
  if (std::none_of(decision_kinds().begin(), decision_kinds().end(), differs)) return false;
  bool changed = false;
  const bool both = !targets.saved.empty() && !targets.parameters.empty();
  if (both) document.undo_stack().beginMacro(tr("Change saved tensors and parameters"));
  for (const DecisionKind& kind : decision_kinds()) {
    if (kind.key == key) changed = kind.apply(document, targets) || changed;
  }
  if (both) document.undo_stack().endMacro();
  return changed;
}

}  // namespace stowage::gui
