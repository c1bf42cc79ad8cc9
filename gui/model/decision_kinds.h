// The kinds of decisions, once: the plan tree's column, its menus and its keys are made from this
// table, so that a new kind needs a row here and nothing in the views.
#pragma once

#include <QChar>
#include <QString>
#include <vector>

#include "gui/model/plan_document.h"
#include "gui/model/plan_tree.h"

namespace stowage::gui {

struct DecisionKind {
  QString id;
  QString word;    // as in the plan: "keep", "offload", "recompute"; "stay", "stream", "host"
  QString action;  // "Keep on the device"
  QString help;    // one sentence
  PlanRowKind of;  // saved, parameters or optimizer_state
  QChar key;       // together with modifiers_of(): what is `of` that kind in layers
  QChar glyph;     // beside the word: told apart without colour
  bool (*holds_saved)(const PlanDecisions&, SavedId);
  bool (*holds_streaming)(const PlanDecisions&, const StreamingLayer&);
  // An edit of the document; false = nothing changed.
  bool (*apply)(PlanDocument&, const PlanTree::Targets&);
};

[[nodiscard]] const std::vector<DecisionKind>& decision_kinds();
// Null for an unknown id.
[[nodiscard]] const DecisionKind* decision_kind(const QString& id);

// What is pressed together with a key so that layers stand for what is of that kind in them; none
// for saved tensors.
[[nodiscard]] Qt::KeyboardModifiers modifiers_of(PlanRowKind kind);
// The other way; modifiers that mean nothing stand for saved tensors.
[[nodiscard]] PlanRowKind of_layers_with(Qt::KeyboardModifiers modifiers);

// Which kind a row has: index into decision_kinds(), -1 = none. What cannot stream stays, whatever
// a plan's rules say of it.
[[nodiscard]] int kind_of(const PlanDecisions& decisions, const PlanTree& tree, const PlanRow& row);

// Applies to the targets (PlanTree::targets_of) every kind with this key, as one undo step.
// False = nothing changed.
bool apply_key(PlanDocument& document, QChar key, PlanRowKind of_layers, const PlanTree& tree,
               const std::vector<std::int32_t>& rows);

}  // namespace stowage::gui
