// Step templates: what a segment's decision puts in the place of which recorded events. All of it
// was recorded in a pass of its own (`recompute_all`, `parts`) or is what the executor adds; a
// template names events and never makes any.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "simulator/step/step.h"
#include "simulator/step/structure.h"
#include "traces/trace.h"

namespace stowage::simulator {

// The events [first, end) of a recorded pass and the gaps ahead of them: their times, the device
// rows and syncs in those gaps, and the rows that the events make.
struct Piece {
  // The recording's own events; otherwise a row of StepTemplate::sources.
  static constexpr std::int32_t kRecording = -1;
  std::int32_t source = kRecording;
  EventId first;
  EventId end;
  // What two pieces of one source and instance make and use is the same; another instance makes
  // rows of its own. Instance 0 of the recording is the recorded step itself.
  std::int32_t instance = 0;
  std::optional<Pass> pass;       // none: that of the source's phase
  std::int32_t micro_batch = -1;  // -1 = that of the source's phase
};

struct TemplateSource {
  std::string name;                    // of the pass, or kStowage
  std::shared_ptr<const Trace> trace;  // valid (traces/validate.h)
  // (a storage of `trace`, the recorded one that it is): what the pieces use and do not make, and
  // what they make and the rest of the step uses. All others of the pieces are rows of their own.
  std::vector<std::pair<StorageId, StorageId>> storages;
};

// The pieces that stand where the recorded events [first, end) were; first < end.
struct Replacement {
  EventId first;
  EventId end;
  std::vector<Piece> pieces;
};

struct StepTemplate {
  std::string segment;
  std::int32_t parts = 0;  // 0 = the segment is recomputed, else it runs in so many
  std::vector<TemplateSource> sources;
  std::vector<Replacement> replacements;  // in order of events, disjoint
  // Nothing stands in their place, and what dies there lives on. For the step without its update
  // (simulator/step/update_section.h); no template of a recorded pass.
  bool leaves_out = false;
};

}  // namespace stowage::simulator
