// What it costs to have saved tensors away between forward and backward: compute, of what would run
// again, or the link. For the rows of a recording, each for itself.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "gui/model/trace_data.h"
#include "simulator/step/op_chains.h"
#include "simulator/step/segments.h"

namespace stowage::gui {

struct Price {
  std::optional<Nanoseconds> compute;  // of what runs again, alone; absent: it cannot
  std::string why_not;                 // then: the reason, one line
  // Of the storages that an offload frees, each once; absent: it frees none, or the link is not
  // known.
  std::optional<Nanoseconds> out;
  std::optional<Nanoseconds> back;
};

class Prices {
 public:
  // Cost: O(recording).
  explicit Prices(TracePtr trace);

  // By ops, with all that is saved of its storage. Cost: O(recording).
  [[nodiscard]] Price of(SavedId saved) const;
  // By layer: all of its calls; the offload is of what is saved in it. Cost: O(recording).
  [[nodiscard]] Price of(LayerId layer) const;

 private:
  void add_link(const std::vector<SavedId>& rows, Price& price) const;

  TracePtr data_;
  simulator::SegmentFinder segments_;
  simulator::ChainFinder ops_;
};

// "4.10 ms of compute", or why it cannot.
[[nodiscard]] std::string recompute_text(const Price& price);
// "19.0 ms of link: 9.60 ms out, 9.40 ms back".
[[nodiscard]] std::string offload_text(const Price& price);

}  // namespace stowage::gui
