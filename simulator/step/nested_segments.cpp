#include "simulator/step/nested_segments.h"

#include <algorithm>
#include <cstdint>
#include <optional>
#include <string>
#include <tuple>
#include <utility>

namespace stowage::simulator {
namespace {

// By segment: the innermost one around it, -1 without; and how many lie within each other in it.
struct Nests {
  std::vector<std::int32_t> outer;
  std::vector<std::int32_t> height;

  [[nodiscard]] std::int32_t highest() const {
    return height.empty() ? 0 : *std::max_element(height.begin(), height.end());
  }
};

Error bad(const Segment& segment, std::string message, std::string hint) {
  return {ErrorCode::bad_input, std::move(message), "", segment.entry, std::move(hint)};
}

Status check_lies_within(const Trace& recording, const Segment& outer, const Segment& inner) {
  const bool is_same = inner.first == outer.first && inner.end == outer.end;
  if (is_same || inner.end > outer.end) {
    return bad(inner,
               "segments '" + outer.name + "' and '" + inner.name + "' overlap" +
                   (is_same ? ": they are the same calls" : ", and neither lies within the other"),
               "let one of them run again, or the other");
  }
  for (const StorageId storage : inner.captured) {
    if (!outer.has(recording.storages.alloc_event[storage.index()])) continue;
    return bad(inner,
               "segment '" + inner.name + "' cannot run again within '" + outer.name +
                   "': it reads what that makes and does not give it",
               "let one of them run again, or the other");
  }
  return Unit{};
}

// What a chain packs within an outer segment would be that one's.
Status check_chain_lies_outside(const Segment& outer, const Segment& chain) {
  const auto is_inside = [&](const Segment::Input& input) { return outer.has(input.event); };
  const bool is_owned = std::any_of(chain.saved.begin(), chain.saved.end(),
                                    [&](SavedId each) { return outer.saves(each); });
  if (!is_owned && std::none_of(chain.inputs.begin(), chain.inputs.end(), is_inside)) return Unit{};
  return bad(chain,
             chain.name + " cannot be made again by ops: its ops are of '" + outer.name +
                 "', in which others run again",
             "leave one of both out");
}

// The segments are sorted: outer ones ahead of inner ones, chains last.
Result<Nests> nests_of(const Trace& recording, const std::vector<Segment>& segments) {
  Nests nests;
  nests.outer.assign(segments.size(), -1);
  nests.height.assign(segments.size(), 0);
  std::vector<std::size_t> open;
  for (std::size_t j = 0; j < segments.size() && !segments[j].is_chain(); ++j) {
    while (!open.empty() && segments[open.back()].end <= segments[j].first) open.pop_back();
    for (const std::size_t outer : open) {
      if (Status status = check_lies_within(recording, segments[outer], segments[j]); !status) {
        return status.error();
      }
    }
    if (!open.empty()) nests.outer[j] = static_cast<std::int32_t>(open.back());
    open.push_back(j);
  }
  for (std::size_t j = segments.size(); j-- > 0;) {
    if (nests.outer[j] < 0) continue;
    std::int32_t& around = nests.height[static_cast<std::size_t>(nests.outer[j])];
    around = std::max(around, nests.height[j] + 1);
  }
  for (std::size_t j = 0; j < segments.size(); ++j) {
    if (nests.height[j] == 0) continue;
    for (const Segment& chain : segments) {
      if (!chain.is_chain()) continue;
      Status status = check_chain_lies_outside(segments[j], chain);
      if (!status) return status.error();
    }
  }
  return nests;
}

// Those that begin with the same layer call number what they are given one behind the other, the
// outermost first.
void number_inputs(const std::vector<Segment>& segments, const Nests& nests, std::size_t row,
                   Segment& segment) {
  std::int32_t ahead = 0;
  for (std::int32_t at = nests.outer[row]; at >= 0;
       at = nests.outer[static_cast<std::size_t>(at)]) {
    if (segments[static_cast<std::size_t>(at)].first == segments[row].first) ++ahead;
  }
  const auto count = static_cast<std::int32_t>(segment.inputs.size());
  for (Segment::Input& input : segment.inputs) input.number += ahead * count;
}

// Of all that lie in it, whose rows these are; in order.
void add_inner_runs(const Nests& nests, std::size_t row,
                    const std::vector<std::pair<std::size_t, SegmentRows>>& done,
                    Segment& segment) {
  for (const auto& [inner, rows] : done) {
    std::int32_t at = nests.outer[inner];
    while (at >= 0 && static_cast<std::size_t>(at) != row) {
      at = nests.outer[static_cast<std::size_t>(at)];
    }
    if (at >= 0) segment.inner_runs.emplace_back(rows.run_begin, rows.run_end);
  }
  std::sort(segment.inner_runs.begin(), segment.inner_runs.end());
}

// By row of a step: the rows that a step made of it has for it, the one itself first, then, if it
// lies in a segment that runs again, that of the run.
template <class IdT>
class RowsOf {
 public:
  RowsOf(std::size_t rows, const std::vector<IdT>& origins) : itself_(rows), again_(rows) {
    for (std::size_t row = 0; row < origins.size(); ++row) {
      if (!origins[row].valid()) continue;
      IdT& at = itself_[origins[row].index()];
      (at.valid() ? again_[origins[row].index()] : at) = IdT(row);
    }
  }
  [[nodiscard]] IdT itself(IdT row) const { return itself_[row.index()]; }
  [[nodiscard]] IdT last(IdT row) const {
    const IdT again = again_[row.index()];
    return again.valid() ? again : itself(row);
  }

