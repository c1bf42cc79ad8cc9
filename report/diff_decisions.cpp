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

bool is_site(const std::string& name) {
  return name.find('#') != std::string::npos;
}

// A plan's rules, to be asked about a name.
class Decider {
 public:
  explicit Decider(const Plan& plan) : plan_(plan) {
    for (const RecomputeRule& rule : plan.recompute) segments_.push_back(parse(rule.segment));
    for (const SavedRule& rule : plan.saved) sites_.push_back(parse(rule.site.value_or("*")));
  }

  // Layers first, each in the order of the rules.
  [[nodiscard]] std::vector<std::string> names() const {
    std::vector<std::string> names;
    for (const RecomputeRule& rule : plan_.recompute) add(rule.segment, names);
    for (const SavedRule& rule : plan_.saved) {
      if (rule.site && *rule.site != "*") add(*rule.site, names);
    }
    return names;
  }

  [[nodiscard]] std::string decision(const std::string& name,
                                     const std::vector<std::string>& all) const {
    // What a segment is given is not its own.
    const bool is_given = name.find("#in") != std::string::npos;
    if (std::string again = segment_around(name); !again.empty() && !is_given) return again;
    if (is_site(name)) return by_rules(name);
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
  static std::optional<Pattern> parse(const std::string& text) {
    auto pattern = Pattern::parse(text);
    return pattern ? std::optional(std::move(pattern).value()) : std::nullopt;
  }

  static void add(const std::string& pattern, std::vector<std::string>& names) {
    for (std::string& name : names_of_pattern(pattern)) names.push_back(std::move(name));
  }

  // "recompute as a layer", "recompute with layers.3"; empty: no segment is named there.
  [[nodiscard]] std::string segment_around(const std::string& name) const {
    for (std::string path = name.substr(0, name.find('#')); !path.empty();
         path.resize(path.find('.') == std::string::npos ? 0 : path.rfind('.'))) {
      for (std::size_t r = 0; r < segments_.size(); ++r) {
        if (!segments_[r] || !segments_[r]->matches(path)) continue;
        if (path != name) return "recompute with " + path;
        const std::int32_t each = plan_.recompute[r].each;
        const std::string boundary =
            plan_.recompute[r].boundary == simulator::Decision::offload ? ", given offload" : "";
        if (each == 1) return "recompute as a layer" + boundary;
        const std::string run = each == RecomputeRule::kAll ? "all" : std::to_string(each);
        return "recompute, " + run + " in a row" + boundary;
      }
    }
    return "";
  }

  [[nodiscard]] std::string by_rules(const std::string& name) const {
    std::string text;
    for (std::size_t r = 0; r < sites_.size(); ++r) {
      if (!sites_[r] || !sites_[r]->matches(name)) continue;
      const SavedRule& rule = plan_.saved[r];
      std::string does = simulator::name_of(rule.decision);
      if (rule.decision == simulator::Decision::recompute) does += " by ops";
      if (!rule.storage_class && !rule.op && !rule.min_bytes) return text + does;
      text += does + " in part, ";
    }
    return text + "keep";
  }

  const Plan& plan_;
  std::vector<std::optional<Pattern>> segments_;
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
