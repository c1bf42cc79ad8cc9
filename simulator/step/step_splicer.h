// Exchanges the pieces of one template of a StructuredStep.
#pragma once

#include <vector>

#include "simulator/step/row_regions.h"
#include "simulator/step/step_writer.h"
#include "simulator/step/structured_step.h"

namespace stowage::simulator {

// All that is not the template's stays together in a few regions: those rows are moved and the ids
// in them mapped. Rows that are new, that named one that is gone, or that would name one that came
// are written from their pass.
class StepSplicer {
 public:
  explicit StepSplicer(StructuredStep& step)
      : step_(step), layout_(step.composed_->layout), trace_(step.composed_->trace) {}

  // Errors: those of write_rows(); then the step is to be built anew.
  [[nodiscard]] Status flip(std::size_t row);

 private:
  // Rows of the step at the begin and end of a replacement.
  struct Bounds {
    std::int32_t first_event = 0;
    std::int32_t end_event = 0;
    std::array<std::int32_t, kRowTables> first{};
    std::array<std::int32_t, kRowTables> end{};
  };
  struct Row {
    RowTable table;
    std::int32_t row;
  };

  [[nodiscard]] std::vector<Bounds> bounds(std::size_t row) const;
  [[nodiscard]] StepRegions regions(const std::vector<Bounds>& before,
                                    const std::vector<Bounds>& now) const;
  void splice_tables();
  void map_ids();
  void map_refs();
  template <class IdT>
  void map_column(RowTable table, std::vector<IdT>& column, const std::vector<std::int32_t>& map);
  void shift_times();
  [[nodiscard]] Nanoseconds time_at(std::int32_t event) const;
  void write_new(StepWriter& writer);
  void write_naming(std::size_t row, StepWriter& writer);
  void write_gone(StepWriter& writer);
  void write_gap_rows(StepWriter& writer);
  void free_at(std::int32_t event, StepWriter& writer);
  void check_frees(StepWriter& writer);
  void find_changed_holds(std::size_t row);

  StructuredStep& step_;
  StepLayout& layout_;
  Trace& trace_;
  StepRegions regions_;
  std::vector<Row> gone_;                // rows that name one that is gone
  std::vector<std::int32_t> gone_refs_;  // events likewise
  std::vector<std::int32_t> holds_;      // storages whose death may be another
  std::vector<std::int32_t> unpacks_;    // unpacks likewise
  std::vector<std::int32_t> storages_;   // new, or their free is gone
  std::vector<std::int32_t> frees_;      // events that free and are new or name another storage
};

}  // namespace stowage::simulator
