// lower(): a plan's decisions onto a trace, into a Schedule. Deterministic: the same trace and
// decisions give the same Schedule everywhere, which is why a plan file needs no schedule in it.
#pragma once

#include <string>
#include <vector>

#include "simulator/plan/decisions.h"
#include "simulator/schedule/schedule.h"
#include "simulator/step/step_index.h"
#include "traces/result.h"

namespace stowage::simulator {

// Something that the plan wanted to leave and that stays all the same, or that frees nothing by
// leaving: a saved tensor or, where `storage` is valid, a parameter, piece of optimizer state or
// gradient.
struct LoweringNote {
  SavedId saved;
  std::string text;
  StorageId storage{};  // then without `saved`
};

// What a note is about: the saved tensor's site, or "parameter of LAYER (storage N)".
[[nodiscard]] std::string subject_of(const Trace& trace, const LoweringNote& note);

struct Lowering {
  Schedule schedule;
  std::vector<LoweringNote> notes;
};

// Program points become anchors: a release goes to the next anchor, a reload to the one before.
// Errors (bad_input): a reload point after the first unpack, a release point before the pack.
// Cost: O(events + saved log saved + sum of prefetch distances in events).
[[nodiscard]] Result<Lowering> lower(const StepIndex& index, const Decisions& decisions);

// resolve + lower in one go, for callers that hold a Plan. Refuses a plan whose fingerprint is
// not the recording's, one whose segments do not run again in this step (plan_structure.h), and a
// rule that decides about nothing but what segments own.
[[nodiscard]] Result<Lowering> lower(const StepIndex& index, const Plan& plan);

}  // namespace stowage::simulator
