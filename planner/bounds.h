// Bounds that hold for every plan: the memory floor and the shortest step within a budget. Both see
// a plan as choices {keep, shared, separate} for the storages that can move, {keep, forward,
// always} for the parameters of each layer (planner/footprint.h), and count each choice at its
// best, so no release or reload point, no prefetch, and no copy mode, goes below them. Footprints
// of active bytes count the smallest block that can hold each storage and buffer; so what holds for
// them holds for the allocator's active bytes, and for its reserved ones.
#pragma once

#include <cstddef>
#include <limits>
#include <string>
#include <vector>

#include "planner/footprint.h"
#include "simulator/plan/plan.h"
#include "simulator/step/step_index.h"
#include "traces/units.h"

namespace stowage::planner {

// A storage (or the reload buffer that stands for it) that is alive at the floor's event.
struct FloorStorage {
  StorageId storage;
  Bytes bytes = 0;
  bool reloaded = false;  // the bytes are those of its reload buffers
  std::string made_by;    // name of the op that allocated it; empty when it is older than the step
  std::string layer;      // of the storage
  StorageClass storage_class = StorageClass::other;
};

// No allowed mix of decisions has a lower peak than `bytes`, and at `event` it is at least that.
struct MemoryFloor {
  Bytes bytes = 0;
  EventId event;        // -1 where it is of the step in micro-batches, as the rows below
  OpId op;              // innermost op at that event, -1 = none
  std::string op_name;  // its name, or empty
  std::string layer;    // its layer's path; of the event's own layer when there is no op
  std::vector<FloorStorage> storages;  // alive there, largest first
  bool reached = false;                // the plan of tightest() has exactly this peak
};

// Problem: the least, over all choices, of the maximum over positions of the bytes alive.
// Bound: max over positions of the sum over storages of their smallest footprint there. A plan's
// footprints are at least the tight ones of its choices, so its curve is nowhere below that sum.
// Reached: when every storage has a dominant choice (smallest at every position at once), the tight
// plan of these choices holds exactly the sum at every position. A storage with a whole-storage
// copy, one unpack and a natural free ahead of it is of that kind: shared is below keep everywhere;
// so is one whose natural free comes with its recorded one: keep. Not of that kind are storages
// that the model holds into backward, and those that are unpacked several times (separate copies
// hold less between unpacks, more when they overlap): for these the bound may be below what any
// plan reaches, and tightest() searches. Cost: O(events + spans log spans).
[[nodiscard]] MemoryFloor memory_floor(const Footprints& footprints);

// The choices with the lowest peak that is known. Dominant choices where there are any; the other
// storages by trying all combinations when these are few, else by descent from the smallest
// footprints at the highest position. Deterministic. Cost: O(tries * events).
struct TightPlan {
  std::vector<Choice> choices;
  Bytes peak = 0;
};
[[nodiscard]] TightPlan tightest(const Footprints& footprints, const MemoryFloor& floor);

inline constexpr std::size_t kAllPositions = std::numeric_limits<std::size_t>::max();

// No plan that keeps `budget` (on the bytes that `footprints` count) has a shorter step, unless it
// mixes `lane` with `compute` copies in one direction on a link with a latency (which then overlap
// in it; what moves bytes shares the link).
//
// Take a position t with D bytes above the budget in the resident step. Some storages must be away
// at t, together worth D bytes. The copies out of these are finished when compute is at t, each
// began after its pack, and a lane copies one at a time: so compute is at t no earlier than x, the
// earliest time by which a single machine can process fractions of jobs {release time: the pack,
// size: the shortest copy, value: the bytes freed at t} worth D. Preempted and fractional, highest
// value per time first is best for every horizon at once: at each moment the densest jobs have had
// as much of the machine as they can. Mirrored from the step's end, with the next unpack as release
// time and the copy back as size, the step goes on for at least x' after t. The step is at least x
// + x', and never below the resident step.
//
// Parameters that stream: the host has them, so they leave for nothing (release time 0, size 0).
// Each comes back by a copy of its own, whatever its shard: a job of its own, with its own bytes as
// value and the time of its own transfer as size. One that is away at t is on the device from its
// next use on, so its copy lies between t and the place where that use awaits it: mirrored, the
// compute behind that place is the release time. Where ways to stream differ, the latest place
// holds for both. One that a way leaves away with no further use in the step (backward is done with
// it, or only forward uses it) comes back in the next step: it is free.
//
// Recorded times only grow when something moves; copies are never faster than their nominal time:
// hence the bound.
//
// Interference: while the link moves bytes compute runs at compute_interference of its speed, or
// not at all. Copies that free D bytes ahead of t move bytes for at least m, the least of a
// fractional knapsack; with C of compute's work ahead of t, and s the speed, a window of length X
// has C <= (X - m) + s * m, so X >= C + (1 - s) * m. The same behind t, with the copies back.
//
// Rests (Calibration::rest_gain): take a run of T, and let compute that it runs faster take its
// recorded time: a run without gain, of L = T + saved, that the bound B above holds for. Saved is
// at most k of the time that compute does not work. It works
// for what runs again, w, and for the slowdown (1 - s) * m, less what the link moves in rests,
// which is no longer than they are. With C the work of the step, which other idle time than rests
// may stand beside, and c = C + w + (1 - s) * m, T >= L - (k / s) * max(0, L - c), which grows with
// L, so L = B holds; where k >= s, c = C + w and k take their places. And compute never takes less
// than its part at full boost: T is at least the bound with all recorded times scaled by that.
//
// Recompute (options `again`, so for every structure of the step at once): each recorded event is
// in every such step, in its order, and at t, where D bytes are above the budget, what is away
// without a copy and is asked for later is computed again. The op that made it runs again for that,
// at least up to where it is saved, and work of the step and of what runs again do not overlap.
// With w the work that runs again, all of it behind t, at most F(w) bytes are away by it, a
// fractional knapsack over ops; D - F(w) are away by copies, which take at least as long as in the
// recorded step: uses there only come earlier, for a segment's run, and a storage that a segment is
// given, or an op of a chain, may leave from when that is called. So the step is at least the least
// over w of max(work of the step + w, the bound above for D - F(w) with w more work behind t). F
// grows with w, so over [a, b] that is at least max(work + a, the bound for D - F(b) with a): the
// interval with the least is halved, 24 times, or 6 where few positions are asked for.
//
// Positions: the highest of each segment (Footprints::segment_starts) that is above the budget,
// those with the most bytes when there are many.
// Cost: O(positions * storages log storages), of those that can move, limited to 500,000
// operations by dropping positions.
// `positions_most`: of positions, those with the most bytes; fewer make it cheaper, and lower.
// `left_out`: by position, those that are not looked at; empty: none.
[[nodiscard]] Nanoseconds shortest_step(const Footprints& footprints, Bytes budget,
                                        std::size_t positions_most = kAllPositions,
                                        const std::vector<bool>& left_out = {});

}  // namespace stowage::planner
