#include "simulator/step/segment_rules.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <utility>

#include "simulator/plan/pattern.h"
#include "simulator/plan/pattern_text.h"
#include "simulator/step/segment_row.h"

namespace stowage::simulator {
namespace {

using Call = SegmentFinder::Named;
using Calls = std::vector<Call>;

bool overlap(const Call& a, const Call& b) {
  return a.first < b.end && b.first < a.end;
}

bool lies_within(const Call& inner, const Call& outer) {
  return overlap(inner, outer) && outer.first <= inner.first && inner.end <= outer.end;
}

// Where rules look: the calls within a segment of the rule around them, or all of the recording.
struct Place {
  Calls calls;
  Calls around;  // that segment's own
  Calls taken;   // by earlier rules
};

// What can lie in a segment of these calls: all within them, and each of several.
Calls calls_within(const Calls& all, const Calls& segment) {
  Calls within;
  for (const Call& call : all) {
    const bool is_inside = segment.front().first <= call.first && call.end <= segment.back().end;
    const bool is_all = segment.size() == 1 && call.first == segment.front().first;
    if (is_inside && !is_all) within.push_back(call);
  }
  return within;
}

std::string name_of_segment(const Calls& segment) {
  return segment.size() == 1 ? segment.front().name
                             : segment.front().name + kRunOfLayers + segment.back().name;
}

// One rule, in all places.
class Reading {
 public:
  Reading(const RecomputeRule& rule, const Calls& all, std::string at)
      : rule_(rule), all_(all), at_(std::move(at)) {}

  // The segments that it names there.
  Result<std::vector<Calls>> read(const Place& place) {
    const bool is_row = rule_.segment.find(kRunOfLayers) != std::string::npos;
    Result<std::vector<Calls>> segments = is_row ? row(place) : groups(place);
    if (!segments) return segments;
    for (const Calls& segment : *segments) {
      is_read_ = true;
      const bool is_all = !place.around.empty() &&
                          segment.front().first == place.around.front().first &&
                          segment.back().end == place.around.back().end;
      if (!is_all) continue;
      return bad("the rule names all of '" + name_of_segment(place.around) +
                     "', the segment that it is within",
                 "let it name fewer calls, or give it a smaller \"each\"");
    }
    return segments;
  }

  // Once all places are read.
  [[nodiscard]] Status check(const std::vector<Place>& places) const {
    if (is_read_ && rule_.each > most_) {
      return Error{ErrorCode::bad_input,
                   "\"each\" is " + std::to_string(rule_.each) + ", and \"" +
                       short_text(rule_.segment) + "\" names " + std::to_string(most_) +
                       (most_ == 1 ? " layer call" : " layer calls"),
                   "", at_ + "/each", "\"each\": \"run\" lets all of them run again as one"};
    }
    if (is_read_) return Unit{};
    if (names_any_) {
      return bad(
          "earlier rules have every layer call that \"" + short_text(rule_.segment) + "\" names",
          "leave one of them out");
    }
    if (rule_.segment.find(kRunOfLayers) != std::string::npos) {
      std::vector<Calls> each;
      for (const Place& place : places) each.push_back(place.calls);
      return at_segment(why_no_row(each, all_, rule_.segment));
    }
    Calls calls;
    for (const Place& place : places) {
      calls.insert(calls.end(), place.calls.begin(), place.calls.end());
    }
    return at_segment(names_no_call(calls, all_, rule_.segment));
  }

 private:
  [[nodiscard]] Error at_segment(Error error) const {
    error.pointer = at_ + "/segment";
    return error;
  }
  [[nodiscard]] Error bad(std::string message, std::string hint) const {
    return at_segment({ErrorCode::bad_input, std::move(message), "", "", std::move(hint)});
  }
  [[nodiscard]] Error has_in_it(const std::string& call, const std::string& part) const {
    return bad("'" + call + "' has '" + part + "' in it, which an earlier rule names",
               "name '" + part + "' \"within\" this rule, or leave one of both out");
  }