 private:
  std::vector<IdT> itself_;
  std::vector<IdT> again_;
};

template <class IdT>
void follow(const std::vector<IdT>& recorded, std::vector<IdT>& origins) {
  for (IdT& each : origins) {
    if (each.valid()) each = recorded[each.index()];
  }
}

// The rows of `inner` are those of the step that `outer` was made of; they become `outer`'s.
void move_onto(const RecomputedStep& outer, const Trace& from, std::vector<SegmentRows>& inner) {
  const RowsOf<SavedId> saved(from.saved.size(), outer.origins.saved);
  const RowsOf<OpId> ops(from.ops.size(), outer.origins.ops);
  const RowsOf<EventId> events(from.events.size(), outer.origins.events);
  for (SegmentRows& rows : inner) {
    // What an outer segment gives up is there again in its run.
    for (SavedId& each : rows.inputs) each = saved.last(each);
    for (SavedId& each : rows.saved) each = saved.itself(each);
    for (SavedId& each : rows.again) each = saved.itself(each);
    for (OpId& each : rows.ops) each = ops.itself(each);
    for (OpId& each : rows.made_by) each = ops.itself(each);
    rows.run_begin = events.itself(rows.run_begin);
    rows.run_end = events.itself(rows.run_end);
  }
}

}  // namespace

Result<RecomputedStep> recompute_nested(const Trace& recording, std::vector<Segment> segments) {
  std::stable_sort(segments.begin(), segments.end(), [](const Segment& a, const Segment& b) {
    return std::tuple(a.is_chain(), a.first, b.end) < std::tuple(b.is_chain(), b.first, a.end);
  });
  const Result<Nests> nests = nests_of(recording, segments);
  if (!nests) return nests.error();
  if (nests->highest() == 0) return recompute(recording, std::move(segments));
  RecomputedStep step;
  std::vector<std::pair<std::size_t, SegmentRows>> done;  // by row of `segments`
  for (std::int32_t height = 0; height <= nests->highest(); ++height) {
    const Trace& from = height == 0 ? recording : step.trace;
    std::optional<SegmentFinder> finder;
    if (height > 0) finder.emplace(from);
    std::vector<std::size_t> rows;
    std::vector<Segment> level;
    for (std::size_t j = 0; j < segments.size(); ++j) {
      if (nests->height[j] != height) continue;
      Result<Segment> segment =
          finder ? finder->find(segments[j].name) : Result<Segment>(segments[j]);
      if (!segment) {
        Error error = std::move(segment).error();
        error.pointer = segments[j].entry;
        return error;
      }
      segment->entry = segments[j].entry;
      number_inputs(segments, *nests, j, *segment);
      add_inner_runs(*nests, j, done, *segment);
      rows.push_back(j);
      level.push_back(std::move(segment).value());
    }
    std::vector<SavedId> gone;
    for (const auto& [row, of] : done) gone.insert(gone.end(), of.saved.begin(), of.saved.end());
    Result<RecomputedStep> next = recompute(from, std::move(level), gone);
    if (!next) return std::move(next).error();
    std::vector<SegmentRows> inner;
    for (auto& [row, of] : done) inner.push_back(std::move(of));
    if (height > 0) {
      move_onto(*next, from, inner);
      follow(step.origins.events, next->origins.events);
      follow(step.origins.ops, next->origins.ops);
      follow(step.origins.storages, next->origins.storages);
      follow(step.origins.saved, next->origins.saved);
    }
    for (std::size_t i = 0; i < done.size(); ++i) done[i].second = std::move(inner[i]);
    for (std::size_t i = 0; i < rows.size(); ++i) {
      done.emplace_back(rows[i], std::move(next->segments[i]));
    }
    step = std::move(next).value();
  }
  std::sort(done.begin(), done.end(),
            [](const auto& a, const auto& b) { return a.first < b.first; });
  step.segments.clear();
  for (auto& [row, of] : done) step.segments.push_back(std::move(of));
  return step;
}

}  // namespace stowage::simulator
