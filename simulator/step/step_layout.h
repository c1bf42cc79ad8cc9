// StepLayout: pieces of recorded passes in the order of a step, and which row of the step each of
// their rows is. Row numbers follow from the pieces alone: first the recorded storages that exist
// before the step, then in every table the rows of one piece behind those of the piece before.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "simulator/step/pass_rows.h"
#include "simulator/step/step.h"
#include "traces/result.h"
#include "traces/trace.h"

namespace stowage::simulator {

struct StepSource {
  std::string name;
  std::shared_ptr<const Trace> trace;
  std::shared_ptr<const PassRows> rows;
};

// Pieces of one source and instance: what they make and use is the same. Group 0 is the recorded
// step itself.
struct PieceGroup {
  std::int32_t source = 0;
  // (storage of the source, the recorded one that it is), sorted.
  std::vector<std::pair<StorageId, StorageId>> same;
  std::vector<std::int32_t> placements;  // in order of their events in the source
};

// A tensor of a group that none of the group's pieces makes: needed in a piece, or one of the
// recording that a template replaces and the rest of the recording needs.
struct BorrowedTensor {
  std::int32_t group = 0;
  TensorId tensor;
  bool operator==(const BorrowedTensor&) const = default;
};

struct Placement {
  std::int32_t group = 0;
  EventId first;  // [first, end) of the source
  EventId end;
  std::optional<Pass> pass;
  std::int32_t micro_batch = -1;
  std::int32_t owner = -1;  // template that it belongs to; -1 = the recording's
  EventId at;               // event of the step that `first` is
  // By RowTable: the piece's first position in the source, how many, and the first row of the step.
  std::array<std::int32_t, kRowTables> from{};
  std::array<std::int32_t, kRowTables> count{};
  std::array<std::int32_t, kRowTables> to{};
  std::vector<BorrowedTensor> borrowed;  // rows behind the piece's own tensors

  [[nodiscard]] bool holds(EventId event) const { return first <= event && event < end; }
  [[nodiscard]] std::int32_t events() const { return end.value - first.value; }
};

// Recorded events that are not in the step.
struct ReplacedSpan {
  EventId first;  // [first, end)
  EventId end;
  std::int32_t owner = 0;   // template that replaces them
  bool leaves_out = false;  // StepTemplate::leaves_out
};

class StepLayout {
 public:
  // Source 0 is the recording, with the name "step".
  explicit StepLayout(std::shared_ptr<const Trace> recording);

  // The row of sources(); a trace that is already one of them, under that name, is not added again.
  std::int32_t add_source(const std::string& name, std::shared_ptr<const Trace> trace);
  std::int32_t add_group(std::int32_t source, std::vector<std::pair<StorageId, StorageId>> same);
  void add_piece(std::int32_t group, EventId first, EventId end, std::optional<Pass> pass = {},
                 std::int32_t micro_batch = -1, std::int32_t owner = -1);
  void add_span(const ReplacedSpan& span) { spans_.push_back(span); }
  // Numbers the rows. Error (bad_input): an event of a group is in two pieces.
  // Cost: O(rows of the pieces + pieces log pieces).
  [[nodiscard]] Status lay_out();
  // Instead of the pieces and spans so far, ones that have been laid out before, in another order
  // or with others between: what they hold is known, only their places are new. Each group's pieces
  // are in the order of their events.
  // Cost: O(pieces log pieces + borrowed tensors).
  void lay_out_again(std::vector<Placement> placements, std::vector<ReplacedSpan> spans);
  void clear_pieces();

  [[nodiscard]] const std::vector<StepSource>& sources() const { return sources_; }
  [[nodiscard]] const std::vector<PieceGroup>& groups() const { return groups_; }
  [[nodiscard]] const std::vector<Placement>& placements() const { return placements_; }
  [[nodiscard]] const std::vector<ReplacedSpan>& spans() const { return spans_; }
  // The recorded event is in a span that is left out.
  [[nodiscard]] bool leaves_out(EventId recorded) const;
  [[nodiscard]] const std::vector<StorageId>& existing() const { return existing_; }
  [[nodiscard]] const StepSource& source_of(const Placement& placement) const {
    return source_of_group(placement.group);
  }
  [[nodiscard]] const StepSource& source_of_group(std::int32_t group) const {
    return sources_[index(groups_[index(group)].source)];
  }

  // Events of the step and rows of a table (of storages and tensors: all).
  [[nodiscard]] std::size_t event_count() const { return index(events_); }
  [[nodiscard]] std::size_t row_count(RowTable table) const {
    return index(rows_[index_of(table)]);
  }

  // The placement of a group's event; -1 = it is in none.
  [[nodiscard]] std::int32_t placement_of(std::int32_t group, EventId event) const;
  // The event of the step that a group's event is; none = it is not in the step.
  [[nodiscard]] EventId event(std::int32_t group, EventId event) const;
  // The group's last event in the step that is at or ahead of `event` in the source; none.
  [[nodiscard]] EventId event_at_or_before(std::int32_t group, EventId event) const;
  // The row of the step that a group's row is, as far as a piece of the group makes it; -1 = none
  // does.
  [[nodiscard]] std::int32_t row(RowTable table, std::int32_t group, std::size_t row) const;
  [[nodiscard]] TensorId tensor(std::int32_t group, TensorId tensor) const;
  // The row of a recorded storage that exists before the step; none for others.
  [[nodiscard]] StorageId existing_row(StorageId recorded) const {
    return existing_row_[recorded.index()];
  }

  // The placement that has an event of the step, a row of a table.
  [[nodiscard]] const Placement& at(EventId event) const;
  [[nodiscard]] const Placement& at(RowTable table, std::int32_t row) const;

 private:
  static std::size_t index(std::int32_t value) { return static_cast<std::size_t>(value); }
  [[nodiscard]] Status sort_groups();
  void measure(Placement& placement) const;
  void borrow_needed(Placement& placement) const;
  void borrow_replaced(std::int32_t owner, Placement& host) const;
  void number_all();
  void number(Placement& placement);

  std::vector<StepSource> sources_;
  std::vector<PieceGroup> groups_;
  std::vector<Placement> placements_;
  std::vector<ReplacedSpan> spans_;
  std::vector<StorageId> existing_;                       // recorded rows
  std::vector<StorageId> existing_row_;                   // by recorded row
  std::unordered_map<std::uint64_t, TensorId> borrowed_;  // rows of the step, by group and tensor
  std::int32_t events_ = 0;
  std::array<std::int32_t, kRowTables> rows_{};
};

}  // namespace stowage::simulator
