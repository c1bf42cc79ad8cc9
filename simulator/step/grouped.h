// Rows that belong to the rows of another table (the saved tensors of each storage): one array in
// order of the groups, and where each group begins. Four bytes a row and a group; a vector of
// vectors takes 24 a group and a block of memory besides.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <utility>
#include <vector>

namespace stowage::simulator {

template <class T>
class Grouped {
 public:
  Grouped() = default;
  // Of (group, row) in any order; rows of a group stay in the order given. O(groups + rows).
  Grouped(std::size_t groups, const std::vector<std::pair<std::size_t, T>>& rows)
      : first_(groups + 1, 0), rows_(rows.size()) {
    for (const auto& row : rows) ++first_[row.first + 1];
    for (std::size_t g = 1; g < first_.size(); ++g) first_[g] += first_[g - 1];
    std::vector<std::uint32_t> next(first_.begin(), first_.end() - 1);
    for (const auto& [group, row] : rows) rows_[next[group]++] = row;
  }

  [[nodiscard]] std::span<const T> operator[](std::size_t group) const {
    return {rows_.data() + first_[group], rows_.data() + first_[group + 1]};
  }

 private:
  std::vector<std::uint32_t> first_ = {0};
  std::vector<T> rows_;
};

}  // namespace stowage::simulator
