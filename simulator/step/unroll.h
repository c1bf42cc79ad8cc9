// unroll(): a structure onto a recording, into a Step.
#pragma once

#include <string>
#include <vector>

#include "simulator/step/step.h"
#include "simulator/step/step_template.h"
#include "simulator/step/structure.h"
#include "traces/result.h"
#include "traces/trace.h"

namespace stowage::simulator {

// Error (bad_input) where the recording is of a step that computes again itself: what a plan leaves
// out or makes again must be the model's own.
[[nodiscard]] Status runs_nothing_again(const Trace& recording);

// What of the recorded step runs in parts of the batch.
[[nodiscard]] std::vector<Structure::Parts> recorded_parts(const Trace& recording);
// Writes that down.
void set_recorded_parts(const std::vector<Structure::Parts>& parts, Trace& recording);

// "head in 4 parts"; several with "and".
[[nodiscard]] std::string parts_text(const std::vector<Structure::Parts>& parts);
[[nodiscard]] bool is_in_parts(const Trace& recording, const std::vector<Structure::Parts>& parts);

// The recording of the step in these parts, in any order: itself, or one of its Trace::divided. No
// parts: itself, as it was recorded. Error (bad_input): it was not recorded in them; the hint says
// in which it was. Cost: O(divided).
[[nodiscard]] Result<const Trace*> recording_in_parts(const Trace& recording,
                                                      const std::vector<Structure::Parts>& parts);

// The recording with the templates of the structure's decisions in the place of the events that
// they replace, and without its update where the structure says so (update_section.h); without
// structure the recording itself. Without templates the recording is recording_in_parts(). The step
// refers to the recording and shares the templates' passes. Its tables are valid
// (traces/validate.h). Errors (bad_input): a segment that is no layer of the recording or has no
// template (with what to record), decisions that replace the same events, a template that names
// what is not there or whose pieces do not make a whole step, no update that can be left out. Of
// one about a segment or a site that runs again the pointer is its entry: "/recompute/3", "/ops/0".
// Cost: that of compose(), and of validate().
[[nodiscard]] Result<Step> unroll(const Trace& recording, const Structure& structure,
                                  const std::vector<StepTemplate>& templates = {});

}  // namespace stowage::simulator
