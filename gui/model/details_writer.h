// Writes the sections of Details: one method a kind of selection. Each appends to what was written
// before, so that a saved tensor's details hold those of its storage and of the stalls that it
// causes.
#pragma once

#include <string>
#include <utility>

#include "gui/model/details.h"
#include "report/stalls.h"
#include "report/storage_story.h"

namespace stowage::gui {

class DetailsWriter {
 public:
  explicit DetailsWriter(const Explained& explained)
      : x_(explained), trace_(explained.trace()), detail_(explained.simulated->detail) {}

  [[nodiscard]] Details take() && { return std::move(out_); }
  void title(std::string text) { out_.title = std::move(text); }

  // What there is to say while nothing is selected: details_summary.cpp.
  void step();
  // What lies in memory: details_memory.cpp.
  void saved(SavedId id);
  void storage(StorageId id);
  // What happens in the step: details_step.cpp. Rows as in Selection.
  void layer(LayerId id);
  void op(OpId id);
  void gpu(std::size_t i);
  void event(EventId id);
  void transfer(std::size_t i);
  void stall(const report::StallRow& s);
  void update(std::size_t i);

 private:
  void section(std::string title) { out_.sections.push_back({std::move(title), {}}); }
  void row(std::string name, std::string value, Selection link = {}) {
    out_.sections.back().rows.push_back({std::move(name), std::move(value), link});
  }
  void machine();
  void times_and_peaks();
  void layer_row(const char* name, LayerId layer);
  void op_row(const char* name, OpId op);
  // `otherwise`: when there is no such event.
  void event_row(const char* name, EventId event, const char* otherwise);
  void moves(const report::StorageStory& story);
  [[nodiscard]] std::string shape_of(TensorId tensor) const;
  [[nodiscard]] std::string decision_of(SavedId id) const;
  void prices(const Price& price);
  [[nodiscard]] SavedId made_again(SavedId id) const;
  void runs_of(OpId id);
  void planned_times(OpId id);
  void device_time(const std::vector<bool>& ops);  // by row: theirs
  void made_in(OpId id, const std::vector<bool>& ops);
  void saved_in_layer(LayerId id);
  void held_for_attribution(LayerId id);
  void neighbours(const report::StallRow& s);
  [[nodiscard]] LayerId layer_of(const report::StallRow& stall) const;

  const Explained& x_;
  const Trace& trace_;
  const simulator::ReplayDetail& detail_;
  Details out_;
};

// "52.1 GB/s"
[[nodiscard]] std::string rate_words(Bytes bytes, Nanoseconds time);
// "compute_stream" -> "compute stream".
[[nodiscard]] std::string spaced(std::string text);

}  // namespace stowage::gui
