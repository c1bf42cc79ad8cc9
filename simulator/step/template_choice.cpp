#include "simulator/step/template_choice.h"

#include <algorithm>
#include <string>

#include "traces/nearest.h"

namespace stowage::simulator {
namespace {

Error bad(std::string message, std::string hint = {}) {
  Error error;
  error.code = ErrorCode::bad_input;
  error.message = std::move(message);
  error.hint = std::move(hint);
  return error;
}

// "embed" of "embed@2".
std::string layer_of(const std::string& segment) {
  const std::size_t at = segment.rfind('@');
  const bool is_call = at != std::string::npos && at + 1 < segment.size() &&
                       segment.find_first_not_of("0123456789", at + 1) == std::string::npos;
  return is_call ? segment.substr(0, at) : segment;
}

Status check_segment(const Trace& recording, const std::string& segment) {
  std::vector<std::string> names;
  for (const StringId name : recording.layers.name) {
    names.push_back(recording.string(name));
    if (names.back() == layer_of(segment) || names.back() == segment) return Unit{};
  }
  const std::string near = nearest(segment, names);
  return bad("the recording has no layer '" + segment + "'",
             near.empty() ? "" : "did you mean '" + near + "'?");
}

std::string what(const StepTemplate& of) {
  if (of.leaves_out) return "a step without its update";
  if (of.parts == 0) return "recompute of segment '" + of.segment + "'";
  return "segment '" + of.segment + "' in " + std::to_string(of.parts) + " parts";
}

Result<const StepTemplate*> find(const std::vector<StepTemplate>& templates,
                                 const std::string& segment, std::int32_t parts) {
  for (const StepTemplate& each : templates) {
    if (each.segment == segment && each.parts == parts) return &each;
  }
  StepTemplate wanted;
  wanted.segment = segment;
  wanted.parts = parts;
  return bad("the recording does not say what happens with " + what(wanted),
             parts == 0 ? "record it with the pass recompute_all"
                        : "record it with the pass parts, for " + std::to_string(parts) + " parts");
}

bool is_range(EventId first, EventId end, std::size_t events) {
  return first.valid() && first < end && end.index() <= events;
}

bool is_row(StorageId storage, const Trace& trace) {
  return storage.valid() && storage.index() < trace.storages.size();
}

Status check_pieces(const Trace& recording, const StepTemplate& of,
                    const Replacement& replacement) {
  for (const Piece& piece : replacement.pieces) {
    const auto sources = static_cast<std::int32_t>(of.sources.size());
    if (piece.source < Piece::kRecording || piece.source >= sources || piece.instance < 0) {
      return bad(what(of) + ": a piece is of source " + std::to_string(piece.source) +
                 ", instance " + std::to_string(piece.instance) + ", which is none");
    }
    const Trace& trace = piece.source == Piece::kRecording
                             ? recording
                             : *of.sources[static_cast<std::size_t>(piece.source)].trace;
    if (!is_range(piece.first, piece.end, trace.events.size())) {
      return bad(what(of) + ": a piece is of events " + std::to_string(piece.first.value) +
                 " up to " + std::to_string(piece.end.value) + " of a pass that has " +
                 std::to_string(trace.events.size()));
    }
  }
  return Unit{};
}

Status check_source(const Trace& recording, const StepTemplate& of, const TemplateSource& source) {
  if (source.trace == nullptr) return bad(what(of) + ": source '" + source.name + "' has no trace");
  std::vector<bool> seen(source.trace->storages.size(), false);
  for (const auto& [storage, recorded] : source.storages) {
    if (!is_row(storage, *source.trace) || !is_row(recorded, recording)) {
      return bad(what(of) + ": storage " + std::to_string(storage.value) + " of pass '" +
                 source.name + "' stands for storage " + std::to_string(recorded.value) +
                 " of the recording, and one of them does not exist");
    }
    if (seen[storage.index()]) {
      return bad(what(of) + ": storage " + std::to_string(storage.value) + " of pass '" +
                 source.name + "' stands for two of the recording");
    }
    seen[storage.index()] = true;
  }
  return Unit{};
}

struct Chosen {
  std::int32_t owner;
  const StepTemplate* of;
  const Replacement* replacement;
};

}  // namespace

Result<std::vector<const StepTemplate*>> choose_templates(
    const Trace& recording, const Structure& structure,
    const std::vector<StepTemplate>& templates) {
  std::vector<const StepTemplate*> chosen;
  const auto choose = [&](const std::string& segment, std::int32_t parts) -> Status {
    if (segment != kWholeStep) {
      if (Status known = check_segment(recording, segment); !known) return known;
    }
    Result<const StepTemplate*> found = find(templates, segment, parts);
    if (!found) return found.error();
    chosen.push_back(*found);
    return check_template(recording, **found);
  };
  for (const std::string& segment : structure.recompute) {
    if (Status done = choose(segment, 0); !done) return done.error();
  }
  for (const Structure::Parts& each : structure.parts) {
    if (each.parts < 1) {
      return bad("segment '" + each.segment + "' cannot run in " + std::to_string(each.parts) +
                 " parts");
    }
    if (each.parts == 1) continue;
    if (Status done = choose(each.segment, each.parts); !done) return done.error();
  }
  return chosen;
}

Status check_template(const Trace& recording, const StepTemplate& of) {
  for (const TemplateSource& source : of.sources) {
    if (Status good = check_source(recording, of, source); !good) return good;
  }
  for (const Replacement& replacement : of.replacements) {
    // step_begin and step_end stay.
    const bool inside = replacement.first.value > 0 &&
                        is_range(replacement.first, replacement.end, recording.events.size() - 1);
    if (!inside) {
      return bad(what(of) + " replaces events " + std::to_string(replacement.first.value) +
                 " up to " + std::to_string(replacement.end.value) + " of a recording that has " +
                 std::to_string(recording.events.size()));
    }
    if (Status good = check_pieces(recording, of, replacement); !good) return good;
  }
  return Unit{};
}

std::int32_t TemplateGroups::of(const StepTemplate& owner, const Piece& piece) {
  if (piece.source == Piece::kRecording && piece.instance == 0) return 0;
  const auto key = std::tuple(&owner, piece.source, piece.instance);
  if (const auto known = groups_.find(key); known != groups_.end()) return known->second;
  std::int32_t group = 0;
  if (piece.source == Piece::kRecording) {
    group = layout_->add_group(0, {});
  } else {
    const TemplateSource& source = owner.sources[static_cast<std::size_t>(piece.source)];
    group = layout_->add_group(layout_->add_source(source.name, source.trace), source.storages);
  }
  groups_.emplace(key, group);
  return group;
}

Status add_pieces(const std::vector<const StepTemplate*>& chosen, TemplateGroups& groups,
                  StepLayout& layout) {
  std::vector<Chosen> replacements;
  for (std::size_t owner = 0; owner < chosen.size(); ++owner) {
    for (const Replacement& replacement : chosen[owner]->replacements) {
      replacements.push_back({static_cast<std::int32_t>(owner), chosen[owner], &replacement});
    }
  }
  std::stable_sort(replacements.begin(), replacements.end(), [](const Chosen& a, const Chosen& b) {
    return a.replacement->first < b.replacement->first;
  });
  EventId next(std::size_t{0});  // of the recording
  const StepTemplate* before = nullptr;
  const auto add_recorded = [&](EventId end) {
    if (next < end) layout.add_piece(0, next, end);
  };
  for (const Chosen& each : replacements) {
    if (each.replacement->first < next) {
      return bad(what(*before) + " and " + what(*each.of) + " replace the same events");
    }
    add_recorded(each.replacement->first);
    layout.add_span(
        {each.replacement->first, each.replacement->end, each.owner, each.of->leaves_out});
    for (const Piece& piece : each.replacement->pieces) {
      layout.add_piece(groups.of(*each.of, piece), piece.first, piece.end, piece.pass,
                       piece.micro_batch, each.owner);
    }
    next = each.replacement->end;
    before = each.of;
  }
  add_recorded(EventId(layout.sources().front().trace->events.size()));
  return Unit{};
}

}  // namespace stowage::simulator
