#include "executor/device/planned_region.h"

#include <algorithm>

#include "executor/device/device.h"

namespace stowage::executor {
namespace {

// Ranges share pages.
Bytes bytes_of_pages(std::vector<simulator::Mapping> mappings) {
  std::sort(mappings.begin(), mappings.end(),
            [](const auto& a, const auto& b) { return a.offset < b.offset; });
  Bytes bytes = 0;
  Bytes counted = 0;
  for (const simulator::Mapping& each : mappings) {
    const Bytes end = each.offset + each.bytes;
    bytes += std::max<Bytes>(0, end - std::max(counted, each.offset));
    counted = std::max(counted, end);
  }
  return bytes;
}

}  // namespace

PlannedRegion::PlannedRegion(simulator::MemoryLayout layout, std::unique_ptr<PagedMemory> memory)
    : layout_(std::move(layout)),
      memory_(std::move(memory)),
      bytes_(memory_->bytes()),
      server_(layout_),
      is_mapped_(layout_.live.ranges.size(), false),
      is_elsewhere_(layout_.live.ranges.size(), false),
      stream_of_(layout_.live.ranges.size(), kAnyStream) {
  for (std::size_t r = 0; r < layout_.live.ranges.size(); ++r) {
    range_at_.insert(range_at_.end(), layout_.placement.pages_of[r].size(),
                     static_cast<std::int32_t>(r));
  }
}

std::byte* PlannedRegion::allocate(Bytes bytes, const AllocationOrigin& origin,
                                   std::optional<std::size_t>* unnamed) {
  if (is_forked()) return nullptr;
  // Buffers outside of the plan have tags of their own, below.
  if (origin.tag < 0 && origin.tag != kStepAllocation) return nullptr;
  if (origin.stream != stream_) return nullptr;
  const auto stay = origin.tag < 0 ? simulator::kNoStay : static_cast<std::int32_t>(origin.tag);
  const auto& unforeseen = server_.report().first_unforeseen;
  const std::size_t known = unforeseen.size();
  const std::int32_t range = server_.allocate(bytes, stay);
  if (unforeseen.size() > known && stay != simulator::kNoStay) {
    server_.name_unforeseen(known, "a buffer of a load");
  }
  if (unnamed != nullptr && unforeseen.size() > known && unforeseen[known].op.empty()) {
    *unnamed = known;
  }
  if (range < 0 || !map(range)) return nullptr;
  if (!server_.lasts(range)) stream_of_[static_cast<std::size_t>(range)] = stream_;
  return address_of(range);
}

Status PlannedRegion::map(std::int32_t range) {
  if (is_mapped_[static_cast<std::size_t>(range)]) return Unit{};
  STOWAGE_ASSERT(!server_.in_period());
  if (Status status = memory_->map(simulator::mappings(layout_, range, range + 1)); !status) {
    server_.free(range);
    static_cast<void>(keep_live());
    return status;
  }
  is_mapped_[static_cast<std::size_t>(range)] = true;
  return Unit{};
}

Result<std::byte*> PlannedRegion::take_lasting(Bytes bytes) {
  if (is_forked()) return nullptr;
  const std::int32_t range = server_.take_lasting(bytes);
  if (range < 0) return nullptr;
  if (Status status = map(range); !status) return status.error();
  return address_of(range);
}

Status PlannedRegion::map_rest() {
  const auto ranges = static_cast<std::int32_t>(is_mapped_.size());
  const auto is_mapped = [&](std::int32_t range) {
    return is_mapped_[static_cast<std::size_t>(range)];
  };
  for (std::int32_t begin = 0; begin < ranges;) {
    std::int32_t end = begin;
    while (end < ranges && !is_mapped(end)) ++end;
    if (begin < end) {
      if (Status status = memory_->map(simulator::mappings(layout_, begin, end)); !status) {
        static_cast<void>(keep_live());
        return status.error();
      }
      std::fill(is_mapped_.begin() + begin, is_mapped_.begin() + end, true);
    }
    begin = end + 1;
  }
  bytes_ = memory_->bytes();
  is_whole_ = true;
  is_lent_ = false;
  return Unit{};
}

bool PlannedRegion::can_lend() const {
  return owner_ != nullptr && is_whole_ && !is_lent_ && !is_forked() && !server_.in_period() &&
         !server_.in_setup();
}

bool PlannedRegion::lend() {
  STOWAGE_ASSERT(can_lend());
  const Bytes live = bytes_of_pages(live_mappings());
  if (live == memory_->bytes() || !keep_live()) return false;
  bytes_ = live;
  is_lent_ = true;
  ++times_lent_;
  return true;
}

std::vector<simulator::Mapping> PlannedRegion::live_mappings() const {
  std::vector<simulator::Mapping> mappings;
  for (std::size_t r = 0; r < is_mapped_.size(); ++r) {
    const auto range = static_cast<std::int32_t>(r);
    if (!server_.is_live(range)) continue;
    const auto of_range = simulator::mappings(layout_, range, range + 1);
    mappings.insert(mappings.end(), of_range.begin(), of_range.end());
  }
  return mappings;
}

bool PlannedRegion::keep_live() {
  if (!memory_->keep_only(live_mappings())) return false;
  for (std::size_t r = 0; r < is_mapped_.size(); ++r) {
    is_mapped_[r] = server_.is_live(static_cast<std::int32_t>(r));
  }
  return true;
}

std::int32_t PlannedRegion::range_of(const void* data) const {
  const Bytes at = static_cast<const std::byte*>(data) - memory_->begin();
  return range_at_[static_cast<std::size_t>(at / layout_.placement.page_bytes)];
}

void PlannedRegion::free(const void* data) {
  const std::int32_t range = range_of(data);
  const auto at = static_cast<std::size_t>(range);
  const bool is_of_steps = stream_of_[at] == kAnyStream || stream_of_[at] == stream_;
  if (owner_ != nullptr && (is_elsewhere_[at] || !is_of_steps)) return delayed_.push_back(range);
  is_elsewhere_[at] = false;
  server_.free(range);
}

void PlannedRegion::used_elsewhere(const void* data, std::int64_t stream) {
  const auto at = static_cast<std::size_t>(range_of(data));
  if (stream != (stream_of_[at] == kAnyStream ? stream_ : stream_of_[at])) is_elsewhere_[at] = true;
}

bool PlannedRegion::is_delaying() {
  awaited_.insert(awaited_.end(), delayed_.begin(), delayed_.end());
  delayed_.clear();
  return !awaited_.empty();
}

void PlannedRegion::begin_period(std::int64_t stream) {
  STOWAGE_ASSERT(is_whole_ && !is_lent_);
  stream_ = stream;
  for (const std::int32_t range : awaited_) {
    is_elsewhere_[static_cast<std::size_t>(range)] = false;
    server_.free(range);
  }
  awaited_.clear();
  server_.begin_period();
}

void PlannedRegion::begin_setup(std::int64_t stream) {
  stream_ = stream;
  server_.begin_setup();
}

void PlannedRegion::close() {
  owner_ = nullptr;
  server_.end_period();
  static_cast<void>(is_delaying());
  for (const std::int32_t range : awaited_) server_.free(range);
  awaited_.clear();
  kept_ = live_mappings();
  bytes_ = bytes_of_pages(kept_);
}

}  // namespace stowage::executor
