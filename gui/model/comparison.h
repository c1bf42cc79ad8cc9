// Two results beside each other, figure by figure: plans, traces, or what was predicted and what
// was measured.
#pragma once

#include <string>
#include <vector>

#include "gui/model/run_result_json.h"
#include "gui/model/simulated.h"
#include "report/diff.h"

namespace stowage::gui {

// What a replay comes to, and what its plan moves: of the whole, then by outermost layer. With the
// lower bound of the search that the plan came from, where there was one (lower_bound_of). Offloads
// are counted twice: saved tensors, as the plan decides about them, and copies, of which one may
// serve several of them. Bytes by layer are those of copies. Cost: O(saved + storages).
[[nodiscard]] std::vector<report::Fact> facts_of(const Simulated& simulated);
[[nodiscard]] std::vector<report::Fact> facts_of(const MeasuredFigures& figures);

struct ComparedRow {
  std::string section;  // empty: of the whole
  std::string
      heading;  // that it stands below: "memory", "time", "copies", "decisions", else its section
  std::string name;    // in words
  std::string before;  // with unit; "–" where there is none
  std::string after;
  std::string difference;  // "+1.20 GB", "=" when equal, empty when there is none
  std::string relative;    // "-3.2 %"
  // Of difference and relative together: "+1.20 GB (+3.4 %)".
  [[nodiscard]] std::string whole_difference() const {
    return relative.empty() ? difference : difference + " (" + relative + ")";
  }
  std::string exact;  // "62,996,267,264, then 60,982,968,576 bytes", for the tool tip
  int sign = 0;       // of the difference
};

// Figures of the whole are listed when they are equal too, by heading, ahead of all others; those
// only when they differ.
// Cost: O((n + m) log n).
[[nodiscard]] std::vector<ComparedRow> compared(const std::vector<report::Fact>& before,
                                                const std::vector<report::Fact>& after);

}  // namespace stowage::gui
