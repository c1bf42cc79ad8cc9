// For every stall of a planned step: the transfer, or the update on the host, that it waited for,
// why that was late, and what would remove the stall.
//
//      ready        start of the copy       needed (the stall begins)      end of the copy
//        |---- queued ----|------------- copy ---|----- stall ---------------|
//
// All is said in the figures of this one replay. Moving a copy moves others too (lanes,
// interference with compute), so what is proposed is worth a simulation, not a proof.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "simulator/replay/replay.h"
#include "simulator/step/step_index.h"

namespace stowage::report {

enum class Lateness : std::uint8_t {
  lane_busy,     // at least half of the stall is time that the copy queued behind others
  started_late,  // not so, and there was time for it ahead of its start
  no_room,       // the same, but its bytes would not have fitted into the budget earlier
  too_large,     // from where its bytes are there to where they are needed is too short for it
  in_line,       // copied on the compute stream, or blocking: it stalls as long as it takes
  host_busy,     // of an update: at least half of it is time that it waited for others on the host
  host_slow,     // of an update: not so
};
[[nodiscard]] const char* name_of(Lateness value);

enum class RemedyKind : std::uint8_t {
  start_earlier,     // by `earlier`, with all that it queued behind
  faster_link,       // that moves `bytes_per_second` here
  keep,              // `bytes` stay on the device
  use_lane,          // copy on a lane instead
  update_on_device,  // in the host's place; `bytes` of state are there then
};
[[nodiscard]] const char* name_of(RemedyKind value);

struct Remedy {
  RemedyKind kind = RemedyKind::start_earlier;
  Nanoseconds earlier = 0;
  EventId start_at;  // of start_earlier: where compute is at that time
  std::int64_t bytes_per_second = 0;
  Bytes bytes = 0;   // of keep: the storage's
  Bytes over = 0;    // of start_earlier: above the budget by so much then
  std::string text;  // "start it 3.10 ms earlier, at aten::mm in layers.4, backward"
};

struct StallRow {
  std::int32_t stall = -1;     // row of ReplayResult::stalls
  std::int32_t transfer = -1;  // row of ReplayDetail::transfers
  StayId stay;                 // of the transfer, as in Stall
  StorageId storage;
  std::string site;        // of the first saved tensor of the transfer, or "parameter of LAYER"
  bool is_update = false;  // on the host is waited for, behind the copy out of the gradient
  bool copy_back = false;  // the copy to the device, else the copy out
  Bytes bytes = 0;         // of the transfer; that an update works with
  // Where compute stood.
  EventId event;
  std::string layer;
  std::string phase;
  Nanoseconds start = 0;
  Nanoseconds duration = 0;
  // The transfer; of an update that one.
  Nanoseconds ready = 0;  // when compute had reached its anchor
  Nanoseconds copy_start = 0;
  Nanoseconds copy_end = 0;
  // When its bytes are there to be copied: of a load, when its tenant's last stay in this period
  // ends and what that stored is at home; else `ready`.
  Nanoseconds earliest = 0;
  // Copies that kept the lane busy without a gap right up to it; of an update, others on the host.
  std::int64_t copies_ahead = 0;
  Bytes bytes_ahead = 0;

  Lateness why = Lateness::lane_busy;
  std::string why_text;  // "it queued 1.20 ms behind 3 copies (36.0 MB)"
  std::vector<Remedy> remedies;
  [[nodiscard]] Nanoseconds queued() const { return copy_start - ready; }
};

// Longest first; durations add up to ReplayResult::stall_ns. `budget`: what requested bytes are
// held against, if anything. All arguments belong together; `detail` is of replay() or estimate().
// Cost: O(events + instructions + stalls log events).
[[nodiscard]] std::vector<StallRow> explain_stalls(const simulator::StepIndex& index,
                                                   const simulator::Schedule& schedule,
                                                   const simulator::ReplayResult& result,
                                                   const simulator::ReplayDetail& detail,
                                                   std::optional<Bytes> budget = std::nullopt);

}  // namespace stowage::report
