#include "planner/pin_text.h"

#include <algorithm>
#include <cctype>
#include <memory>
#include <optional>
#include <utility>

#include "simulator/step/plan_structure.h"
#include "simulator/step/unroll.h"
#include "traces/nearest.h"

namespace stowage::planner {
namespace {

using simulator::Decision;
using simulator::GradientPlace;
using simulator::Plan;
using simulator::StatePlace;
using simulator::StreamMode;

// What a pin decides of what its name names.
struct Word {
  const char* kind;
  const char* decision;
  void (*add)(const std::string& name, Plan& plan);
};

template <Decision decision>
void add_saved(const std::string& name, Plan& plan) {
  simulator::SavedRule& rule = plan.saved.emplace_back();
  rule.site = name;
  rule.decision = decision;
}
template <StreamMode mode>
void add_parameters(const std::string& name, Plan& plan) {
  plan.parameters.emplace();
  plan.parameters->shards = {{name}};
  plan.parameters->stream = mode;
}
template <StatePlace place>
void add_optimizer(const std::string& name, Plan& plan) {
  plan.optimizer.push_back({name, place});
}
template <GradientPlace place>
void add_gradients(const std::string& name, Plan& plan) {
  plan.gradients.push_back({name, place});
}
void add_segment(const std::string& name, Plan& plan) {
  plan.recompute.push_back({name});
}

constexpr const char* kSaved = "saved";
constexpr Word kWords[] = {
    {kSaved, "keep", add_saved<Decision::keep>},
    {kSaved, "offload", add_saved<Decision::offload>},
    {kSaved, "recompute", add_saved<Decision::recompute>},
    {"layer", "recompute", add_segment},
    {"params", "keep", add_parameters<StreamMode::off>},
    {"params", "stream", add_parameters<StreamMode::always>},
    {"params", "forward", add_parameters<StreamMode::forward>},
    {"params", "backward", add_parameters<StreamMode::backward>},
    {"optimizer", "keep", add_optimizer<StatePlace::device>},
    {"optimizer", "stream", add_optimizer<StatePlace::stream>},
    {"optimizer", "host", add_optimizer<StatePlace::host>},
    {"gradients", "keep", add_gradients<GradientPlace::device>},
    {"gradients", "host", add_gradients<GradientPlace::host>},
};

Error usage(std::string message, std::string hint) {
  return {ErrorCode::usage, std::move(message), "", "", std::move(hint)};
}

std::string words_of(const std::string& kind) {
  std::string words;
  for (const Word& word : kWords) {
    if (word.kind == kind) words += (words.empty() ? "" : ", ") + std::string(word.decision);
  }
  return words;
}

// Only letters: what stands ahead of a colon is a kind then, and no part of a site.
bool is_word(const std::string& text) {
  return !text.empty() && std::all_of(text.begin(), text.end(),
                                      [](unsigned char c) { return std::islower(c) != 0; });
}

// In the words of where it is from.
Error in_source(const PinSource& source, Error error) {
  if (source.option.empty()) {
    if (error.file.empty()) error.file = source.file;
    return error;
  }
  error.code = ErrorCode::usage;
  error.pointer.clear();
  error.message = source.option + ": " + error.message;
  return error;
}

std::string name_of(const PinSource& source) {
  return source.option.empty() ? source.file : source.option;
}

// A segment that both have in micro-batches, of other numbers; empty: none.
std::string divided_otherwise(const Plan& a, const Plan& b) {
  for (const simulator::MicroBatchRule& each : a.micro_batches) {
    for (const simulator::MicroBatchRule& other : b.micro_batches) {
      if (each.segment == other.segment && each.count != other.count) return each.segment;
    }
  }
  return "";
}

}  // namespace

Result<Plan> pin_from_text(const std::string& text) {
  const std::size_t equals = text.rfind('=');
  if (equals == std::string::npos || equals == 0 || equals + 1 == text.size()) {
    return usage("'" + text + "' says no decision",
                 "write SITE=keep, =offload or =recompute, or params:LAYER=stream");
  }
  std::string kind = kSaved;
  std::string name = text.substr(0, equals);
  const std::string decision = text.substr(equals + 1);
  const std::size_t colon = name.find(':');
  if (colon != std::string::npos && is_word(name.substr(0, colon))) {
    kind = name.substr(0, colon);
    name = name.substr(colon + 1);
  }
  if (words_of(kind).empty()) {
    const std::vector<std::string> kinds = {"saved", "layer", "params", "optimizer", "gradients"};
    const std::string near = nearest(kind, kinds);
    return usage("'" + text + "': '" + kind + "' is nothing that can be pinned",
                 near.empty() ? "one of saved, layer, params, optimizer, gradients"
                              : "did you mean '" + near + ":'?");
  }
  for (const Word& word : kWords) {
    if (kind != word.kind || decision != word.decision) continue;
    Plan plan;
    word.add(name, plan);
    return plan;
  }
  return usage("'" + text + "': '" + decision + "' is no decision about " +
                   (kind == kSaved    ? "a saved tensor"
                    : kind == "layer" ? "a layer"
                                      : kind),
               "one of " + words_of(kind));
}

Result<Plan> join_pins(const simulator::StepIndex& recorded,
                       const std::vector<PinSource>& sources) {
  std::vector<Plan> plans;
  for (const PinSource& source : sources) plans.push_back(source.rules);
  Plan joined = joined_rules(plans);
  const Trace& recording = recorded.trace();
  const auto part = simulator::recording_in_parts(recording, simulator::parts_of(joined));
  std::optional<simulator::StepIndex> of_part;
  if (part && *part != &recording) of_part.emplace(**part);
  const simulator::StepIndex& index = of_part ? *of_part : recorded;
  std::vector<std::shared_ptr<const Pins>> read;
  for (std::size_t i = 0; i < sources.size(); ++i) {
    const PinSource& source = sources[i];
    if (!part && !source.rules.micro_batches.empty()) {
      Error error = part.error();
      error.pointer = "/micro_batches";
      return in_source(source, std::move(error));
    }
    Plan rules = source.rules;
    rules.target = {};  // of the recording at once
    const auto pins = Pins::make(index, rules);
    if (!pins) return in_source(source, pins.error());
    for (std::size_t k = 0; k < i; ++k) {
      std::string both = divided_otherwise(source.rules, sources[k].rules);
      if (both.empty() && read[k] != nullptr && *pins != nullptr) {
        both = (*pins)->conflict_with(*read[k], index.trace());
      }
      if (both.empty()) continue;
      return in_source(source, {ErrorCode::bad_input,
                                "'" + both + "' is pinned otherwise by " + name_of(sources[k]), "",
                                "", "leave one of the two out"});
    }
    read.push_back(*pins);
  }
  // Together they may be more than one can have.
  const auto pins = Pins::make(index, joined);
  if (!pins) return in_source(sources.back(), pins.error());
  return joined;
}

}  // namespace stowage::planner