  [[nodiscard]] Result<std::vector<Calls>> row(const Place& place) const {
    Calls row = calls_in(place.calls, rule_.segment);
    if (row.size() < 2) return std::vector<Calls>();
    for (const Call& call : row) {
      for (const Call& other : place.taken) {
        if (!overlap(call, other)) continue;
        if (lies_within(other, call) && other.name != call.name) {
          return has_in_it(call.name, other.name);
        }
        return bad("the row has '" + call.name + "', which an earlier rule names",
                   "leave one of both out");
      }
    }
    return std::vector<Calls>{std::move(row)};
  }

  // The outermost calls that the pattern names and that no earlier rule has.
  Result<Calls> calls_of(const Place& place, const Pattern& pattern) {
    Calls mine;
    for (const Call& call : place.calls) {
      if (!pattern.matches(call.name) && !pattern.matches(call.layer)) continue;
      names_any_ = true;
      bool is_free = true;
      for (const Call& other : place.taken) {
        if (!overlap(call, other)) continue;
        if (!lies_within(call, other)) return has_in_it(call.name, other.name);
        is_free = false;
      }
      const auto overlaps = [&](const Call& other) { return overlap(call, other); };
      if (is_free && std::none_of(mine.begin(), mine.end(), overlaps)) mine.push_back(call);
    }
    return mine;
  }

  Result<std::vector<Calls>> groups(const Place& place) {
    const auto pattern = Pattern::parse(rule_.segment);
    if (!pattern) return at_segment(pattern.error());
    const Result<Calls> found = calls_of(place, *pattern);
    if (!found) return found.error();
    const Calls& mine = *found;
    most_ = std::max(most_, static_cast<std::int32_t>(mine.size()));
    const std::size_t each = rule_.each == RecomputeRule::kAll
                                 ? std::max<std::size_t>(mine.size(), 1)
                                 : static_cast<std::size_t>(rule_.each);
    std::vector<Calls> segments;
    for (std::size_t i = 0; i < mine.size(); i += each) {
      const std::size_t end = std::min(i + each, mine.size());
      segments.emplace_back(mine.begin() + static_cast<std::ptrdiff_t>(i),
                            mine.begin() + static_cast<std::ptrdiff_t>(end));
    }
    return segments;
  }

  const RecomputeRule& rule_;
  const Calls& all_;
  std::string at_;
  bool names_any_ = false;
  bool is_read_ = false;
  std::int32_t most_ = 1;  // calls that it names in one place
};

// The segments of rules, and of those within them.
class Names {
 public:
  explicit Names(Calls all) : all_(std::move(all)) {}

  Status add(const std::vector<RecomputeRule>& rules) {
    return add({{all_, {}, {}}}, rules, "/recompute");
  }
  std::vector<NamedSegment> names;

 private:
  Status add(std::vector<Place> places, const std::vector<RecomputeRule>& rules,
             const std::string& pointer) {
    for (std::size_t r = 0; r < rules.size(); ++r) {
      const std::string at = pointer + "/" + std::to_string(r);
      Reading reading(rules[r], all_, at);
      std::vector<Place> inside;  // by segment
      for (Place& place : places) {
        Result<std::vector<Calls>> segments = reading.read(place);
        if (!segments) return std::move(segments).error();
        for (Calls& segment : *segments) {
          place.taken.insert(place.taken.end(), segment.begin(), segment.end());
          names.push_back({name_of_segment(segment), at});
          inside.push_back({calls_within(place.calls, segment), segment, {}});
        }
      }
      if (Status status = reading.check(places); !status) return status;
      if (Status status = add(std::move(inside), rules[r].within, at + "/within"); !status) {
        return status;
      }
    }
    return Unit{};
  }

  Calls all_;
};

}  // namespace

Result<std::vector<NamedSegment>> segments_named(const Trace& recording,
                                                 const std::vector<RecomputeRule>& rules) {
  if (rules.empty()) return std::vector<NamedSegment>();
  Names names(SegmentFinder(recording).calls());
  if (Status status = names.add(rules); !status) return status.error();
  return std::move(names.names);
}

}  // namespace stowage::simulator
