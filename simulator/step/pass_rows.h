// Which rows of a recorded pass come with which of its events.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "simulator/step/grouped.h"
#include "traces/trace.h"

namespace stowage::simulator {

// Tables whose rows are made by events.
enum class RowTable : std::uint8_t { ops, gpu, syncs, storages, tensors, uses, saved, unpacks };
inline constexpr std::size_t kRowTables = 8;
[[nodiscard]] constexpr std::size_t index_of(RowTable table) {
  return static_cast<std::size_t>(table);
}

// Each row has a home event: an op its op_begin, a storage its alloc, a saved tensor its pack, a
// use its op's, a tensor the first event that needs it (or that makes its storage), a device row
// and a sync the event behind the gap in which they stand (the gap belongs to that event, as its
// time does). A storage that exists before the step has none. Rows with a home have a position:
// their rank by home, then by row. Cost: O(trace). Refers to nothing.
class PassRows {
 public:
  explicit PassRows(const Trace& trace);

  [[nodiscard]] EventId home(RowTable table, std::size_t row) const { return of(table).home[row]; }
  // -1 = it has no home.
  [[nodiscard]] std::int32_t position(RowTable table, std::size_t row) const {
    return of(table).position[row];
  }
  [[nodiscard]] std::size_t row(RowTable table, std::int32_t position) const {
    return of(table).rows[static_cast<std::size_t>(position)];
  }
  // Rows at home ahead of `event`: the first position at or behind it.
  [[nodiscard]] std::int32_t first_at(RowTable table, EventId event) const;
  // Phase of an event; none where the pass has no phases.
  [[nodiscard]] PhaseId phase(EventId event) const { return phase_[event.index()]; }
  // Home events of the uses and saved tensors that are of a tensor, uses first.
  [[nodiscard]] std::span<const EventId> needs_of(TensorId tensor) const {
    return needs_[tensor.index()];
  }

 private:
  struct Homes {
    std::vector<EventId> home;           // by row
    std::vector<std::int32_t> position;  // by row
    std::vector<std::uint32_t> rows;     // by position
  };
  [[nodiscard]] const Homes& of(RowTable table) const { return tables_[index_of(table)]; }
  [[nodiscard]] std::vector<EventId>& homes(RowTable table) {
    return tables_[index_of(table)].home;
  }
  void find_op_homes(const Trace& trace);
  void find_tensor_homes(const Trace& trace);
  void rank(Homes& homes, std::size_t events);

  std::array<Homes, kRowTables> tables_;
  std::vector<PhaseId> phase_;
  Grouped<EventId> needs_;
};

}  // namespace stowage::simulator
