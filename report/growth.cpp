#include "report/growth.h"

#include <algorithm>
#include <map>
#include <tuple>

#include "report/words.h"
#include "traces/size_text.h"

namespace stowage::report {
namespace {

constexpr std::size_t kShownSites = 4;

auto key_of(const PeakRow& row) {
  return std::tie(row.holding, row.storage_class, row.layer, row.op);
}

std::string what_it_is(const PeakRow& row) {
  std::string text = stowage::name_of(row.storage_class);
  if (!row.op.empty()) text += " made by " + row.op;
  if (row.holding == Holding::reloaded) text += ", reloaded";
  if (row.holding == Holding::host) text += ", on the host";
  if (row.sites.empty()) return text;
  text += ", saved as ";
  for (std::size_t i = 0; i < std::min(row.sites.size(), kShownSites); ++i) {
    text += (i == 0 ? "" : ", ") + row.sites[i];
  }
  if (row.sites.size() > kShownSites) text += ", ..";
  return text;
}

}  // namespace

std::vector<Growth> grown(const std::vector<PeakRow>& before, const std::vector<PeakRow>& now) {
  using Key = decltype(key_of(before.front()));
  std::map<Key, const PeakRow*> old;
  for (const PeakRow& row : before) old.emplace(key_of(row), &row);
  std::vector<Growth> result;
  for (const PeakRow& row : now) {
    Growth growth{row};
    if (const auto found = old.find(key_of(row)); found != old.end()) {
      growth.storages_before = found->second->storages;
      growth.bytes_before = found->second->bytes;
    }
    if (growth.bytes() > 0) result.push_back(std::move(growth));
  }
  std::stable_sort(result.begin(), result.end(),
                   [](const Growth& a, const Growth& b) { return a.bytes() > b.bytes(); });
  return result;
}

std::string growth_text(const Growth& growth) {
  return growth.row.layer + ": " + format_bytes(growth.bytes()) + " more, " +
         what_it_is(growth.row) + " (" + with_commas(growth.row.bytes) + " bytes in " +
         count_of(growth.row.storages, "storage") + ", was " + with_commas(growth.bytes_before) +
         " in " + with_commas(growth.storages_before) + ")";
}

std::string row_text(const PeakRow& row) {
  return row.layer + ": " + format_bytes(row.bytes) + " in " + count_of(row.storages, "storage") +
         ", " + what_it_is(row);
}

}  // namespace stowage::report
