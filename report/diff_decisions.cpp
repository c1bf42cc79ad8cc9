#include "report/diff_decisions.h"

#include <algorithm>
#include <charconv>
#include <cstddef>
#include <iterator>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <utility>

#include "simulator/plan/pattern.h"
#include "simulator/plan/pattern_text.h"

namespace stowage::report {
namespace {

using simulator::Pattern;
using simulator::Plan;
using simulator::RecomputeRule;
using simulator::SavedRule;

constexpr std::size_t kMostOfAPattern = 1000;
constexpr std::size_t kMostNames = 5'000;

// "0-2,7" -> 0, 1, 2, 7; none: too many, or no list of numbers.
std::optional<std::vector<std::string>> numbers_in(std::string_view list) {
  std::vector<std::string> out;
  while (!list.empty()) {
    const std::string_view item = list.substr(0, list.find(','));
    list.remove_prefix(std::min(item.size() + 1, list.size()));
    const std::size_t dash = item.find('-');
    const auto number = [](std::string_view text) -> std::optional<std::int64_t> {
      std::int64_t value = 0;
      const auto [end, status] = std::from_chars(text.data(), text.data() + text.size(), value);
      if (status != std::errc() || end != text.data() + text.size()) return std::nullopt;
      return value;
    };
    const auto first = number(item.substr(0, dash));
    const auto last = dash == std::string_view::npos ? first : number(item.substr(dash + 1));
    if (!first || !last || *last - *first >= static_cast<std::int64_t>(kMostOfAPattern)) {
      return std::nullopt;
    }
    for (std::int64_t n = *first; n <= *last; ++n) out.push_back(std::to_string(n));
    if (out.size() > kMostOfAPattern) return std::nullopt;
  }
  return out;
}

// The names of a pattern, its numbers one by one; `*` and `?` stay.
std::vector<std::string> names_of_pattern(const std::string& pattern) {
  std::vector<std::string> names = {""};
  for (std::size_t i = 0; i < pattern.size(); ++i) {
    std::vector<std::string> parts = {std::string(1, pattern[i])};
    const std::size_t close = pattern.find(']', i);
    if (pattern[i] == '[' && close != std::string::npos) {
      const std::string list = pattern.substr(i + 1, close - i - 1);
      const bool is_escape = list == "*" || list == "?" || list == "[";
      const auto numbers = is_escape ? std::vector{list} : numbers_in(list);
      if (!numbers || numbers->size() * names.size() > kMostOfAPattern) return {pattern};
      parts = *numbers;
      i = close;
    }
    std::vector<std::string> longer;
    for (const std::string& name : names) {
      for (const std::string& part : parts) longer.push_back(name + part);
    }
    names = std::move(longer);
  }
  return names;
}

// Of "layers.2..layers.4", whose ends differ in a number alone, all three; of another row its ends.
// Empty: it is no row.
std::vector<std::string> names_of_row(const std::string& segment) {
  const std::size_t dots = segment.find("..");
  if (dots == std::string::npos) return {};
  const std::string first = segment.substr(0, dots);
  const std::string last = segment.substr(dots + 2);
  const simulator::NumberedPath from = simulator::take_apart(first);
  const simulator::NumberedPath to = simulator::take_apart(last);
  const bool is_family = from.number >= 0 && from.number <= to.number && from.prefix == to.prefix &&
                         from.suffix == to.suffix &&
                         to.number - from.number < static_cast<std::int64_t>(kMostOfAPattern);
  if (!is_family) return {first, last};
  std::vector<std::string> names;
  for (std::int64_t number = from.number; number <= to.number; ++number) {
    names.push_back(from.prefix + std::to_string(number) + from.suffix);
  }
  return names;
}

bool is_site(const std::string& name) {
  return name.find('#') != std::string::npos;
}

// A plan's rules, to be asked about a name.
class Decider {
 public:
  explicit Decider(const Plan& plan) : plan_(plan), segments_(segments_of(plan.recompute)) {
    for (const SavedRule& rule : plan.saved) sites_.push_back(parse(rule.site.value_or("*")));
  }

  // Layers first, each in the order of the rules.
  [[nodiscard]] std::vector<std::string> names() const {
    std::vector<std::string> names;
    add(segments_, names);
    for (const SavedRule& rule : plan_.saved) {
      if (rule.site && *rule.site != "*") add(*rule.site, names);
    }
    return names;
  }

  [[nodiscard]] std::string decision(const std::string& name,
                                     const std::vector<std::string>& all) const {
    // What a segment is given is not its own.
    const bool is_given = name.find("#in") != std::string::npos;
    if (std::string again = segment_around(segments_, name); !again.empty() && !is_given) {
      return again;
    }
    if (is_site(name)) return by_rules(name, is_given ? boundary_around(name) : std::nullopt);
    std::set<std::string> inside;
    for (const std::string& each : all) {
      const bool is_inside = is_site(each) && each.size() > name.size() && each.starts_with(name) &&
                             (each[name.size()] == '.' || each[name.size()] == '#');
      if (is_inside) inside.insert(by_rules(each));
    }
    if (inside.size() > 1) inside.erase("keep");
    std::string text;
    for (const std::string& each : inside) text += (text.empty() ? "" : ", ") + each;
    return text.empty() ? by_rules(name) : text;
  }

