#include "simulator/memory_replay.h"

#include <algorithm>

namespace stowage::simulator {
namespace {

// The caching allocator's granularity, for reload buffers on a device that rounds.
Bytes rounded(Bytes bytes) {
  constexpr Bytes kGranule = 512;
  return (bytes + kGranule - 1) / kGranule * kGranule;
}

// One kind of bytes: requested or rounded.
struct Counting {
  Bytes at_begin;
  const std::vector<Bytes>& delta;
  const std::vector<Bytes>& storage_bytes;
  bool round_buffers;
};

struct Peak {
  Bytes bytes = 0;
  EventId event;
};

// The last event at which a reload's buffer lives; -1 = past the end of the step.
EventId last_event(const Trace& trace, const Reload& reload) {
  EventId last = trace.unpacks.event[reload.unpacks.back().index()];
  for (const UnpackId u : reload.unpacks) {
    const EventId released = trace.unpacks.released_event[u.index()];
    if (!released.valid()) return {};
    last = std::max(last, released);
  }
  return last;
}

class Walk {
 public:
  Walk(const TraceIndex& index, const Schedule& schedule, const Counting& counting)
      : trace_(index.trace()),
        schedule_(schedule),
        counting_(counting),
        delta_(counting.delta),
        change_(schedule.instructions.size(), 0) {
    move_storages();
    add_buffers();
  }

  Peak run(std::vector<Bytes>* curve) const {
    const std::size_t events = delta_.size();
    if (curve != nullptr) curve->resize(events);
    Bytes now = counting_.at_begin;
    Peak peak{now, EventId(std::size_t{0})};
    const auto& instructions = schedule_.instructions;
    std::size_t e = 0;
    for (std::size_t i = 0; i <= instructions.size(); ++i) {
      const std::size_t stop =
          i < instructions.size() ? instructions[i].anchor.event.index() + 1 : events;
      for (; e < stop; ++e) {
        now += delta_[e];
        if (now > peak.bytes) peak = {now, EventId(e)};
        if (curve != nullptr) (*curve)[e] = now;
      }
      if (i == instructions.size()) break;
      now += change_[i];
      if (now > peak.bytes) peak = {now, EventId(e - 1)};
      if (curve != nullptr) (*curve)[e - 1] = std::max((*curve)[e - 1], now);
    }
    return peak;
  }

 private:
  // `after`: gone behind that event, ahead of the next one's action; -1 = not in this step.
  void subtract_after(EventId after, Bytes bytes) {
    if (after.valid() && after.index() + 1 < delta_.size()) delta_[after.index() + 1] -= bytes;
  }

  // Storages created in the step leave at the last release of their offloads or, if that is later,
  // when the model itself lets go. Those that existed before the step stay as recorded.
  void move_storages() {
    std::vector<std::int32_t> last_release(trace_.storages.size(), -1);
    const auto& instructions = schedule_.instructions;
    for (std::size_t i = 0; i < instructions.size(); ++i) {
      if (instructions[i].action != Action::release) continue;
      const StorageId storage = schedule_.offloads[instructions[i].offload.index()].storage;
      last_release[storage.index()] = static_cast<std::int32_t>(i);
    }
    for (std::size_t i = 0; i < instructions.size(); ++i) {
      if (instructions[i].action != Action::release) continue;
      const auto s = schedule_.offloads[instructions[i].offload.index()].storage.index();
      if (last_release[s] != static_cast<std::int32_t>(i)) continue;
      if (!trace_.storages.alloc_event[s].valid() || trace_.storages.device[s] != 0) continue;
      const Bytes bytes = counting_.storage_bytes[s];
      if (const EventId free = trace_.storages.free_event[s]; free.valid()) {
        delta_[free.index()] += bytes;
      }
      const EventId natural = trace_.storages.natural_free_event[s];
      if (!natural.valid()) continue;
      if (natural >= instructions[i].anchor.event) {
        subtract_after(natural, bytes);
      } else {
        change_[i] -= bytes;
      }
    }
  }

  void add_buffers() {
    const auto& instructions = schedule_.instructions;
    for (std::size_t i = 0; i < instructions.size(); ++i) {
      if (instructions[i].action != Action::start_reload) continue;
      const Reload& reload = schedule_.reloads[instructions[i].reload.index()];
      const Bytes requested = schedule_.offloads[reload.offload.index()].bytes;
      const Bytes bytes = counting_.round_buffers ? rounded(requested) : requested;
      change_[i] += bytes;
      subtract_after(last_event(trace_, reload), bytes);
    }
  }

  const Trace& trace_;
  const Schedule& schedule_;
  const Counting& counting_;
  std::vector<Bytes> delta_;   // by event: its own action and what went in the gap before it
  std::vector<Bytes> change_;  // by instruction
};

}  // namespace

MemoryPeaks replay_memory(const TraceIndex& index, const Schedule& schedule,
                          std::vector<Bytes>* requested) {
  const Trace& trace = index.trace();
  const Counting by_request{index.bytes_at_begin(), index.requested_delta(), trace.storages.bytes,
                            false};
  const Peak peak = Walk(index, schedule, by_request).run(requested);
  MemoryPeaks peaks{peak.bytes, peak.bytes, peak.event};
  if (index.rounds()) {
    const Counting by_block{index.rounded_bytes_at_begin(), index.rounded_delta(),
                            trace.storages.rounded_bytes, true};
    peaks.active = Walk(index, schedule, by_block).run(nullptr).bytes;
  }
  return peaks;
}

}  // namespace stowage::simulator
