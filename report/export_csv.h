// Tables of a step as CSV (RFC 4180: commas, CRLF, a header row, quotes where needed). Times are ns
// since step begin, sizes bytes; an empty field: there is none. docs/exports.md lists the columns.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "report/step_view.h"

namespace stowage::report {

enum class CsvTable : std::uint8_t {
  memory,    // one row an event at which memory changes, with a column a class
  storages,  // one row a storage of the device: its story
  stalls,    // one row a stall, longest first, with reason and remedies
  timeline,  // one row a span, lane by lane
};
[[nodiscard]] const char* name_of(CsvTable value);
[[nodiscard]] std::optional<CsvTable> csv_table_of(std::string_view name);

// Cost: O(rows).
[[nodiscard]] std::string export_csv(const StepView& step, CsvTable table);

}  // namespace stowage::report
