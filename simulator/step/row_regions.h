// What of a step stays when pieces of it are exchanged, and how a column of a table follows.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <vector>

#include "simulator/step/pass_rows.h"

namespace stowage::simulator {

// Rows of one table that stay together, and by how much their numbers change.
struct RowRegion {
  std::int32_t from = 0;  // first row before
  std::int32_t to = 0;    // and now
  std::int32_t count = 0;
};

// Of one table: regions in order. What is between two of them before is gone, what is between two
// of them now is new.
struct RowRegions {
  static constexpr std::int32_t kGone = -2;

  std::vector<RowRegion> regions;
  std::int32_t before = 0;  // rows of the table
  std::int32_t now = 0;

  // Puts what stays in its new place; what is new has any value. Cost: O(rows behind the first that
  // moves), plain moves of memory.
  template <class T>
  void splice(std::vector<T>& column) const {
    column.resize(static_cast<std::size_t>(std::max(before, now)));
    const auto move = [&](const RowRegion& region) {
      const auto first = column.begin() + region.from;
      const auto end = first + region.count;
      if (region.to < region.from) std::move(first, end, column.begin() + region.to);
      if (region.to > region.from) {
        std::move_backward(first, end, column.begin() + region.to + region.count);
      }
    };
    for (const RowRegion& region : regions) {
      if (region.to < region.from) move(region);
    }
    for (std::size_t r = regions.size(); r-- > 0;) {
      if (regions[r].to > regions[r].from) move(regions[r]);
    }
    column.resize(static_cast<std::size_t>(now));
  }

  // The row that a row is now, kGone for one that is gone. By row before.
  [[nodiscard]] std::vector<std::int32_t> map() const {
    std::vector<std::int32_t> rows(static_cast<std::size_t>(before), kGone);
    for (const RowRegion& region : regions) {
      for (std::int32_t i = 0; i < region.count; ++i) {
        rows[static_cast<std::size_t>(region.from + i)] = region.to + i;
      }
    }
    return rows;
  }
};

// Of all tables; `tables` by RowTable.
struct StepRegions {
  RowRegions events;
  std::array<RowRegions, kRowTables> tables;
  [[nodiscard]] const RowRegions& of(RowTable table) const { return tables[index_of(table)]; }
};

}  // namespace stowage::simulator
