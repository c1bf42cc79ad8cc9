// Bytes alive at every event of a step while a schedule is being chosen: add bytes to a range of
// events, ask for the maximum of a range or for the last event of a range above a limit. A segment
// tree with additions kept at the nodes (never pushed down): O(log events) each, built in
// O(events).
#pragma once

#include <cstddef>
#include <vector>

#include "traces/units.h"

namespace stowage::simulator {

class MemoryProfile {
 public:
  explicit MemoryProfile(const std::vector<Bytes>& bytes);

  // Ranges are [first, last), within the size given at construction.
  void add(std::size_t first, std::size_t last, Bytes bytes);
  // Maximum of a range; the lowest Bytes for an empty range.
  [[nodiscard]] Bytes max(std::size_t first, std::size_t last) const;
  // Last event of the range with more than `limit` bytes; `last` when there is none.
  [[nodiscard]] std::size_t last_above(std::size_t first, std::size_t last, Bytes limit) const;

 private:
  struct Node {
    Bytes max = 0;  // of the subtree, `add` of this node included, of those above not
    Bytes add = 0;
  };
  struct Span {
    std::size_t node, first, last;
  };

  [[nodiscard]] Bytes max(Span at, std::size_t first, std::size_t last) const;
  [[nodiscard]] std::size_t last_above(Span at, std::size_t first, std::size_t last,
                                       Bytes limit) const;
  [[nodiscard]] static Span left(Span at);
  [[nodiscard]] static Span right(Span at);
  [[nodiscard]] Span root() const { return {1, 0, leaves_}; }

  std::size_t leaves_ = 1;
  std::vector<Node> nodes_;
};

}  // namespace stowage::simulator
