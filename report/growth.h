// Which storages grew between two moments, by layer and op.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "report/peak_content.h"
#include "traces/units.h"

namespace stowage::report {

// Rows with the same holding, class, layer and op are one; an absent row has no storages. Sites are
// not compared: one more saved tensor renumbers those behind it.
struct Growth {
  PeakRow row;  // as it is now
  std::int64_t storages_before = 0;
  Bytes bytes_before = 0;
  [[nodiscard]] Bytes bytes() const { return row.bytes - bytes_before; }
};

// Rows that hold more bytes than before, most first; equal ones in the order of `now`.
[[nodiscard]] std::vector<Growth> grown(const std::vector<PeakRow>& before,
                                        const std::vector<PeakRow>& now);

// "layers.3.mlp: 4.19 MB more, activation made by aten::gelu, saved as layers.3.mlp#8 (8,388,608
// bytes in 2 storages, was 4,194,304 in 1)"
[[nodiscard]] std::string growth_text(const Growth& growth);

// "layers.3.mlp: 8.39 MB in 2 storages, activation made by aten::gelu, saved as layers.3.mlp#8"
[[nodiscard]] std::string row_text(const PeakRow& row);

}  // namespace stowage::report
