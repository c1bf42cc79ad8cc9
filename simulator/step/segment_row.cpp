#include "simulator/step/segment_row.h"

#include <algorithm>
#include <cstddef>
#include <optional>
#include <utility>

#include "simulator/plan/pattern_text.h"
#include "traces/nearest.h"

namespace stowage::simulator {
namespace {

using Call = SegmentFinder::Named;
using Calls = std::vector<Call>;

Error row_error(std::string message, std::string hint) {
  return {ErrorCode::bad_input, std::move(message), "", "", std::move(hint)};
}

// From the first call that is named `first` to the next one that is named `last`; without that,
// empty.
Calls calls_between(const Calls& calls, const std::string& first, const std::string& last) {
  Calls run;
  for (const Call& call : calls) {
    const bool is_next = run.empty() ? call.name == first : run.back().end <= call.first;
    if (!is_next) continue;
    run.push_back(call);
    if (call.name == last) return run;
  }
  return {};
}

const Call* call_named(const Calls& calls, const std::string& name) {
  const auto found =
      std::find_if(calls.begin(), calls.end(), [&](const Call& call) { return call.name == name; });
  return found == calls.end() ? nullptr : &*found;
}

// Where `name` is "layers.0@3" and there are other calls of "layers.0".
std::optional<Error> names_another_call(const Calls& calls, const std::string& name) {
  const std::string layer = name.substr(0, name.find('@'));
  if (layer.size() == name.size()) return std::nullopt;
  std::vector<std::string> names;
  for (const Call& call : calls) {
    if (call.layer == layer) names.push_back(call.name);
  }
  if (names.empty()) return std::nullopt;
  const std::string message =
      "\"" + short_text(name) + "\" names no layer call: the step calls '" + layer + "' ";
  if (names.front() == layer) return row_error(message + "once", "name it '" + layer + "'");
  return row_error(message + std::to_string(names.size()) + " times",
                   "its calls are '" + names.front() + "' to '" + names.back() + "'");
}

// Of two calls of which the later one is not reached from the earlier one.
Error why_not_reached(const Calls& calls, const Call& first, const Call& last) {
  if (last.first < first.first && last.end <= first.first) {
    return row_error("'" + last.name + "' runs ahead of '" + first.name + "'",
                     "\"" + last.name + kRunOfLayers + first.name + "\"");
  }
  const std::string hint = "a row has layers that run one after the other, none within another";
  for (const Call& call : calls) {
    const bool is_around = call.first < last.first && last.end <= call.end;
    if (!is_around || call.first < first.first) continue;
    return row_error("'" + last.name + "' lies within '" + call.name + "'", hint);
  }
  return row_error("'" + first.name + "' lies within '" + last.name + "'", hint);
}

}  // namespace

std::vector<SegmentFinder::Named> calls_in(const std::vector<SegmentFinder::Named>& calls,
                                           const std::string& segment) {
  const std::size_t dots = segment.find(kRunOfLayers);
  if (dots == std::string::npos) return calls_between(calls, segment, segment);
  return calls_between(calls, segment.substr(0, dots), segment.substr(dots + kRunOfLayers.size()));
}

Error names_no_call(const std::vector<SegmentFinder::Named>& calls,
                    const std::vector<SegmentFinder::Named>& all, const std::string& name) {
  const std::string message = "\"" + short_text(name) + "\" names no layer call";
  if (calls.empty()) return row_error(message, "no layer call lies there");
  if (call_named(calls, name) == nullptr && call_named(all, name) != nullptr) {
    return row_error(message + " there",
                     "only calls within the segments of the rule around it count: '" + name +
                         "' lies outside of them, or is all of one");
  }
  if (auto error = names_another_call(calls, name)) return *std::move(error);
  std::vector<std::string> names;
  for (const Call& call : calls) {
    names.push_back(call.name);
    if (call.layer == name) {
      return row_error(
          message, "the step calls that layer several times: '" + call.name + "' is one of them");
    }
  }
  if (name == "step") return row_error(message, "\"step\" stands for what lies in no layer");
  const std::string near = nearest(name, names);
  return row_error(message, near.empty() ? "stowage inspect --by layer lists the layers"
                                         : "the nearest layer is " + near);
}

Error why_no_row(const std::vector<std::vector<SegmentFinder::Named>>& places,
                 const std::vector<SegmentFinder::Named>& all, const std::string& row) {
  const std::size_t dots = row.find(kRunOfLayers);
  const std::string first = row.substr(0, dots);
  const std::string last = dots == std::string::npos ? "" : row.substr(dots + kRunOfLayers.size());
  if (first.empty() || last.empty() || last.find(kRunOfLayers) != std::string::npos) {
    return row_error("a row of layers has the names of two of them", "\"layers.0..layers.3\"");
  }
  if (row.find_first_of("*?[") != std::string::npos) {
    return row_error("a row of layers has names, no patterns",
                     R"("each": "run" lets all that a pattern names run again as one segment)");
  }
  if (first == last) return row_error("the row has one layer", "name it alone: \"" + first + "\"");
  Calls calls;
  for (const Calls& place : places) calls.insert(calls.end(), place.begin(), place.end());
  for (const std::string& name : {first, last}) {
    if (call_named(calls, name) == nullptr) return names_no_call(calls, all, name);
  }
  for (const Calls& place : places) {
    const Call* const from = call_named(place, first);
    const Call* const to = call_named(place, last);
    if (from != nullptr && to != nullptr) return why_not_reached(place, *from, *to);
  }
  return row_error("'" + first + "' and '" + last + "' lie in two segments of the rule around it",
                   "a row within a rule lies in one of its segments: write one for each");
}

}  // namespace stowage::simulator