 private:
  // A rule for segments and those within it.
  struct Segments {
    const RecomputeRule* rule = nullptr;
    std::vector<std::string> names;  // of a row: of all its layers, as far as they can be known
    std::optional<Pattern> pattern;  // of all else
    std::vector<Segments> within;

    [[nodiscard]] bool has(const std::string& name) const {
      if (pattern) return pattern->matches(name);
      return std::find(names.begin(), names.end(), name) != names.end();
    }
  };

  static std::vector<Segments> segments_of(const std::vector<RecomputeRule>& rules) {
    std::vector<Segments> all;
    for (const RecomputeRule& rule : rules) {
      Segments& each = all.emplace_back();
      each.rule = &rule;
      each.names = names_of_row(rule.segment);
      if (each.names.empty()) each.pattern = parse(rule.segment);
      each.within = segments_of(rule.within);
    }
    return all;
  }

  static std::optional<Pattern> parse(const std::string& text) {
    auto pattern = Pattern::parse(text);
    return pattern ? std::optional(std::move(pattern).value()) : std::nullopt;
  }

  static void add(const std::vector<Segments>& rules, std::vector<std::string>& names) {
    for (const Segments& each : rules) {
      if (each.names.empty()) add(each.rule->segment, names);
      names.insert(names.end(), each.names.begin(), each.names.end());
      add(each.within, names);
    }
  }
  static void add(const std::string& pattern, std::vector<std::string>& names) {
    for (std::string& name : names_of_pattern(pattern)) names.push_back(std::move(name));
  }

  // "recompute as a layer", "recompute with layers.3", and what of it is done within that; empty:
  // no segment is named there.
  [[nodiscard]] static std::string segment_around(const std::vector<Segments>& rules,
                                                  const std::string& name) {
    for (std::string path = name.substr(0, name.find('#')); !path.empty();
         path.resize(path.find('.') == std::string::npos ? 0 : path.rfind('.'))) {
      for (const Segments& each : rules) {
        if (!each.has(path)) continue;
        const std::string within = segment_around(each.within, name);
        return (path == name ? as_segment(each) : "recompute with " + path) +
               (within.empty() ? "" : "; within that " + within);
      }
    }
    return "";
  }

  [[nodiscard]] static std::string as_segment(const Segments& segments) {
    const RecomputeRule& rule = *segments.rule;
    const std::string boundary =
        rule.boundary ? std::string(", given ") + simulator::name_of(*rule.boundary) : "";
    if (!segments.names.empty()) return "recompute, as " + rule.segment + boundary;
    if (rule.each == 1) return "recompute as a layer" + boundary;
    const std::string run = rule.each == RecomputeRule::kAll ? "all" : std::to_string(rule.each);
    return "recompute, " + run + " in a row" + boundary;
  }

  // Of what the segment of that layer is given, by its rule.
  [[nodiscard]] std::optional<simulator::Decision> boundary_around(const std::string& name) const {
    const std::string layer = name.substr(0, name.find('#'));
    for (const Segments& each : segments_) {
      if (each.has(layer)) return each.rule->boundary;
    }
    return std::nullopt;
  }

  // With a boundary those that name what segments are given, ahead of it.
  [[nodiscard]] std::string by_rules(
      const std::string& name, std::optional<simulator::Decision> boundary = std::nullopt) const {
    std::string text;
    for (std::size_t r = 0; r < sites_.size(); ++r) {
      if (!sites_[r] || !sites_[r]->matches(name)) continue;
      const SavedRule& rule = plan_.saved[r];
      if (boundary && rule.site.value_or("").find("#in") == std::string::npos) continue;
      std::string does = simulator::name_of(rule.decision);
      if (rule.decision == simulator::Decision::recompute) does += " by ops";
      if (!rule.storage_class && !rule.op && !rule.min_bytes) return text + does;
      text += does + " in part, ";
    }
    return text + simulator::name_of(boundary.value_or(simulator::Decision::keep));
  }

  const Plan& plan_;
  std::vector<Segments> segments_;
  std::vector<std::optional<Pattern>> sites_;
};

}  // namespace

std::vector<Fact> decisions_of(const Plan& plan, const Plan& other) {
  const Decider decider(plan);
  std::vector<std::string> names = decider.names();
  const std::vector<std::string> more = Decider(other).names();
  names.insert(names.end(), more.begin(), more.end());
  std::set<std::string> seen;
  std::erase_if(names, [&](const std::string& name) { return !seen.insert(name).second; });
  if (names.size() > kMostNames) names.resize(kMostNames);
  std::stable_partition(names.begin(), names.end(),
                        [](const std::string& name) { return !is_site(name); });
  std::vector<std::string> sites;
  std::copy_if(names.begin(), names.end(), std::back_inserter(sites), is_site);
  std::vector<Fact> facts;
  for (const std::string& name : names) {
    facts.push_back(
        {"decisions", "decisions." + name, FactUnit::text, decider.decision(name, sites)});
  }
  return facts;
}

}  // namespace stowage::report
