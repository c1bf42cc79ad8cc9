// The tables of a step from pieces of recorded passes. Invents nothing: each row is a row of a
// pass, with its ids, times and lifetimes as they are in the step.
#pragma once

#include "simulator/step/step_layout.h"
#include "simulator/step/step_storages.h"
#include "simulator/step/step_writer.h"
#include "traces/result.h"
#include "traces/trace.h"

namespace stowage::simulator {

// The layout must be laid out. How each table comes about: docs/simulator.md, "How a recording
// becomes a step". Errors (bad_input): a piece needs a storage, an unpack a saved tensor, that is
// not in the step; a storage is made or freed twice, or what the recorded pass freed is not freed.
// Cost: O(rows of the step + tables of the sources).
[[nodiscard]] Result<Trace> compose(const StepLayout& layout);

// What the recording says of the machine and the run. What it measured of its own step (peaks, the
// allocator's counters, the passes' times) says nothing of another one.
void copy_head(const Trace& recording, Trace& trace);

// Its parts, for a step that changes. The rows themselves: StepWriter.

// What the step has of the recording: machine, run, calibration.
void write_head(const StepLayout& layout, Trace& trace);
// All rows of all tables but strings, lists and layers. Errors: those of compose().
[[nodiscard]] Status write_rows(const StepLayout& layout, const StepStorages& storages,
                                const StepNames& names, Trace& trace);
// Times of a piece's events, on from the event ahead of it.
void write_times(const StepLayout& layout, const Placement& placement, Trace& trace);
// Phases, and the phase of each op: runs of one kind and micro-batch. Cost: O(pieces + ops).
void write_phases(const StepLayout& layout, Trace& trace);
// Starts of all device rows. Cost: O(device rows).
void write_device_starts(const StepLayout& layout, StepWriter& writer);
// Saved storages in the order of their first pack, as the fingerprint has them. Cost: O(storages).
void number_saved_storages(Trace& trace);
// The recording's setup. Cost: O(setup log pieces).
void write_setup(const StepLayout& layout, const StepStorages& storages, Trace& trace);

}  // namespace stowage::simulator
