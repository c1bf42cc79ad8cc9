#include "report/answers/leaving_text.h"

#include <algorithm>
#include <map>
#include <utility>
#include <vector>

#include "report/answers/name_family.h"
#include "report/answers/text_table.h"
#include "report/transfers.h"
#include "report/words.h"
#include "traces/size_text.h"

namespace stowage::report {
namespace {

struct Leaving {
  NameFamily names;
  std::int64_t tensors = 0;
  Bytes bytes = 0;
};

std::vector<Leaving> leaving_of(const Trace& trace, const simulator::Schedule& schedule) {
  std::map<std::string, Leaving> families;
  std::vector<bool> is_counted(schedule.tenants.size(), false);
  for (std::size_t i = 0; i < schedule.stays.size(); ++i) {
    const StayId stay(static_cast<std::int32_t>(i));
    const std::size_t tenant = schedule.stays[i].tenant.index();
    if (!serves_saved(schedule, stay) || is_counted[tenant]) continue;
    is_counted[tenant] = true;
    const std::string name = name_of_copy(trace, schedule, stay);
    Leaving& family = families[NameFamily::key_of(name)];
    family.names.add(name);
    ++family.tensors;
    family.bytes += schedule.tenants[tenant].bytes;
  }
  std::vector<Leaving> rows;
  for (auto& [key, family] : families) rows.push_back(std::move(family));
  std::stable_sort(rows.begin(), rows.end(),
                   [](const Leaving& a, const Leaving& b) { return a.bytes > b.bytes; });
  return rows;
}

}  // namespace

std::string leaving_text(const Trace& trace, const simulator::Schedule& schedule, ByteUnits units,
                         std::size_t shown) {
  const std::vector<Leaving> rows = leaving_of(trace, schedule);
  if (rows.empty()) return {};
  TextTable table;
  table.column("leaves for the host");
  table.column("tensors", Align::right);
  table.column("bytes", Align::right);
  Leaving all;
  Leaving others;
  for (std::size_t i = 0; i < rows.size(); ++i) {
    all.tensors += rows[i].tensors;
    all.bytes += rows[i].bytes;
    if (i < shown) {
      table.row(
          {rows[i].names.text(), with_commas(rows[i].tensors), format_bytes(rows[i].bytes, units)});
    } else {
      others.tensors += rows[i].tensors;
      others.bytes += rows[i].bytes;
    }
  }
  if (others.tensors > 0)
    table.row({"others", with_commas(others.tensors), format_bytes(others.bytes, units)});
  if (rows.size() > 1) {
    table.row({"together", with_commas(all.tensors), format_bytes(all.bytes, units)});
  }
  return "\n" + table.text(2);
}

}  // namespace stowage::report
