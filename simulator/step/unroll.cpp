#include "simulator/step/unroll.h"

#include <memory>
#include <optional>
#include <utility>

#include "simulator/step/composed_step.h"
#include "simulator/step/step_composer.h"
#include "simulator/step/template_choice.h"
#include "simulator/step/update_section.h"
#include "traces/validate.h"

namespace stowage::simulator {

Result<Step> unroll(const Trace& recording, const Structure& structure,
                    const std::vector<StepTemplate>& templates) {
  Result<std::vector<const StepTemplate*>> chosen =
      choose_templates(recording, structure, templates);
  if (!chosen) return std::move(chosen).error();
  std::optional<StepTemplate> without_update;
  if (!structure.update) {
    Result<UpdateSection> section = update_section(recording);
    if (!section) return std::move(section).error();
    without_update = leave_out(*section);
    chosen->push_back(&*without_update);
  }
  if (chosen->empty()) return Step(recording);
  // The recording outlives the step, so the layout does not own it.
  StepLayout layout(std::shared_ptr<const Trace>(std::shared_ptr<const Trace>(), &recording));
  for (const StepTemplate& each : templates) {
    for (const TemplateSource& source : each.sources) {
      if (source.trace != nullptr) layout.add_source(source.name, source.trace);
    }
  }
  TemplateGroups groups(layout);
  if (Status added = add_pieces(*chosen, groups, layout); !added) return std::move(added).error();
  if (Status done = layout.lay_out(); !done) return std::move(done).error();
  Result<Trace> trace = compose(layout);
  if (!trace) return std::move(trace).error();
  if (Status valid = validate(*trace, "", Sites::repeated); !valid) {
    Error error = std::move(valid).error();
    error.message = "the step under this structure: " + error.pointer + " " + error.message;
    error.pointer.clear();
    error.hint.clear();
    return error;
  }
  auto composed =
      std::make_shared<ComposedStep>(ComposedStep{std::move(layout), std::move(trace).value()});
  return Step(recording, std::move(composed));
}

}  // namespace stowage::simulator
