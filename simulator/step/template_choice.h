// Which templates a structure asks for, and their pieces among those of the recording.
#pragma once

#include <map>
#include <tuple>
#include <vector>

#include "simulator/step/step_layout.h"
#include "simulator/step/step_template.h"
#include "simulator/step/structure.h"
#include "traces/result.h"

namespace stowage::simulator {

// One for each decision of the structure, in its order. Errors: see unroll().
[[nodiscard]] Result<std::vector<const StepTemplate*>> choose_templates(
    const Trace& recording, const Structure& structure, const std::vector<StepTemplate>& templates);

// A template names events, storages and sources that are there. `recording` is that of the step.
[[nodiscard]] Status check_template(const Trace& recording, const StepTemplate& of);

// Groups of the templates' pieces in a layout, added when they are first needed.
class TemplateGroups {
 public:
  // The layout must outlive this.
  explicit TemplateGroups(StepLayout& layout) : layout_(&layout) {}
  [[nodiscard]] std::int32_t of(const StepTemplate& owner, const Piece& piece);

 private:
  StepLayout* layout_;
  std::map<std::tuple<const StepTemplate*, std::int32_t, std::int32_t>, std::int32_t> groups_;
};

// Adds the pieces of the step to a layout without any: the chosen templates', which own them by
// their row, and between them the recording's. Error: two of them replace the same event.
[[nodiscard]] Status add_pieces(const std::vector<const StepTemplate*>& chosen,
                                TemplateGroups& groups, StepLayout& layout);

}  // namespace stowage::simulator
