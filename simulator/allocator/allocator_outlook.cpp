#include "simulator/allocator/allocator_outlook.h"

#include <algorithm>
#include <map>
#include <numeric>
#include <tuple>
#include <utility>

namespace stowage::simulator {

namespace {

using Block = CachingAllocator::Block;
using Slot = AllocationSequence::Slot;

constexpr Bytes kMebibyte = Bytes{1} << 20;
constexpr Bytes kExtras[] = {20 * kMebibyte, 64 * kMebibyte, 256 * kMebibyte};
constexpr int kMostRounds = 4;
constexpr std::int64_t kMadeByTheStep = -1;  // the tag

Bytes sum(const std::vector<Bytes>& segments) {
  return std::accumulate(segments.begin(), segments.end(), Bytes{0});
}

std::string text_of(const std::vector<Bytes>& segments) {
  if (segments.empty()) return "nothing";
  std::string text;
  for (const Bytes each : segments) text += (text.empty() ? "" : " + ") + std::to_string(each);
  return text + " bytes";
}

}  // namespace

// An allocation that a step leaves behind.
struct AllocatorOutlook::Expected {
  Bytes bytes = 0;
  std::int64_t order = 0;  // of those of one size
  Slot slot = -1;          // in which the next period frees it, -1 = it stays
};

AllocatorOutlook::AllocatorOutlook(const StepIndex& index, const Schedule& schedule,
                                   std::int64_t most_actions)
    : trace_(index.trace()),
      sequence_(allocation_sequence(index, schedule)),
      most_actions_(most_actions) {}

Outlook AllocatorOutlook::look(const ObservedAllocator& observed, std::int64_t first_serial) const {
  Outlook outlook;
  Slots slots;
  if (!find_slots(observed, first_serial, slots, outlook.described)) return outlook;
  outlook.known = true;
  std::vector<Try> tries{run(observed, slots, {})};
  const auto attempt = [&](std::vector<Bytes> segments) {
    const bool has_room = sum(segments) <= observed.room;
    if (has_room) tries.push_back(run(observed, slots, std::move(segments)));
    return has_room && tries.back().later.empty();
  };
  std::vector<Bytes> own;
  bool found = tries.front().later.empty();
  for (int round = 0; round < kMostRounds && !found; ++round) {
    const std::vector<Bytes>& later = tries.back().later;
    own.insert(own.end(), later.begin(), later.end());
    if (sum(own) > observed.room) break;
    found = attempt(own);
  }
  const std::size_t without_extras = tries.size();
  for (const Bytes extra : kExtras) found = found || attempt({extra});
  if (!found) tries.resize(without_extras);
  const Try& first = tries.front();
  const Try& best = *std::max_element(tries.begin(), tries.end(), [](const Try& a, const Try& b) {
    return std::pair(a.later.empty(), a.periods) < std::pair(b.later.empty(), b.periods);
  });
  outlook.periods = best.periods;
  outlook.is_steady = best.is_steady;
  outlook.holds = best.later.empty();
  outlook.segments = best.segments;
  outlook.buffers = best.buffers;
  outlook.layout = best.layout;
  outlook.described = std::to_string(observed.blocks.size()) + " blocks, " +
                      std::to_string(slots.size()) + " of them go in the next step; ";
  if (!first.later.empty()) {
    outlook.described += text_of(first.later) + " would be taken behind " +
                         std::to_string(first.periods) + " steps; with " + text_of(best.segments) +
                         " taken now ";
  }
  outlook.described += (outlook.holds ? "nothing is taken in " : text_of(best.later) + " behind ") +
                       std::to_string(best.periods) + " steps" +
                       (best.is_steady ? ", which repeat" : "");
  return outlook;
}

std::vector<CachingAllocator::Piece> AllocatorOutlook::layout_after(
    const ObservedAllocator& observed, std::int64_t first_serial, std::int32_t periods) const {
  Slots slots;
  std::string why;
  if (!find_slots(observed, first_serial, slots, why)) return {};
  AllocatorPeriods step(trace_, sequence_, observed.blocks, slots);
  for (std::int32_t p = 0; p < periods; ++p) step.run();
  return step.allocator().layout();
}

AllocatorOutlook::Try AllocatorOutlook::run(const ObservedAllocator& observed, const Slots& slots,
                                            std::vector<Bytes> segments) const {
  Try result;
  AllocatorPeriods step(trace_, sequence_, observed.blocks, slots);
  result.buffers = step.take_segments(segments);
  result.segments = std::move(segments);
  const std::vector<Bytes>& taken = step.allocator().segments_taken();
  const std::size_t before = taken.size();
  result.layout = step.allocator().layout();
  // Brent's way to find that states repeat: one is kept, for twice as long each time.
  AllocatorPeriods::State kept = step.state();
  std::int32_t keep_until = 1;
  const auto actions = static_cast<std::int64_t>(sequence_.period.size()) + 1;
  const auto most =
      static_cast<std::int32_t>(std::clamp<std::int64_t>(most_actions_ / actions, 1, kMostPeriods));
  while (result.periods < most) {
    step.run();
    if (taken.size() > before) break;
    ++result.periods;
    AllocatorPeriods::State now = step.state();
    result.is_steady = now == kept;
    if (result.is_steady) break;
    if (result.periods < keep_until) continue;
    kept = std::move(now);
    keep_until *= 2;
  }
  result.later.assign(taken.begin() + static_cast<std::ptrdiff_t>(before), taken.end());
  return result;
}

bool AllocatorOutlook::find_slots(const ObservedAllocator& observed, std::int64_t first_serial,
                                  Slots& slots, std::string& why) const {
  if (!sequence_.is_paired) {
    why = "the recorded step does not free what it leaves behind";
    return false;
  }
  return find_loaded(observed, first_serial, slots, why) &&
         find_left_behind(observed, first_serial, slots, why);
}

bool AllocatorOutlook::find_loaded(const ObservedAllocator& observed, std::int64_t first_serial,
                                   Slots& slots, std::string& why) const {
  std::map<std::int64_t, Block> by_tag;
  for (std::size_t i = 0; i < observed.blocks.size(); ++i) {
    const ObservedBlock& each = observed.blocks[i];
    const bool loaded = each.allocated && each.serial >= first_serial && each.tag >= 0;
    if (loaded) by_tag.emplace(each.tag, static_cast<Block>(i));
  }
  for (const Slot slot : sequence_.wrapping) {
    const std::int64_t tag = slot - static_cast<std::int64_t>(trace_.storages.size());
    const auto found = by_tag.find(tag);
    const Bytes bytes = sequence_.bytes[static_cast<std::size_t>(slot)];
    if (found == by_tag.end() ||
        observed.blocks[static_cast<std::size_t>(found->second)].requested != bytes) {
      why = "the load buffer of stay " + std::to_string(tag) + " (" + std::to_string(bytes) +
            " bytes) is not there";
      return false;
    }
    slots.emplace_back(slot, found->second);
  }
  return true;
}

std::vector<AllocatorOutlook::Expected> AllocatorOutlook::left_behind(bool first_step) const {
  std::vector<Expected> all;
  for (const auto& [old, made] : sequence_.carried) {
    const auto row = static_cast<std::size_t>(made);
    all.push_back({sequence_.bytes[row], 2 * trace_.storages.alloc_event[row].value, old});
  }
  const Setup& setup = trace_.setup;
  std::vector<bool> goes(setup.size(), false);
  for (const std::int32_t row : setup.free_of) {
    if (row >= 0) goes[static_cast<std::size_t>(row)] = true;
  }
  for (std::size_t i = 0; first_step && i < setup.size(); ++i) {
    if (!setup.event[i].valid() || setup.free_of[i] >= 0 || goes[i]) continue;
    if (sequence_.is_born_at_home(setup, i)) continue;
    all.push_back({setup.bytes[i], 2 * setup.event[i].value + 1, -1});  // behind that event
  }
  std::stable_sort(all.begin(), all.end(), [](const Expected& a, const Expected& b) {
    return std::tie(a.bytes, a.order) < std::tie(b.bytes, b.order);
  });
  return all;
}

bool AllocatorOutlook::find_left_behind(const ObservedAllocator& observed,
                                        std::int64_t first_serial, Slots& slots,
                                        std::string& why) const {
  std::map<Bytes, std::vector<Block>> made;  // by bytes, in order of allocation
  for (std::size_t i = 0; i < observed.blocks.size(); ++i) {
    const ObservedBlock& each = observed.blocks[i];
    const bool is_made =
        each.allocated && each.serial >= first_serial && each.tag == kMadeByTheStep;
    if (is_made) made[each.requested].push_back(static_cast<Block>(i));
  }
  for (auto& [bytes, blocks] : made) {
    std::sort(blocks.begin(), blocks.end(), [&](Block a, Block b) {
      return observed.blocks[static_cast<std::size_t>(a)].serial <
             observed.blocks[static_cast<std::size_t>(b)].serial;
    });
  }
  for (const bool first_step : {true, false}) {
    const std::vector<Expected> all = left_behind(first_step);
    Slots found;
    why.clear();
    for (auto begin = all.begin(); begin != all.end();) {
      const auto end = std::find_if(
          begin, all.end(), [&](const Expected& each) { return each.bytes != begin->bytes; });
      const bool matters =
          std::any_of(begin, end, [](const Expected& each) { return each.slot >= 0; });
      const std::vector<Block>& blocks = made[begin->bytes];
      if (matters && static_cast<std::ptrdiff_t>(blocks.size()) != end - begin) {
        why = "the step left " + std::to_string(blocks.size()) + " allocations of " +
              std::to_string(begin->bytes) + " bytes behind, recorded were " +
              std::to_string(end - begin);
        break;
      }
      for (std::size_t k = 0; matters && begin != end; ++begin, ++k) {
        if (begin->slot >= 0) found.emplace_back(begin->slot, blocks[k]);
      }
      begin = end;
    }
    if (!why.empty()) continue;
    slots.insert(slots.end(), found.begin(), found.end());
    return true;
  }
  return false;
}

}  // namespace stowage::simulator
