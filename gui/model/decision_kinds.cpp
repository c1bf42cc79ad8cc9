#include "gui/model/decision_kinds.h"

#include <algorithm>

namespace stowage::gui {
namespace {

using simulator::Decision;
using simulator::StatePlace;

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

template <StatePlace place>
bool state_is(const PlanDecisions& decisions, const StreamingLayer& layer) {
  return state_place(decisions, layer) == place;
}

template <StatePlace place>
bool place_state(PlanDocument& document, const PlanTree::Targets& targets) {
  return document.set_state_place(targets.state, place);
}

QString tr(const char* text) {
  return QObject::tr(text);
}

}  // namespace

const std::vector<DecisionKind>& decision_kinds() {
  constexpr QChar kStays(0x25CB);
  constexpr QChar kMoves(0x25CF);
  constexpr QChar kAgain(0x21BB);
  constexpr QChar kHost(0x25C6);
  const QString stay = QStringLiteral("stay");
  const QString stream = QStringLiteral("stream");
  static const std::vector<DecisionKind> kinds = {
      {"keep", "keep", tr("Keep on the device"),
       tr("The saved tensor stays on the device until backward."), PlanRowKind::saved, u'K', kStays,
       saved_is<Decision::keep>, nullptr, decide<Decision::keep>},
      {"offload", "offload", tr("Offload to the host"),
       tr("The saved tensor is copied to the host after forward and back ahead of backward."),
       PlanRowKind::saved, u'O', kMoves, saved_is<Decision::offload>, nullptr,
       decide<Decision::offload>},
      {"recompute", "recompute", tr("Recompute in backward"),
       tr("Given up in forward and made again in backward: a layer runs again, a single saved "
          "tensor "
          "is made by a few ops."),
       PlanRowKind::saved, u'R', kAgain, saved_again, nullptr, recompute},
      {"stay", stay, tr("Keep the parameters on the device"),
       tr("The parameters stay on the device."), PlanRowKind::parameters, u'K', kStays, nullptr,
       parameters_are<false>, place<false>},
      {"stream", stream, tr("Stream the parameters"),
       tr("The parameters are on the device only while they are needed."), PlanRowKind::parameters,
       u'O', kMoves, nullptr, parameters_are<true>, place<true>},
      {"stay_state", stay, tr("Keep the optimizer state on the device"),
       tr("The optimizer state stays on the device."), PlanRowKind::optimizer_state, u'K', kStays,
       nullptr, state_is<StatePlace::device>, place_state<StatePlace::device>},
      {"stream_state", stream, tr("Stream the optimizer state"),
       tr("The optimizer state is on the device only for the update of its parameters."),
       PlanRowKind::optimizer_state, u'O', kMoves, nullptr, state_is<StatePlace::stream>,
       place_state<StatePlace::stream>},
      {"host_state", QStringLiteral("host"), tr("Update on the host"),
       tr("The host updates the parameters, beside backward: their optimizer state is never on the "
          "device."),
       PlanRowKind::optimizer_state, u'H', kHost, nullptr, state_is<StatePlace::host>,
       place_state<StatePlace::host>},
  };
  return kinds;
}

const DecisionKind* decision_kind(const QString& id) {
  const auto& kinds = decision_kinds();
  const auto at = std::find_if(kinds.begin(), kinds.end(),
                               [&](const DecisionKind& kind) { return kind.id == id; });
  return at == kinds.end() ? nullptr : &*at;
}

Qt::KeyboardModifiers modifiers_of(PlanRowKind kind) {
  if (kind == PlanRowKind::parameters) return Qt::ShiftModifier;
  if (kind == PlanRowKind::optimizer_state) return Qt::ControlModifier | Qt::ShiftModifier;
  return Qt::NoModifier;
}

PlanRowKind of_layers_with(Qt::KeyboardModifiers modifiers) {
  for (const PlanRowKind kind : {PlanRowKind::parameters, PlanRowKind::optimizer_state}) {
    if (modifiers == modifiers_of(kind)) return kind;
  }
  return PlanRowKind::saved;
}

int kind_of(const PlanDecisions& decisions, const PlanTree& tree, const PlanRow& row) {
  const bool streams = row.kind != PlanRowKind::saved && row.kind != PlanRowKind::layer;
  const bool can_stream = streams && tree.reason_to_stay(row).empty();
  const auto holds = [&](const DecisionKind& kind) {
    if (kind.of != row.kind) return false;
    if (!streams) return kind.holds_saved(decisions, row.saved);
    return can_stream ? kind.holds_streaming(decisions, tree.streaming_of(row)) : kind.key == u'K';
  };
  const auto& kinds = decision_kinds();
  const auto at = std::find_if(kinds.begin(), kinds.end(), holds);
  return at == kinds.end() ? -1 : static_cast<int>(at - kinds.begin());
}

bool apply_key(PlanDocument& document, QChar key, PlanRowKind of_layers, const PlanTree& tree,
               const std::vector<std::int32_t>& rows) {
  const PlanTree::Targets targets = tree.targets_of(rows, of_layers);
  if (!document.can_edit()) return false;
  // An edit that changes nothing is none.
  const PlanDecisions& now =
      document.state()->decisions ? *document.state()->decisions : *document.current()->decisions;
  const auto differs = [&](const DecisionKind& kind) {
    const auto other_saved = [&](SavedId row) { return !kind.holds_saved(now, row); };
    const auto other_layer = [&](const auto& row) { return !kind.holds_streaming(now, row); };
    const auto any = [](const auto& list, const auto& other) {
      return std::any_of(list.begin(), list.end(), other);
    };
    if (kind.of == PlanRowKind::saved) return any(targets.saved, other_saved);
    return any(kind.of == PlanRowKind::parameters ? targets.parameters : targets.state,
               other_layer);
  };
  std::vector<const DecisionKind*> kinds;
  for (const DecisionKind& kind : decision_kinds()) {
    if (kind.key == key && differs(kind)) kinds.push_back(&kind);
  }
  bool changed = false;
  const bool several = kinds.size() > 1;
  if (several) document.undo_stack().beginMacro(tr("Change what is selected"));
  for (const DecisionKind* kind : kinds) changed = kind->apply(document, targets) || changed;
  if (several) document.undo_stack().endMacro();
  return changed;
}

}  // namespace stowage::gui
