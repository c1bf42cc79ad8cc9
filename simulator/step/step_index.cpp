#include "simulator/step/step_index.h"
#include "simulator/step/recomputed_step.h"

#include <algorithm>
#include <array>
#include <numeric>
#include <utility>

#include "simulator/step/anchor_kinds.h"
#include "simulator/step/block_bytes.h"
#include "simulator/step/grouped_rows.h"
#include "traces/result.h"

namespace stowage::simulator {
StepIndex::StepIndex(const Step& step) : step_(step), trace_(&step_.trace()) {
  STOWAGE_ASSERT(trace_->events.size() >= 2);
  index_anchors();
  index_saved();
  index_work();
  index_bytes();
  index_writes();
  model_state_uses_ = ModelStateUses(*this);
}

Anchor StepIndex::anchor_at(EventId event, Side side) const {
  STOWAGE_ASSERT(is_anchor(event));
  const AnchorKind kind = *anchor_kind_of(trace_->events.kind[event.index()]);
  if (is_chosen_freely(kind)) return {kind, anchor_ordinal_[anchor_row(event)], side, event};
  const auto row = std::lower_bound(gradient_anchors_.begin(), gradient_anchors_.end(), event);
  return {kind, static_cast<std::int32_t>(row - gradient_anchors_.begin()), side, event};
}

bool StepIndex::is_anchor(EventId event) const {
  return anchor_kind_of(trace_->events.kind[event.index()]).has_value();
}

std::vector<Bytes> StepIndex::requested_delta() const {
  std::vector<Bytes> delta(resident_bytes_.size());
  std::adjacent_difference(resident_bytes_.begin(), resident_bytes_.end(), delta.begin());
  delta.front() -= bytes_at_begin_;
  return delta;
}

void StepIndex::index_anchors() {
  const std::size_t n = trace_->events.size();
  STOWAGE_ASSERT(anchor_kind_of(trace_->events.kind.front()));
  STOWAGE_ASSERT(anchor_kind_of(trace_->events.kind.back()));
  anchor_row_.resize(n);
  std::array<std::int32_t, kAnchorKinds> count{};
  for (std::size_t e = 0; e < n; ++e) {
    const auto kind = anchor_kind_of(trace_->events.kind[e]);
    if (kind == AnchorKind::gradient_accumulated) {
      gradient_anchors_.emplace_back(e);
    } else if (kind) {
      anchor_ordinal_.push_back(count[static_cast<std::size_t>(*kind)]++);
      anchors_.emplace_back(e);
    }
    anchor_row_[e] = static_cast<std::uint32_t>(anchors_.size() - 1);
  }
  anchor_ordinal_.shrink_to_fit();
  anchors_.shrink_to_fit();
}

void StepIndex::index_saved() {
  const Trace& t = *trace_;
  if (!step_.segments().empty()) of_segment_.assign(t.saved.size(), false);
  for (const SegmentRows& segment : step_.segments()) {
    for (const SavedId each : segment.saved) of_segment_[each.index()] = true;
    for (const SavedId each : segment.again) of_segment_[each.index()] = true;
  }
  std::vector<std::pair<std::size_t, SavedId>> saved;
  for (std::size_t s = 0; s < t.saved.size(); ++s) {
    if (is_of_segment(SavedId(s))) continue;
    if (t.saved.storage[s].valid()) saved.emplace_back(t.saved.storage[s].index(), SavedId(s));
  }
  saved_of_ = {t.storages.size(), saved};
  unpacks_of_ = unpacks_by_saved(t);
  first_unpack_event_ = t.unpacks.size() > 0 ? t.unpacks.event[0] : EventId(t.events.size() - 1);
}

void StepIndex::index_work() {
  const Trace& t = *trace_;
  const std::size_t n = t.events.size();
  has_launch_ = t.gpu.size() > 0;
  std::vector<Nanoseconds> compute(n, 0);
  if (has_launch_) launch_.assign(n, 0);
  std::vector<Nanoseconds>& gaps = has_launch_ ? launch_ : compute;
  for (std::size_t e = 1; e < n; ++e) gaps[e] = t.events.time[e] - t.events.time[e - 1];
  for (std::size_t g = 0; g < t.gpu.size(); ++g) {
    compute[std::min(t.gpu.event[g].index() + 1, n - 1)] += t.gpu.duration[g];
  }
  compute_until_.resize(n);
  std::partial_sum(compute.begin(), compute.end(), compute_until_.begin());
  if (has_launch_) index_launches(compute);
  hooked_resident_ = has_launch_ ? hooked_resident_ : compute_until_.back();
  anchor_times_.reserve(anchors_.size());
  for (const EventId anchor : anchors_) anchor_times_.push_back(resident_time()[anchor.index()]);
}

void StepIndex::index_launches(const std::vector<Nanoseconds>& compute) {
  const Trace& t = *trace_;
  const std::size_t n = t.events.size();
  sync_.assign(n, 0);
  for (std::size_t s = 0; s < t.syncs.size(); ++s) {
    const std::size_t e = std::min(t.syncs.event[s].index() + 1, n - 1);
    launch_[e] = std::max<Nanoseconds>(launch_[e] - t.syncs.duration[s], 0);
    sync_[e] = 1;
  }
  resident_time_.resize(n);
  Nanoseconds launched = 0;
  Nanoseconds busy = 0;
  for (std::size_t e = 0; e < n; ++e) {
    launched += launch_[e];
    if (compute[e] > 0) busy = std::max(busy, launched) + compute[e];
    resident_time_[e] = std::max(busy, launched);
    if (sync_[e] != 0) launched = resident_time_[e];
  }
  hooked_launch_ = launch_;
  for (std::size_t e = 0; e < n; ++e) {
    const EventKind kind = t.events.kind[e];
    if (kind == EventKind::pack || kind == EventKind::unpack) {
      hooked_launch_[e] += t.calibration.hook_ns;
    }
  }
  launched = busy = 0;
  for (std::size_t e = 0; e < n; ++e) {
    launched += hooked_launch_[e];
    if (compute[e] > 0) busy = std::max(busy, launched) + compute[e];
    hooked_resident_ = std::max(busy, launched);
    if (sync_[e] != 0) launched = hooked_resident_;
  }
}

void StepIndex::index_bytes() {
  const Trace& t = *trace_;
  const std::size_t n = t.events.size();
  resident_bytes_.assign(n, 0);  // first the changes alone
  rounds_ = t.setup.size() > 0 || t.storages.bytes != t.storages.rounded_bytes;
  rounded_bytes_ = t.storages.bytes;
  if (rounds_) {
    rounded_delta_.assign(n, 0);
    for (Bytes& bytes : rounded_bytes_) bytes = block_bytes(bytes);
  }
  for (std::size_t s = 0; s < t.storages.size(); ++s) {
    if (t.storages.device[s] != 0) continue;
    const Bytes bytes = t.storages.bytes[s];
    const Bytes rounded = rounded_bytes_[s];
    if (const EventId alloc = t.storages.alloc_event[s]; alloc.valid()) {
      resident_bytes_[alloc.index()] += bytes;
      if (rounds_) rounded_delta_[alloc.index()] += rounded;
    } else {
      bytes_at_begin_ += bytes;
      rounded_bytes_at_begin_ += rounded;
    }
    if (const EventId free = t.storages.free_event[s]; free.valid()) {
      resident_bytes_[free.index()] -= bytes;
      if (rounds_) rounded_delta_[free.index()] -= rounded;
    }
  }
  Bytes now = bytes_at_begin_;
  for (Bytes& bytes : resident_bytes_) bytes = now += bytes;
}

void StepIndex::index_writes() {
  const Trace& t = *trace_;
  std::vector<std::pair<std::size_t, EventId>> writes;
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
    if (begin.valid()) writes.emplace_back(storage.index(), begin);
  }
  std::sort(writes.begin(), writes.end());
  writes.erase(std::unique(writes.begin(), writes.end()), writes.end());
  writes_of_ = {t.storages.size(), writes};
}

}  // namespace stowage::simulator
