// replay(): runs a Schedule on a model of the machine. Integer arithmetic; the same input gives the
// same output on every machine. docs/simulator.md describes the model.
//
// Memory is a function of program order alone (the executor frees by event-wait): peak_requested is
// exact; peak_active and peak_reserved are those of the memory that the schedule's placement names,
// a model of the caching allocator or planned memory. Time: compute
// in recorded order, a launch thread ahead of it, two fluid FIFO copy lanes that slow each other
// (duplex) and compute (interference) down, a host lane that updates parameters beside them.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "simulator/schedule/schedule.h"
#include "simulator/step/step_index.h"
#include "traces/units.h"

namespace stowage::simulator {

// The compute stream waited for a copy, or made it itself (CopyMode::compute, blocking); or whoever
// issues waited for an update on the host.
struct Stall {
  EventId event;          // where compute stood
  StayId stay;            // whose transfer it waited for; of an update, the gradient's
  bool is_store = false;  // the copy out, else the load
  Nanoseconds start = 0;
  Nanoseconds duration = 0;
  bool is_update = false;  // with what the copy out brought
};

struct Transfer {
  StayId stay;
  bool is_store = false;  // the copy out, else the load
  Nanoseconds ready = 0;  // when compute had reached its anchor
  Nanoseconds start = 0;
  Nanoseconds end = 0;
};

// The host updated a parameter.
struct HostUpdateTime {
  StayId stay;            // of its gradient
  Nanoseconds ready = 0;  // when the gradient had come
  Nanoseconds start = 0;
  Nanoseconds end = 0;
};

struct ReplayResult {
  Bytes peak_requested = 0;
  Bytes peak_active = 0;
  Bytes peak_reserved = -1;  // -1 = null
  // Periods that the caching allocator's model went through; 0 = none: the trace has no setup
  // (active is then the sum of the rounded sizes), memory is planned, or this is an estimate.
  std::int32_t allocator_periods = 0;
  // False: the trace does not say all of where the model starts from, so peak_active and
  // peak_reserved are approximations.
  bool allocator_exact = true;
  // The allocator's state does not repeat within a few steps: it finds other blocks each time,
  // which hang on the driver's addresses, so the active peak may differ by some 0.01 % from step to
  // step; peak_active is the largest of many steps (allocator_replay.h).
  bool active_varies = false;
  // Times that memory is taken from the driver behind the first step, in spite of the segments that
  // are taken ahead of it (AllocatorReplay); nothing is known of it when allocator_periods is 0.
  std::int64_t later_segments = 0;
  EventId peak_event;  // first event at which peak_requested is reached
  Bytes host_bytes = 0;
  Nanoseconds step_ns = 0;
  Nanoseconds compute_ns = 0;  // busy with the step's own work
  Nanoseconds stall_ns = 0;
  Bytes d2h_bytes = 0;
  Bytes h2d_bytes = 0;
  Nanoseconds host_update_ns = 0;  // in which the host was busy with updates
  std::vector<Stall> stalls;
};

// Filled only when asked for: what the timeline and the memory curve show.
struct ReplayDetail {
  std::vector<Bytes> requested;     // after each event (instructions at it included: their max)
  std::vector<Bytes> active;        // after each event, its instructions done; replay() of a
  std::vector<Bytes> reserved;      // trace with a setup fills these two, else they are empty
  std::vector<Nanoseconds> time;    // of each event on the compute stream
  std::vector<Nanoseconds> launch;  // of each event on the launch thread; empty where there is none
  std::vector<Transfer> transfers;  // in order of start
  std::vector<HostUpdateTime> host_updates;  // likewise
};

// Compute waits at an event, ahead of the instructions behind it, until a time that something
// beside the step says, such as a network. The wait is no stall: no copy is the reason for it.
struct OutsideWait {
  EventId event;  // -1 = none
  Nanoseconds until = 0;
};

// Precondition: find_hazards() is empty for schedules of unknown origin; a schedule from lower()
// is. Cost: that of estimate(), and for a trace with a setup that of replay_allocator() or place().
[[nodiscard]] ReplayResult replay(const StepIndex& index, const Schedule& schedule,
                                  ReplayDetail* detail = nullptr);

// The same without the allocator, for searches: peak_active is a lower bound (each storage and
// buffer in the smallest block that can hold it), peak_reserved is -1, all else is exact.
// Cost: O(events + instructions), no allocation per event.
[[nodiscard]] ReplayResult estimate(const StepIndex& index, const Schedule& schedule,
                                    ReplayDetail* detail = nullptr, OutsideWait wait = {});

// What to say of a result that is not allocator_exact, of one whose active_varies, and of one whose
// updates on the host take a time that is assumed.
inline constexpr const char* kAllocatorRemark =
    "active and reserved bytes are estimates: the trace does not say all of the allocator's state";
inline constexpr const char* kActiveVariesRemark =
    "the allocator finds other blocks in each step: the active peak may differ a little from step "
    "to "
    "step, the largest counts";

inline constexpr const char* kHostUpdateRemark =
    "how fast the host updates is not measured in this trace: 1 ms for each MiB of parameter, "
    "gradient and state is assumed (--set host.update_gbps)";
[[nodiscard]] bool guesses_host_updates(const Trace& trace, const ReplayResult& result);

// The step as it was recorded: nothing moves and no executor's hooks run. (An executor that keeps
// everything runs the schedule of an empty plan, which has hooks.)
[[nodiscard]] Schedule resident_schedule(const StepIndex& index,
                                         PlacementMode placement = PlacementMode::caching);

}  // namespace stowage::simulator
