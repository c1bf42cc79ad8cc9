#include "planner/footprint_changes.h"

#include <algorithm>
#include <cstdint>
#include <iterator>
#include <utility>

namespace stowage::planner {
namespace {

std::vector<Bytes> most_in(const std::vector<std::int32_t>& starts,
                           const std::vector<Bytes>& curve) {
  std::vector<Bytes> most;
  for (std::size_t i = 0; i < starts.size(); ++i) {
    const auto first = curve.begin() + starts[i];
    const auto last = i + 1 < starts.size() ? curve.begin() + starts[i + 1] : curve.end();
    most.push_back(first == last ? 0 : *std::max_element(first, last));
  }
  return most;
}

// The spans of an option less those of `keep`, summed up.
std::vector<ByteChange> changes_of(const Option& option, const Option& keep,
                                   const std::vector<std::int32_t>& starts) {
  std::vector<std::pair<std::size_t, Bytes>> steps;
  const auto segment = [&](std::int32_t position) {
    return static_cast<std::size_t>(std::lower_bound(starts.begin(), starts.end(), position) -
                                    starts.begin());
  };
  for (const auto& [of, sign] : {std::pair{&option, Bytes{1}}, std::pair{&keep, Bytes{-1}}}) {
    for (const FootprintSpan& span : of->spans) {
      if (span.first >= span.last) continue;
      steps.emplace_back(segment(span.first), sign * span.bytes);
      steps.emplace_back(segment(span.last), -sign * span.bytes);
    }
  }
  std::sort(steps.begin(), steps.end());
  std::vector<ByteChange> changes;
  Bytes now = 0;
  for (std::size_t i = 0; i < steps.size();) {
    const std::size_t at = steps[i].first;
    const Bytes before = now;
    for (; i < steps.size() && steps[i].first == at; ++i) now += steps[i].second;
    if (now == before) continue;
    if (before != 0) changes.back().last = at;
    if (now != 0) changes.push_back({at, starts.size(), now});
  }
  return changes;
}

}  // namespace

FootprintChanges::FootprintChanges(const Footprints& footprints) : segments_(0), resident_({}) {
  const std::vector<std::int32_t> starts = footprints.segment_starts();
  segments_ = starts.size();
  resident_ = simulator::MemoryProfile(most_in(starts, footprints.resident()));
  changes_.resize(footprints.movable().size());
  for (std::size_t m = 0; m < changes_.size(); ++m) {
    const std::vector<Option>& options = footprints.movable()[m].options;
    for (std::size_t o = 1; o < options.size(); ++o) {
      changes_[m][static_cast<std::size_t>(options[o].choice)] =
          changes_of(options[o], options.front(), starts);
    }
  }
}

Bytes FootprintChanges::at(std::size_t movable, Choice choice, std::size_t segment) const {
  const std::vector<ByteChange>& changes = of(movable, choice);
  const auto behind =
      std::upper_bound(changes.begin(), changes.end(), segment,
                       [](std::size_t at, const ByteChange& change) { return at < change.first; });
  if (behind == changes.begin()) return 0;
  const ByteChange& change = *std::prev(behind);
  return segment < change.last ? change.bytes : 0;
}

}  // namespace stowage::planner
