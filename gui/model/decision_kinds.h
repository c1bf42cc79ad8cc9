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
  QString id;      // as in the plan: "keep", "offload", "recompute"; "stay", "stream" of parameters
  QString action;  // "Keep on the device"
  QString help;    // one sentence
  PlanRowKind of;  // saved or parameters
  QChar key;       // with Shift: the parameters of a layer
  QChar glyph;     // beside the word: told apart without colour
  bool (*holds_saved)(const PlanDecisions&, SavedId);
  bool (*holds_parameters)(const PlanDecisions&, const StreamingLayer&);
  // An edit of the document; false = nothing changed.
  bool (*apply)(PlanDocument&, const PlanTree::Targets&);
};

[[nodiscard]] const std::vector<DecisionKind>& decision_kinds();
// Null for an unknown id.
[[nodiscard]] const DecisionKind* decision_kind(const QString& id);

// Which kind a row has: index into decision_kinds(), -1 = none (optimizer state).
[[nodiscard]] int kind_of(const PlanDecisions& decisions, const PlanTree& tree, const PlanRow& row);

// Applies to the targets every kind with this key, as one undo step; with `shift` only those of
// parameters. False = nothing changed.
bool apply_key(PlanDocument& document, QChar key, bool shift, const PlanTree& tree,
               const std::vector<std::int32_t>& rows);

}  // namespace stowage::gui
