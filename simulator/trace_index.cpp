#include "simulator/trace_index.h"

#include <algorithm>
#include <array>

#include "simulator/anchor_kinds.h"
#include "simulator/caching_allocator.h"
#include "traces/result.h"

namespace stowage::simulator {
namespace {

Pass pass_of(PhaseKind kind) {
  switch (kind) {
    case PhaseKind::backward:
      return Pass::backward;
    case PhaseKind::optimizer:
      return Pass::optimizer;
    default:
      return Pass::forward;
  }
}

}  // namespace

TraceIndex::TraceIndex(const Trace& trace) : trace_(&trace) {
  STOWAGE_ASSERT(trace.events.size() >= 2);
  index_anchors();
  index_saved();
  index_work();
  index_bytes();
  index_writes();
  index_rows();
  parameter_uses_ = ParameterUses(*this);
}

Anchor TraceIndex::anchor_at(EventId event, Side side) const {
  STOWAGE_ASSERT(is_anchor(event));
  return {*anchor_kind_of(trace_->events.kind[event.index()]), anchor_ordinal_[event.index()], side,
          event};
}

const std::vector<SavedId>& TraceIndex::saved_of(StorageId storage) const {
  return saved_of_[storage.index()];
}

const std::vector<UnpackId>& TraceIndex::unpacks_of(SavedId saved) const {
  return unpacks_of_[saved.index()];
}

const std::vector<EventId>& TraceIndex::writes_of(StorageId storage) const {
  return writes_of_[storage.index()];
}

void TraceIndex::index_anchors() {
  const std::size_t n = trace_->events.size();
  anchor_ordinal_.assign(n, -1);
  prev_anchor_.resize(n);
  next_anchor_.resize(n);
  anchor_row_.resize(n);
  std::array<std::int32_t, kAnchorKinds> count{};
  EventId last(std::size_t{0});
  for (std::size_t e = 0; e < n; ++e) {
    if (const auto kind = anchor_kind_of(trace_->events.kind[e])) {
      anchor_ordinal_[e] = count[static_cast<std::size_t>(*kind)]++;
      last = EventId(e);
      anchors_.push_back(last);
    }
    prev_anchor_[e] = last;
    anchor_row_[e] = static_cast<std::uint32_t>(anchors_.empty() ? 0 : anchors_.size() - 1);
  }
  EventId next(n - 1);
  for (std::size_t e = n; e-- > 0;) {
    if (anchor_ordinal_[e] >= 0) next = EventId(e);
    next_anchor_[e] = next;
  }
}

void TraceIndex::index_saved() {
  const Trace& t = *trace_;
  saved_of_.resize(t.storages.size());
  unpacks_of_.resize(t.saved.size());
  for (std::size_t s = 0; s < t.saved.size(); ++s) {
    if (t.saved.storage[s].valid()) saved_of_[t.saved.storage[s].index()].emplace_back(s);
  }
  for (std::size_t u = 0; u < t.unpacks.size(); ++u) {
    unpacks_of_[t.unpacks.saved[u].index()].emplace_back(u);
  }
  first_unpack_event_ = t.unpacks.size() > 0 ? t.unpacks.event[0] : EventId(t.events.size() - 1);
}

void TraceIndex::index_work() {
  const Trace& t = *trace_;
  const std::size_t n = t.events.size();
  launch_.assign(n, 0);
  compute_.assign(n, 0);
  const bool device_times = t.gpu.size() > 0;
  std::vector<Nanoseconds>& gaps = device_times ? launch_ : compute_;
  for (std::size_t e = 1; e < n; ++e) gaps[e] = t.events.time[e] - t.events.time[e - 1];
  for (std::size_t g = 0; g < t.gpu.size(); ++g) {
    compute_[std::min(t.gpu.event[g].index() + 1, n - 1)] += t.gpu.duration[g];
  }
  sync_.assign(n, 0);
  for (std::size_t s = 0; device_times && s < t.syncs.size(); ++s) {
    const std::size_t e = std::min(t.syncs.event[s].index() + 1, n - 1);
    launch_[e] = std::max<Nanoseconds>(launch_[e] - t.syncs.duration[s], 0);
    sync_[e] = 1;
  }

  compute_until_.resize(n);
  resident_time_.resize(n);
  Nanoseconds launched = 0;
  Nanoseconds busy = 0;
  Nanoseconds sum = 0;
  for (std::size_t e = 0; e < n; ++e) {
    launched += launch_[e];
    if (compute_[e] > 0) busy = std::max(busy, launched) + compute_[e];
    sum += compute_[e];
    compute_until_[e] = sum;
    resident_time_[e] = std::max(busy, launched);
    if (sync_[e] != 0) launched = resident_time_[e];
  }
  for (const EventId anchor : anchors_) anchor_times_.push_back(resident_time_[anchor.index()]);
  has_launch_ = device_times;
  hooked_launch_ = launch_;
  for (std::size_t e = 0; has_launch_ && e < n; ++e) {
    const EventKind kind = t.events.kind[e];
    if (kind == EventKind::pack || kind == EventKind::unpack) {
      hooked_launch_[e] += t.calibration.hook_ns;
    }
  }
  launched = busy = 0;
  for (std::size_t e = 0; e < n; ++e) {
    launched += hooked_launch_[e];
    if (compute_[e] > 0) busy = std::max(busy, launched) + compute_[e];
    hooked_resident_ = std::max(busy, launched);
    if (sync_[e] != 0) launched = hooked_resident_;
  }
}

void TraceIndex::index_bytes() {
  const Trace& t = *trace_;
  const std::size_t n = t.events.size();
  requested_delta_.assign(n, 0);
  rounded_delta_.assign(n, 0);
  rounds_ = t.setup.size() > 0 || t.storages.bytes != t.storages.rounded_bytes;
  rounded_bytes_ = t.storages.bytes;
  if (rounds_) {
    for (Bytes& bytes : rounded_bytes_) bytes = CachingAllocator::rounded(bytes);
  }
  for (std::size_t s = 0; s < t.storages.size(); ++s) {
    if (t.storages.device[s] != 0) continue;
    const Bytes bytes = t.storages.bytes[s];
    const Bytes rounded = rounded_bytes_[s];
    if (const EventId alloc = t.storages.alloc_event[s]; alloc.valid()) {
      requested_delta_[alloc.index()] += bytes;
      rounded_delta_[alloc.index()] += rounded;
    } else {
      bytes_at_begin_ += bytes;
      rounded_bytes_at_begin_ += rounded;
    }
    if (const EventId free = t.storages.free_event[s]; free.valid()) {
      requested_delta_[free.index()] -= bytes;
      rounded_delta_[free.index()] -= rounded;
    }
  }
  resident_bytes_.resize(n);
  Bytes now = bytes_at_begin_;
  for (std::size_t e = 0; e < n; ++e) resident_bytes_[e] = now += requested_delta_[e];
}

void TraceIndex::index_writes() {
  const Trace& t = *trace_;
  writes_of_.resize(t.storages.size());
  std::vector<EventId> begin_of(t.ops.size());
  for (std::size_t e = 0; e < t.events.size(); ++e) {
    if (t.events.kind[e] == EventKind::op_begin) {
      begin_of[static_cast<std::size_t>(t.events.ref[e])] = EventId(e);
    }
  }
  for (std::size_t u = 0; u < t.uses.size(); ++u) {
    const UseMode mode = t.uses.mode[u];
    if (mode != UseMode::write && mode != UseMode::in_place) continue;
    const StorageId storage = t.tensors.storage[t.uses.tensor[u].index()];
    if (!storage.valid() || saved_of_[storage.index()].empty()) continue;
    const EventId begin = begin_of[t.uses.op[u].index()];
    if (begin.valid()) writes_of_[storage.index()].push_back(begin);
  }
  for (auto& writes : writes_of_) {
    std::sort(writes.begin(), writes.end());
    writes.erase(std::unique(writes.begin(), writes.end()), writes.end());
  }
}

void TraceIndex::index_rows() {
  const Trace& t = *trace_;
  for (std::size_t o = 0; o < t.ops.size(); ++o) {
    if (t.ops.parent[o].valid()) continue;
    ScheduleRow row{OpId(o), 0, Pass::forward};
    if (const PhaseId phase = t.ops.phase[o]; phase.valid()) {
      row.micro_batch = t.phases.micro_batch[phase.index()];
      row.pass = pass_of(t.phases.kind[phase.index()]);
    }
    rows_.push_back(row);
  }
}

}  // namespace stowage::simulator
