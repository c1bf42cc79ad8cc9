// Everything that is known of what is selected, in rows of a name and a value; of the whole step
// while nothing is.
#pragma once

#include <string>
#include <vector>

#include "gui/model/explained.h"
#include "gui/model/view_state.h"

namespace stowage::gui {

struct DetailRow {
  std::string name;   // "First use"
  std::string value;  // with its unit; "12.5 ms, at aten::mm (op 812) in layers.3.mlp, forward"
  Selection link;     // what the row speaks of, to select it; none = nothing else
};

struct DetailSection {
  std::string title;
  std::vector<DetailRow> rows;
};

struct Details {
  std::string title;  // "layers.3.mlp#2 (58.7 MB)"; empty: what was selected is gone
  std::vector<DetailSection> sections;
};

// Times are of the planned step, as replayed. Without a selection they are of
// the step, its machine, its time and its peaks. A selection that is no row of its table (any
// more) gives none. Cost: O(rows about it); of a layer O(trace).
[[nodiscard]] Details details_of(const Explained& explained, const Selection& selection);

// "Name: value" lines, a heading ahead of each section: for the clipboard.
[[nodiscard]] std::string details_text(const Details& details);

}  // namespace stowage::gui
