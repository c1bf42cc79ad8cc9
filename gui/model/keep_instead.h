// Of a copy or a stall: what would not have to move if the plan kept it on the device, and the edit
// that does so.
#pragma once

#include <string>
#include <vector>

#include "gui/model/explained.h"
#include "gui/model/plan_document.h"
#include "gui/model/view_state.h"

namespace stowage::gui {

struct KeepInstead {
  std::string name;            // "layers.3.mlp#2", "parameters of head"
  std::vector<SavedId> saved;  // rows of the recording; what else is decided about stays empty
  std::vector<StreamingLayer> parameters;
  std::vector<StreamingLayer> state;
  Selection then;  // what is selected when it does not move any more
  [[nodiscard]] bool empty() const { return saved.empty() && parameters.empty() && state.empty(); }
};

// Of a stall, or of a copy; empty of everything else, and of what nothing decides about: gradients
// that a plan has on the host. Cost: O(storages).
[[nodiscard]] KeepInstead keep_instead(const Explained& explained, const Selection& selection);

// One edit, replayed like others; it is pinned, so that a search does not move it again. False:
// nothing changed but that.
bool keep(PlanDocument& document, const KeepInstead& what);

}  // namespace stowage::gui
