#include "tests/predictions/differences.h"

#include <algorithm>
#include <array>
#include <sstream>

namespace stowage::predictions {
namespace {

using Json = nlohmann::json;

constexpr std::size_t kWidest = 60;

std::string value_of(const Json& figures, const std::string& key) {
  return figures.contains(key) ? figures.at(key).dump() : "(none)";
}

std::string line_of(std::istringstream& text) {
  std::string line;
  return std::getline(text, line) ? line : "(end)";
}

// The first line that is not the same. Both texts differ.
Difference first_other_line(const std::string& golden, const std::string& now) {
  std::istringstream a(golden);
  std::istringstream b(now);
  for (int number = 1;; ++number) {
    const std::string before = line_of(a);
    const std::string after = line_of(b);
    if (before != after || before == "(end)")
      return {"", "", "plan line " + std::to_string(number), before, after, false};
  }
}

// Why a searched answer is worse than the recorded one, by field; empty when it is not. `counter`:
// what the budget is about.
std::vector<std::string> worse_fields(const Json& golden, const Json& now,
                                      const std::string& counter) {
  if (now.at("exit_code") != 0) {
    if (golden.at("exit_code") == 0) return {"exit_code"};
    return {};
  }
  std::vector<std::string> fields;
  if (now.at(counter) > now.at("budget_bytes")) fields.push_back(counter);
  if (golden.at("exit_code") == 0 && now.at("step_ns") > golden.at("step_ns"))
    fields.emplace_back("step_ns");
  if (now.at("lower_bound_step_ns") > now.at("step_ns")) fields.emplace_back("lower_bound_step_ns");
  return fields;
}

// Of a long text the part around the first character that `other` does not have there.
std::string short_text(const std::string& text, const std::string& other) {
  if (text.size() <= kWidest) return text;
  const auto same = std::mismatch(text.begin(), text.end(), other.begin(), other.end()).first;
  const auto at = static_cast<std::size_t>(same - text.begin());
  const std::size_t begin = at < kWidest / 2 ? 0 : at - kWidest / 2;
  return (begin == 0 ? "" : "..") + text.substr(begin, kWidest) +
         (begin + kWidest < text.size() ? ".." : "");
}

}  // namespace

std::vector<Difference> compare(const std::string& sample, const Question& question,
                                const Answer& golden, const Answer& now) {
  std::vector<std::string> fields;
  for (const auto& [key, value] : golden.figures.items()) fields.push_back(key);
  for (const auto& [key, value] : now.figures.items())
    if (!golden.figures.contains(key)) fields.push_back(key);

  // The same budget is the condition of comparing at all.
  const bool same_budget =
      value_of(golden.figures, "budget_bytes") == value_of(now.figures, "budget_bytes");
  const std::string counter =
      question.placement == "planned" ? "peak_reserved_bytes" : "peak_active_bytes";
  const std::vector<std::string> worse = question.searched()
                                             ? worse_fields(golden.figures, now.figures, counter)
                                             : std::vector<std::string>{};
  std::vector<Difference> rows;
  for (const std::string& field : fields) {
    const std::string before = value_of(golden.figures, field);
    const std::string after = value_of(now.figures, field);
    const bool is_worse = std::find(worse.begin(), worse.end(), field) != worse.end();
    if (before == after && !is_worse) continue;
    rows.push_back({sample, question.name, field, before, after,
                    question.searched() && same_budget && !is_worse});
  }
  if (golden.plan != now.plan) {
    Difference row = first_other_line(golden.plan, now.plan);
    row.sample = sample;
    row.question = question.name;
    row.allowed = question.searched();
    rows.push_back(std::move(row));
  }
  return rows;
}

std::vector<Difference> compare_replay(const std::string& sample, const std::string& question,
                                       const Json& golden, const Json& now) {
  std::vector<Difference> rows;
  for (const auto& [key, value] : now.items()) {
    const std::string before = value_of(golden, key);
    if (before != value.dump())
      rows.push_back({sample, "replay of " + question, key, before, value.dump(), false});
  }
  return rows;
}

std::string table(const std::vector<Difference>& rows) {
  if (rows.empty()) return "No difference.\n";
  std::vector<std::array<std::string, 6>> cells = {
      {"sample", "what", "field", "golden", "now", ""}};
  for (const Difference& row : rows) {
    cells.push_back({row.sample, row.question, row.field, short_text(row.golden, row.now),
                     short_text(row.now, row.golden), row.allowed ? "no worse" : "NOT ALLOWED"});
  }
  std::array<std::size_t, 6> widths{};
  for (const auto& line : cells)
    for (std::size_t i = 0; i < line.size(); ++i) widths[i] = std::max(widths[i], line[i].size());
  std::string text;
  for (const auto& line : cells) {
    for (std::size_t i = 0; i + 1 < line.size(); ++i)
      text += line[i] + std::string(widths[i] - line[i].size() + 2, ' ');
    text += line.back() + "\n";
  }
  return text;
}

}  // namespace stowage::predictions
