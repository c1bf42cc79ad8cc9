// Writes single rows of a composed step, each from the row of a recorded pass that it is.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "simulator/step/step_layout.h"
#include "simulator/step/step_names.h"
#include "simulator/step/step_storages.h"
#include "traces/result.h"
#include "traces/trace.h"

namespace stowage::simulator {

// All of these must outlive the writer; the tables of `trace` that it writes are sized (resize).
// What depends on more than one row is not written: times, phases, frees, holds, the numbers of
// saved storages (step_composer.h).
class StepWriter {
 public:
  StepWriter(const StepLayout& layout, const StepStorages& storages, const StepNames& names,
             Trace& trace)
      : layout_(layout), storages_(storages), names_(names), trace_(trace) {}

  // Rows as many as the layout has, new ones without a value.
  void resize();
  void existing_storages();
  // All rows of a piece, its events and borrowed tensors.
  void piece(const Placement& placement);
  // The event of the step that `event` of the piece's source is.
  void event(const Placement& placement, EventId event);
  // Row `row` of the source, which has its home in the piece.
  void row(RowTable table, const Placement& placement, std::size_t row);
  void borrowed(const Placement& placement);
  // Start of the piece's device rows, from the times of its events; never before `least`, which
  // becomes the last one's.
  void device_starts(const Placement& placement, Nanoseconds& least);

  // What went wrong first.
  [[nodiscard]] const std::optional<Error>& error() const { return error_; }
  void fail(const std::string& text);

 private:
  void op(std::size_t from, std::size_t to);
  void gpu(std::size_t from, std::size_t to);
  void tensor(std::int32_t group, std::size_t from, std::size_t to);
  void storage(std::size_t from, std::size_t to);
  void saved(std::size_t from, std::size_t to);
  void unpack(std::size_t from, std::size_t to);
  void stand_at(const Placement& placement);
  [[nodiscard]] std::string in_pass() const;
  [[nodiscard]] std::int32_t ref_of(std::size_t event);
  [[nodiscard]] StorageId storage_of(StorageId storage, std::size_t event);
  [[nodiscard]] OpId op_of_event(OpId op, std::size_t event);
  [[nodiscard]] EventId here(EventId event) const {
    return EventId(here_->at.value + event.value - here_->first.value);
  }
  [[nodiscard]] EventId home_of(RowTable table, std::size_t row) const {
    return rows_->home(table, row);
  }
  // Of what stands in the gap ahead of `home`, whose recorded event was `event`.
  [[nodiscard]] EventId ahead_of(EventId home, EventId event) const {
    return EventId(here(home).value - (home.value - event.value));
  }
  [[nodiscard]] std::int32_t own(RowTable table, std::size_t row) const {
    return here_->to[index_of(table)] + rows_->position(table, row) - here_->from[index_of(table)];
  }
  [[nodiscard]] OpId op_row(OpId op) const;
  [[nodiscard]] OpId earlier_op(OpId op, std::size_t row) const;

  const StepLayout& layout_;
  const StepStorages& storages_;
  const StepNames& names_;
  Trace& trace_;
  const Placement* here_ = nullptr;
  const Trace* source_ = nullptr;
  const PassRows* rows_ = nullptr;
  std::int32_t source_row_ = 0;
  std::optional<Error> error_;
};

}  // namespace stowage::simulator
