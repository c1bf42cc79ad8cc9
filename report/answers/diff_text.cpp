#include "report/answers/diff_text.h"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <map>

#include "report/answers/text_table.h"
#include "report/text_escape.h"
#include "report/words.h"

namespace stowage::report {
namespace {

constexpr std::size_t kTextLength = 60;

std::string real_text(double number) {
  char buffer[64];
  std::snprintf(buffer, sizeof buffer, "%.6g", number);
  return buffer;
}

std::string value_text(const std::optional<std::variant<std::int64_t, double, std::string>>& value,
                       FactUnit unit) {
  if (!value) return "-";
  if (const auto* whole = std::get_if<std::int64_t>(&*value)) return number_text(*whole, unit);
  if (const auto* real = std::get_if<double>(&*value)) return real_text(*real);
  return shortened(printable(std::get<std::string>(*value)), kTextLength);
}

std::string difference_text(const Change& change) {
  const auto difference = change.difference();
  if (!difference) return change.before && change.after ? "" : (change.before ? "gone" : "new");
  const std::string sign = *difference > 0 ? "+" : "";
  if (std::holds_alternative<std::int64_t>(*change.before) &&
      std::holds_alternative<std::int64_t>(*change.after) && std::abs(*difference) < 9e15) {
    return sign + number_text(static_cast<std::int64_t>(*difference), change.unit);
  }
  return sign + real_text(*difference);
}

double weight(const Change& change) {
  const auto difference = change.difference();
  // What is only in one of them, and texts, come first.
  return difference ? std::abs(*difference) : HUGE_VAL;
}

std::string section_text(std::vector<const Change*> changes, int top, const Paint& paint) {
  const std::size_t all = changes.size();
  const std::string& section = changes.front()->section;
  std::string text = "\n" + paint.bold(section.empty() ? "whole" : printable(section)) + "\n";
  if (all > static_cast<std::size_t>(top)) {
    std::stable_sort(changes.begin(), changes.end(),
                     [](const auto* a, const auto* b) { return weight(*a) > weight(*b); });
    changes.resize(static_cast<std::size_t>(top));
  }
  TextTable table;
  table.column("");
  table.column("before", Align::right);
  table.column("after", Align::right);
  table.column("difference", Align::right);
  table.column("", Align::right);
  for (const Change* change : changes) {
    table.row({shortened(printable(change->name), kTextLength),
               value_text(change->before, change->unit), value_text(change->after, change->unit),
               difference_text(*change), change->relative_text()});
  }
  text += table.text(2);
  if (all > changes.size()) {
    text += "  ... and " + with_commas(static_cast<std::int64_t>(all - changes.size())) +
            " more (--top N shows them)\n";
  }
  return text;
}

}  // namespace

std::string diff_text(const Diff& diff, const std::string& before, const std::string& after,
                      int top, const Paint& paint) {
  const std::string kind =
      diff.kind == "trace" || diff.kind == "plan" ? diff.kind + "s" : "answers of " + diff.kind;
  std::string text = "Two " + printable(kind) + ": " + printable(before) + " -> " +
                     printable(after) + "\n" +
                     count_of(static_cast<std::int64_t>(diff.changes.size()), "change") + ", " +
                     with_commas(diff.unchanged) + " facts are the same\n";
  // In the order in which sections appear first.
  std::vector<std::vector<const Change*>> sections;
  std::map<std::string, std::size_t> rows;
  for (const Change& change : diff.changes) {
    const auto [known, is_new] = rows.try_emplace(change.section, sections.size());
    if (is_new) sections.emplace_back();
    sections[known->second].push_back(&change);
  }
  for (auto& section : sections) text += section_text(std::move(section), top, paint);
  return text;
}

}  // namespace stowage::report
