// Which templates a structure asks for, and their pieces among those of the recording.
#pragma once

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

// Adds the pieces of the step to an empty layout: the chosen templates', and between them the
// recording's. Error: two of them replace the same event.
[[nodiscard]] Status add_pieces(const std::vector<const StepTemplate*>& chosen, StepLayout& layout);

}  // namespace stowage::simulator
