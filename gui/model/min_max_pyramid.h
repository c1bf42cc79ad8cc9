// Lowest and highest value of any range of a long row of values, with where the highest is: what a
// memory curve needs to keep its true peak at every zoom. (Sampling 256 points a pixel loses a
// spike of one sample 86 % of the time.) Blocks of 16 values, then of 16 blocks, and so on: 2 bytes
// a value beside its own 8, O(log n) a range. Like a segment tree, with flat levels. Copies share
// all of it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "gui/model/shared_column.h"
#include "traces/units.h"

namespace stowage::gui {

class MinMaxPyramid {
 public:
  struct Extent {
    Bytes min = 0;
    Bytes max = 0;
    std::size_t max_at = 0;  // the first place with that value
  };

  MinMaxPyramid() = default;
  // Fewer than 2^32 values.
  explicit MinMaxPyramid(std::vector<Bytes> values);

  [[nodiscard]] std::size_t size() const { return values_.size(); }
  [[nodiscard]] Bytes operator[](std::size_t i) const { return values_[i]; }
  // Of [first, last). Precondition: not empty, within the values.
  [[nodiscard]] Extent extent(std::size_t first, std::size_t last) const;

 private:
  static constexpr std::size_t kFan = 16;
  struct Block {
    Bytes min;
    Bytes max;
    std::uint32_t max_at;
  };
  static void take(Extent& into, Bytes min, Bytes max, std::size_t at);

  SharedColumn<Bytes> values_;
  std::vector<SharedColumn<Block>> levels_;  // levels_[0]: blocks of kFan values
};

}  // namespace stowage::gui
