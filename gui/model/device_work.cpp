#include "gui/model/device_work.h"

#include <algorithm>
#include <numeric>
#include <unordered_map>
#include <utility>

#include "simulator/step/op_spans.h"

namespace stowage::gui {
namespace {

// Rows of the table of kernels in order of the event behind which they were launched.
std::vector<std::int32_t> by_launch(const Gpu& gpu) {
  std::vector<std::int32_t> rows(gpu.size());
  std::iota(rows.begin(), rows.end(), 0);
  std::stable_sort(rows.begin(), rows.end(), [&](std::int32_t a, std::int32_t b) {
    return gpu.event[static_cast<std::size_t>(a)] < gpu.event[static_cast<std::size_t>(b)];
  });
  return rows;
}

// When compute is done waiting for copies: those stalls that come ahead of the work of an event.
class StallEnds {
 public:
  explicit StallEnds(const std::vector<simulator::Stall>& stalls) : stalls_(stalls) {}
  // Asked for events in order.
  [[nodiscard]] Nanoseconds ahead_of(std::size_t event) {
    for (; next_ < stalls_.size() && stalls_[next_].event.index() < event; ++next_) {
      end_ = std::max(end_, stalls_[next_].start + stalls_[next_].duration);
    }
    return end_;
  }

 private:
  const std::vector<simulator::Stall>& stalls_;
  std::size_t next_ = 0;
  Nanoseconds end_ = 0;
};

}  // namespace

DeviceWork::DeviceWork(const Simulated& simulated, const StepPicture& shown, bool recorded) {
  trace_ = recorded ? &simulated.trace->trace : &simulated.step_trace();
  owner_ = recorded ? std::static_pointer_cast<const void>(simulated.trace)
                    : std::static_pointer_cast<const void>(simulated.index);
  has_kernels_ = trace_->gpu.size() > 0;
  if (!has_kernels_) {
    add_ops(shown);
  } else if (recorded) {
    add_recorded(*trace_);
  } else {
    add_planned(*trace_, simulated);
  }
  std::stable_sort(pieces_.begin(), pieces_.end(),
                   [](const Piece& a, const Piece& b) { return a.begin < b.begin; });
  until_.reserve(pieces_.size());
  for (const Piece& piece : pieces_) {
    until_.push_back(until_.empty() ? piece.end : std::max(until_.back(), piece.end));
  }
}

void DeviceWork::add_recorded(const Trace& trace) {
  const simulator::OpSpans ops(trace);
  for (std::size_t g = 0; g < trace.gpu.size(); ++g) {
    pieces_.push_back({trace.gpu.start[g], trace.gpu.start[g] + trace.gpu.duration[g],
                       ops.outermost(trace.gpu.op[g]), static_cast<std::int32_t>(g)});
  }
}

// The kernels that are launched behind an event end when the next event is reached: the time that
// this work takes is shared among them as they took it in the recording.
void DeviceWork::add_planned(const Trace& trace, const Simulated& simulated) {
  const simulator::OpSpans ops(trace);
  const simulator::ReplayDetail& detail = simulated.detail;
  const std::vector<std::int32_t> rows = by_launch(trace.gpu);
  const std::size_t last = trace.events.size() - 1;
  const auto reached_by = [&](std::size_t i) {
    return std::min(trace.gpu.event[static_cast<std::size_t>(rows[i])].index() + 1, last);
  };
  StallEnds stalls(simulated.result.stalls);
  Nanoseconds done = 0;
  for (std::size_t i = 0; i < rows.size();) {
    const std::size_t event = reached_by(i);
    std::size_t stop = i;
    Nanoseconds all = 0;
    for (; stop < rows.size() && reached_by(stop) == event; ++stop) {
      all += trace.gpu.duration[static_cast<std::size_t>(rows[stop])];
    }
    const Nanoseconds end = detail.time[event];
    const Nanoseconds begin =
        std::min(end, std::max({done, detail.launch[event], stalls.ahead_of(event)}));
    Nanoseconds ahead = 0;
    Nanoseconds at = begin;
    for (; i < stop; ++i) {
      const auto g = static_cast<std::size_t>(rows[i]);
      ahead += trace.gpu.duration[g];
      const Nanoseconds until =
          all == 0 ? begin : begin + static_cast<Nanoseconds>(Wide{end - begin} * ahead / all);
      pieces_.push_back({at, until, ops.outermost(trace.gpu.op[g]), rows[i]});
      at = until;
    }
    done = std::max(done, at);
  }
}

void DeviceWork::add_ops(const StepPicture& shown) {
  for (const LaneRow& row : shown.lane(LaneKind::compute).rows) {
    for (std::size_t i = 0; i < row.infos.size(); ++i) {
      if (row.infos[i].kind != Selection::Kind::op) continue;
      pieces_.push_back({row.spans.begin(i), row.spans.end(i), OpId(row.infos[i].row), -1});
    }
  }
}

StringId DeviceWork::name_of(const Piece& piece, WorkGroup by) const {
  if (by == WorkGroup::kernel) return trace_->gpu.name[static_cast<std::size_t>(piece.gpu)];
  return piece.op.valid() ? trace_->ops.name[piece.op.index()] : StringId();
}

WorkTable DeviceWork::within(const TimeRange& range, WorkGroup by) const {
  WorkTable table;
  if (by == WorkGroup::kernel && !has_kernels_) return table;
  struct One {
    Nanoseconds time = 0;
    StringId name;
  };
  // An op may have several kernels, and be cut by stalls.
  std::unordered_map<std::int32_t, One> ones;
  const auto first = static_cast<std::size_t>(
      std::upper_bound(until_.begin(), until_.end(), range.begin) - until_.begin());
  for (std::size_t i = first; i < pieces_.size() && pieces_[i].begin < range.end; ++i) {
    const Piece& piece = pieces_[i];
    const Nanoseconds time = std::min(piece.end, range.end) - std::max(piece.begin, range.begin);
    if (time <= 0) continue;
    // What no op launched counts by itself; its rows lie behind those of the ops.
    const bool is_op = by == WorkGroup::op && piece.op.valid();
    One& one = ones[is_op ? piece.op.value : -1 - piece.gpu];
    one.time += time;
    one.name = name_of(piece, by);
  }
  std::unordered_map<StringId, std::size_t> row_of;
  std::vector<std::pair<Nanoseconds, std::int32_t>> longest;
  for (const auto& [id, one] : ones) {
    const auto [at, is_new] = row_of.try_emplace(one.name, table.rows.size());
    if (is_new) {
      table.rows.push_back(
          {one.name.valid() ? trace_->string(one.name) : std::string("(outside of ops)"),
           0,
           0,
           {}});
      longest.emplace_back(0, 0);
    }
    WorkRow& row = table.rows[at->second];
    ++row.count;
    row.time += one.time;
    // Of equal ones the first.
    const std::int32_t place = id < 0 ? -1 - id : id;
    auto& most = longest[at->second];
    if (one.time > most.first || (one.time == most.first && place < most.second)) {
      most = {one.time, place};
      row.longest = {id < 0 ? Selection::Kind::gpu : Selection::Kind::op, place};
    }
    ++table.count;
    table.time += one.time;
  }
  std::sort(table.rows.begin(), table.rows.end(), [](const WorkRow& a, const WorkRow& b) {
    return a.time != b.time ? a.time > b.time : a.name < b.name;
  });
  return table;
}

}  // namespace stowage::gui
