// The events of a step whose segments run again: which there are, in which order, and where each
// storage dies. Private to recompute() (simulator/step/recomputed_step.h).
#pragma once

#include <cstdint>
#include <span>
#include <utility>
#include <vector>

#include "simulator/step/grouped.h"
#include "simulator/step/op_spans.h"
#include "simulator/step/parameter_casts.h"
#include "simulator/step/segments.h"
#include "traces/trace.h"

namespace stowage::simulator {

// A recorded row, or the one that segment `run` makes of it when it runs again.
template <class IdT>
struct Row {
  IdT from;
  std::int32_t run = -1;  // -1 = the recorded one
};

struct OrderedEvent {
  EventKind kind = EventKind::step_begin;
  EventId from;               // none: it stands for a segment's begin, input or end
  std::int32_t run = -1;      // it is of this segment's run again
  std::int32_t segment = -1;  // pack without `from`: of this segment's
  std::int32_t input = -1;    // pack, unpack without `from`: input
  LayerId layer{};            // of the other kinds without `from`
  Nanoseconds gap = 0;        // ahead of it
  Row<StorageId> storage{};   // free
};

class RecomputedOrder {
 public:
  // Both must outlive it; those of layers are sorted by begin and do not overlap, chains follow.
  // `gone`: rows of the recording that hold nothing (recompute()).
  RecomputedOrder(const Trace& recording, const std::vector<Segment>& segments,
                  const std::vector<SavedId>& gone);

  // In order, frees included.
  [[nodiscard]] const std::vector<OrderedEvent>& events() const { return events_; }
  // The event that a recorded one is, and again in a segment; -1 = it is not there. `_or_before`:
  // the last one ahead of it that is; in a segment -1 where the gap behind that is not run again.
  [[nodiscard]] std::int32_t at(EventId recorded) const { return final_at(at_[recorded.index()]); }
  [[nodiscard]] std::int32_t at_or_before(EventId recorded) const;
  [[nodiscard]] std::int32_t again_or_before(std::int32_t run, EventId recorded) const;
  // Storages in the order of the step's table, and for each its natural death.
  [[nodiscard]] const std::vector<Row<StorageId>>& storages() const { return storages_; }
  [[nodiscard]] const std::vector<std::int32_t>& natural_deaths() const { return natural_; }
  // Of a recorded event within a run of a segment that lies in another: that one's run, which makes
  // what it reads; else -1.
  [[nodiscard]] std::int32_t reads_from(EventId recorded) const {
    return reads_from_.empty() ? -1 : reads_from_[recorded.index()];
  }
  // Behind which event what an unpack hands out dies; -1 = it outlives the step.
  [[nodiscard]] std::int32_t released(UnpackId recorded) const;
  [[nodiscard]] std::int32_t input_released(std::int32_t run, std::int32_t input) const;

 private:
  // Positions are those of items_: all events but frees.
  struct Run {
    std::vector<std::int32_t> again;  // by recorded event from the segment's first on
    // Ops around its last event that runs, the innermost first, and the event ahead of their ends.
    std::vector<std::pair<OpId, std::int32_t>> open;
    std::vector<std::pair<EventId, EventId>> layers;  // begin and end of each but a last, open one
    std::int32_t stop = -1;                           // the end of the outermost op of `open`
    std::int32_t end = -1;                            // the last one ahead of recompute_end
  };

  void find_readers();
  [[nodiscard]] bool reads_again(SavedId saved, std::int32_t run) const;
  void order_items();
  void add_recorded(EventId event);
  void add_run(std::int32_t run, Nanoseconds gap);
  void add_again(std::int32_t run, EventId event, Nanoseconds gap);
  void add_made(std::int32_t run, EventKind kind, LayerId layer);
  void add_layers_again(std::int32_t run);
  void add_chain_again(std::int32_t run);
  void find_deaths();
  [[nodiscard]] std::int32_t position_released(UnpackId unpack) const;
  // The last of what the unpacks of these saved tensors handed out; -1 none, kForever.
  [[nodiscard]] std::int32_t last_release(SavedId saved) const;
  [[nodiscard]] std::int32_t held_by_run(std::int32_t run, StorageId storage) const;
  [[nodiscard]] std::int32_t death_again(std::int32_t run, StorageId storage) const;
  [[nodiscard]] std::int32_t death_of_chain(std::int32_t run, StorageId storage) const;
  void find_death(StorageId storage);
  [[nodiscard]] std::int32_t before(EventId event) const;  // position of the last non-free one
  void merge_frees();
  [[nodiscard]] std::int32_t final_at(std::int32_t position) const {
    return position < 0 ? -1 : final_[static_cast<std::size_t>(position)];
  }

  const Trace& trace_;
  const std::vector<Segment>& segments_;
  std::vector<OrderedEvent> items_;
  std::vector<OrderedEvent> events_;
  std::vector<std::int32_t> at_;     // by recorded event: position, -1 for frees
  std::vector<std::int32_t> final_;  // by position: row of events_
  std::vector<Run> runs_;
  Grouped<UnpackId> unpacks_of_;
  Grouped<SavedId> saved_of_;       // by storage
  Grouped<std::uint32_t> used_by_;  // by storage
  OpSpans spans_;
  ParameterCasts casts_;
  std::vector<bool> is_given_up_;         // by saved tensor: of a segment
  std::vector<bool> is_gone_;             // likewise: holds nothing in the recording
  std::vector<std::int32_t> reads_from_;  // by recorded event; empty: all -1
  // Segments that are given a storage or use it from outside.
  Grouped<std::int32_t> given_to_;
  Grouped<std::int32_t> captured_by_;
  std::vector<Row<StorageId>> storages_;
  std::vector<std::int32_t> natural_;        // by row of storages_: final event
  std::vector<std::int32_t> death_;          // by row of storages_: position
  std::vector<std::int32_t> natural_death_;  // likewise
  std::vector<bool> is_moved_;               // by recorded storage: it does not die where recorded
};

}  // namespace stowage::simulator
