#include "report/diff.h"

#include <algorithm>
#include <unordered_map>
#include <utility>

#include "report/diff_decisions.h"
#include "report/diff_input_json.h"
#include "report/words.h"
#include "simulator/plan/plan_json.h"
#include "traces/size_text.h"
#include "traces/trace_json.h"

namespace stowage::report {
namespace {

using Value = std::variant<std::int64_t, double, std::string>;

std::optional<double> number_of(const std::optional<Value>& value) {
  if (!value) return std::nullopt;
  if (const auto* whole = std::get_if<std::int64_t>(&*value)) return static_cast<double>(*whole);
  if (const auto* real = std::get_if<double>(&*value)) return *real;
  return std::nullopt;
}

// The same number, whatever it is written as.
bool same(const Value& a, const Value& b) {
  if (a.index() == b.index()) return a == b;
  const auto x = number_of(a);
  const auto y = number_of(b);
  return x && y && *x == *y;
}

Result<std::vector<Fact>> facts_of_text(const std::string& kind, const std::string& text,
                                        const std::string& file) {
  if (kind == "trace") {
    const Result<Trace> trace = trace_from_json(text, file);
    if (!trace) return trace.error();
    Result<std::vector<Fact>> facts = facts_of(*trace);
    if (facts) return facts;
    Error error = facts.error();
    error.file = file;
    return error;
  }
  if (kind == "plan") {
    const Result<simulator::Plan> plan = simulator::plan_from_json(text, file);
    if (!plan) return plan.error();
    return facts_of(*plan);
  }
  return facts_of_result(text, file);
}

// Both can be read.
void add_decisions(const std::string& a, const std::string& b, std::vector<Fact>& before,
                   std::vector<Fact>& after) {
  const auto plan_a = simulator::plan_from_json(a, "");
  const auto plan_b = simulator::plan_from_json(b, "");
  for (Fact& fact : decisions_of(*plan_a, *plan_b)) before.push_back(std::move(fact));
  for (Fact& fact : decisions_of(*plan_b, *plan_a)) after.push_back(std::move(fact));
}

std::string in_words(const std::string& kind) {
  return kind == "trace" || kind == "plan" ? "a " + kind : "an answer of " + kind;
}

}  // namespace

const char* name_of(FactUnit value) {
  switch (value) {
    case FactUnit::bytes:
      return "bytes";
    case FactUnit::nanoseconds:
      return "ns";
    case FactUnit::rate:
      return "bytes/s";
    case FactUnit::number:
      return "number";
    case FactUnit::text:
      return "text";
  }
  STOWAGE_ASSERT(false && "unknown unit");
}

std::string number_text(std::int64_t number, FactUnit unit) {
  if (unit == FactUnit::bytes) return format_bytes(number);
  if (unit == FactUnit::nanoseconds) return format_time(number);
  if (unit == FactUnit::rate) return format_bytes(number) + "/s";
  return with_commas(number);
}

std::optional<double> Change::difference() const {
  const auto a = number_of(before);
  const auto b = number_of(after);
  if (!a || !b) return std::nullopt;
  const auto* whole_a = std::get_if<std::int64_t>(&*before);
  const auto* whole_b = std::get_if<std::int64_t>(&*after);
  if (whole_a != nullptr && whole_b != nullptr) {
    return static_cast<double>(Wide{*whole_b} - Wide{*whole_a});
  }
  return *b - *a;
}

std::optional<double> Change::relative() const {
  const auto moved = difference();
  const auto a = number_of(before);
  if (!moved || *a == 0) return std::nullopt;
  return *moved / *a;
}

std::string Change::relative_text() const {
  const auto part = relative();
  if (!part) return "";
  return percent_text(100 * *part, 1, true);
}

Diff compare(const std::vector<Fact>& before, const std::vector<Fact>& after) {
  std::unordered_map<std::string, std::size_t> rows;
  for (std::size_t i = 0; i < after.size(); ++i) rows.emplace(after[i].name, i);
  std::vector<std::uint8_t> seen(after.size(), 0);
  Diff diff;
  for (const Fact& fact : before) {
    Change change{fact.section, fact.name, fact.unit, fact.value, std::nullopt};
    const auto found = rows.find(fact.name);
    if (found != rows.end() && seen[found->second] == 0) {
      seen[found->second] = 1;
      change.after = after[found->second].value;
      if (same(fact.value, *change.after)) {
        ++diff.unchanged;
        continue;
      }
    }
    diff.changes.push_back(std::move(change));
  }
  for (std::size_t i = 0; i < after.size(); ++i) {
    if (seen[i] != 0) continue;
    const Fact& fact = after[i];
    diff.changes.push_back({fact.section, fact.name, fact.unit, std::nullopt, fact.value});
  }
  return diff;
}

Result<Diff> diff_texts(const std::string& a, const std::string& file_a, const std::string& b,
                        const std::string& file_b) {
  const Result<std::string> kind_a = kind_of_json(a, file_a);
  if (!kind_a) return kind_a.error();
  const Result<std::string> kind_b = kind_of_json(b, file_b);
  if (!kind_b) return kind_b.error();
  if (*kind_a != *kind_b) {
    return Error{ErrorCode::usage,
                 file_a + " is " + in_words(*kind_a) + ", " + file_b + " is " + in_words(*kind_b),
                 "", "", "diff compares two of one kind"};
  }
  Result<std::vector<Fact>> before = facts_of_text(*kind_a, a, file_a);
  if (!before) return before.error();
  Result<std::vector<Fact>> after = facts_of_text(*kind_a, b, file_b);
  if (!after) return after.error();
  if (*kind_a == "plan") add_decisions(a, b, *before, *after);
  Diff diff = compare(*before, *after);
  diff.kind = *kind_a;
  return diff;
}

}  // namespace stowage::report
