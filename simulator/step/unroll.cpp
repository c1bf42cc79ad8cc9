#include "simulator/step/unroll.h"

#include <algorithm>
#include <cstddef>
#include <iterator>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "simulator/step/composed_step.h"
#include "simulator/step/device_updates.h"
#include "simulator/step/nested_segments.h"
#include "simulator/step/op_chains.h"
#include "simulator/step/recomputed_step.h"
#include "simulator/step/segments.h"
#include "simulator/step/step_composer.h"
#include "simulator/step/template_choice.h"
#include "simulator/step/update_section.h"
#include "traces/validate.h"

namespace stowage::simulator {
namespace {

Error of_structure(Error error) {
  error.message = "the step under this structure: " + error.pointer + " " + error.message;
  error.pointer.clear();
  error.hint.clear();
  return error;
}

Result<Step> unroll_segments(const Trace& recording, const Structure& structure) {
  if (Status status = runs_nothing_again(recording); !status) return status.error();
  if (!structure.update) {
    return Error{ErrorCode::bad_input,
                 "a structure that recomputes segments has no other decision yet", "", "", ""};
  }
  const SegmentFinder finder(recording);
  std::vector<Segment> segments;
  for (std::size_t k = 0; k < structure.recompute.size(); ++k) {
    const std::string entry = "/recompute/" + std::to_string(k);
    Result<Segment> segment = finder.find(structure.recompute[k]);
    if (!segment) {
      Error error = std::move(segment).error();
      error.pointer = entry;
      return error;
    }
    segment->entry = entry;
    segments.push_back(std::move(segment).value());
  }
  if (!structure.ops.empty()) {
    Result<std::vector<Segment>> chains = ChainFinder(recording).find(structure.ops);
    if (!chains) return std::move(chains).error();
    std::move(chains->begin(), chains->end(), std::back_inserter(segments));
  }
  Result<RecomputedStep> step = recompute_nested(recording, std::move(segments));
  if (!step) return std::move(step).error();
  if (Status valid = validate(step->trace, ""); !valid)
    return of_structure(std::move(valid).error());
  return Step(recording, std::make_shared<const RecomputedStep>(std::move(step).value()));
}

}  // namespace

Status runs_nothing_again(const Trace& recording) {
  const std::vector<PhaseKind>& kinds = recording.phases.kind;
  if (std::find(kinds.begin(), kinds.end(), PhaseKind::recompute) == kinds.end()) return Unit{};
  return Error{ErrorCode::bad_input,
               "the recording is of a step that computes again under a plan already", "", "",
               "use the recording that its plan was made from"};
}

std::vector<Structure::Parts> recorded_parts(const Trace& recording) {
  std::vector<Structure::Parts> parts;
  for (std::size_t i = 0; i < recording.micro_batches.size(); ++i) {
    parts.push_back(
        {recording.string(recording.micro_batches.segment[i]), recording.micro_batches.count[i]});
  }
  return parts;
}

void set_recorded_parts(const std::vector<Structure::Parts>& parts, Trace& recording) {
  recording.micro_batches = {};
  for (const Structure::Parts& each : parts) {
    auto at = std::find(recording.strings.begin(), recording.strings.end(), each.segment);
    if (at == recording.strings.end()) at = recording.strings.insert(at, each.segment);
    const auto row = static_cast<std::size_t>(at - recording.strings.begin());
    recording.micro_batches.segment.emplace_back(row);
    recording.micro_batches.count.push_back(each.parts);
  }
}

std::string parts_text(const std::vector<Structure::Parts>& parts) {
  std::string text;
  for (const Structure::Parts& each : parts) {
    text += (text.empty() ? "" : " and ") +
            (each.segment == kWholeStep ? "the whole step" : each.segment) + " in " +
            std::to_string(each.parts) + (each.parts == 1 ? " part" : " parts");
  }
  return text;
}

bool is_in_parts(const Trace& recording, const std::vector<Structure::Parts>& parts) {
  const std::vector<Structure::Parts> has = recorded_parts(recording);
  return has.size() == parts.size() && std::is_permutation(has.begin(), has.end(), parts.begin());
}

namespace {

// As `profile --micro-batches` takes it, one of them.
std::string spec_of(const std::vector<Structure::Parts>& parts) {
  std::string text;
  for (const Structure::Parts& each : parts) {
    text += (text.empty() ? "" : " with ") + each.segment + "=" + std::to_string(each.parts);
  }
  return text;
}

}  // namespace

Result<const Trace*> recording_in_parts(const Trace& recording,
                                        const std::vector<Structure::Parts>& asked) {
  std::vector<Structure::Parts> parts = asked;
  std::erase_if(parts, [](const Structure::Parts& each) { return each.parts == 1; });
  if (parts.empty() || is_in_parts(recording, parts)) return &recording;
  std::string has;
  for (const std::shared_ptr<const Trace>& each : recording.divided) {
    if (is_in_parts(*each, parts)) return each.get();
    has += (has.empty() ? "" : ", ") + spec_of(recorded_parts(*each));
  }
  return Error{ErrorCode::bad_input,
               "the step was not recorded in the micro-batches " + spec_of(parts), "", "",
               (has.empty() ? "" : "it was in " + has + "; ") +
                   (parts.size() > 1 ? "several segments at once cannot be recorded yet"
                                     : "record it with stowage profile --micro-batches '" +
                                           spec_of(parts) + "'")};
}

namespace {

// The tables of `recording`, which outlives them, with these templates in their places.
Result<std::shared_ptr<const ComposedStep>> composed(const Trace& recording,
                                                     const std::vector<const StepTemplate*>& chosen,
                                                     const std::vector<StepTemplate>& templates) {
  // The recording outlives the step, so the layout does not own it.
  StepLayout layout(std::shared_ptr<const Trace>(std::shared_ptr<const Trace>(), &recording));
  for (const StepTemplate& each : templates) {
    for (const TemplateSource& source : each.sources) {
      if (source.trace != nullptr) layout.add_source(source.name, source.trace);
    }
  }
  TemplateGroups groups(layout);
  if (Status added = add_pieces(chosen, groups, layout); !added) return std::move(added).error();
  if (Status done = layout.lay_out(); !done) return std::move(done).error();
  Result<Trace> trace = compose(layout);
  if (!trace) return std::move(trace).error();
  if (Status valid = validate(*trace, "", Sites::repeated); !valid) {
    return of_structure(std::move(valid).error());
  }
  return std::make_shared<const ComposedStep>(
      ComposedStep{std::move(layout), std::move(trace).value()});
}

// The rest of the structure first: what runs again is ahead of the updates.
Result<Step> unroll_host_updates(const Trace& recording, const Structure& structure,
                                 const std::vector<StepTemplate>& templates) {
  if (!structure.update) {
    return Error{ErrorCode::bad_input, "a step cannot skip updates that the host does", "", "", ""};
  }
  Structure rest = structure;
  rest.host_updates.clear();
  const Result<Step> unrolled = unroll(recording, rest, templates);
  if (!unrolled) return unrolled.error();
  // Its tables are to live as long as the step that is made of them.
  const auto base = std::make_shared<const Step>(*unrolled);
  const Trace& tables = base->trace();
  std::vector<StorageId> parameters;
  for (std::size_t s = 0; s < tables.storages.size(); ++s) {
    const Origin<StorageId> origin = base->origin(StorageId(s));
    const bool is_named = origin.source == 0 &&
                          std::find(structure.host_updates.begin(), structure.host_updates.end(),
                                    origin.row) != structure.host_updates.end();
    if (is_named && tables.storages.storage_class[s] == StorageClass::parameter) {
      parameters.emplace_back(s);
    }
  }
  const StepTemplate without = leave_out_updates(tables, parameters);
  if (without.replacements.size() != structure.host_updates.size()) {
    return Error{ErrorCode::bad_input, "the host is to update what the step does not update", "",
                 "", ""};
  }
  auto made = composed(tables, {&without}, {});
  if (!made) return std::move(made).error();
  return Step(*base, std::move(made).value(), structure.host_updates);
}

}  // namespace

Result<Step> unroll(const Trace& recording, const Structure& structure,
                    const std::vector<StepTemplate>& templates) {
  if (!structure.host_updates.empty()) return unroll_host_updates(recording, structure, templates);
  if (!structure.parts.empty() && templates.empty()) {
    const Result<const Trace*> divided = recording_in_parts(recording, structure.parts);
    if (!divided) return divided.error();
    Structure rest = structure;
    rest.parts.clear();
    return unroll(**divided, rest);
  }
  if (structure.runs_again() && templates.empty()) return unroll_segments(recording, structure);
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
  auto made = composed(recording, *chosen, templates);
  if (!made) return std::move(made).error();
  return Step(recording, std::move(made).value());
}

}  // namespace stowage::simulator
