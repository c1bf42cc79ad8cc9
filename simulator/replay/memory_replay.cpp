#include "simulator/replay/memory_replay.h"

#include <algorithm>
#include <utility>

#include "simulator/schedule/departures.h"
#include "simulator/step/block_bytes.h"

namespace stowage::simulator {
namespace {

// One kind of bytes: requested or rounded.
struct Counting {
  Bytes at_begin;
  std::vector<Bytes> delta;  // by event
  const std::vector<Bytes>& storage_bytes;
  bool round_buffers;
};

struct Peak {
  Bytes bytes = 0;
  EventId event;
};

class Walk {
 public:
  Walk(const StepIndex& index, const Schedule& schedule, const std::vector<Departure>& leaving,
       Counting counting)
      : trace_(index.trace()),
        schedule_(schedule),
        counting_(std::move(counting)),
        at_begin_(counting_.at_begin),
        delta_(counting_.delta),
        change_(schedule.instructions.size(), 0) {
    add_loads();
    let_leave(leaving);
  }

  Peak run(std::vector<Bytes>* curve) const {
    const std::size_t events = delta_.size();
    if (curve != nullptr) curve->resize(events);
    Bytes now = at_begin_;
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

  [[nodiscard]] Bytes buffer_bytes(StayId stay) const {
    const Bytes requested = schedule_.tenant(stay).bytes;
    return counting_.round_buffers ? block_bytes(requested) : requested;
  }

  void let_leave(const std::vector<Departure>& leaving) {
    for (const Departure& departure : leaving) {
      Bytes bytes = 0;
      if (departure.stay.valid()) {
        bytes = buffer_bytes(departure.stay);
      } else {
        const std::size_t s = departure.storage.index();
        bytes = counting_.storage_bytes[s];
        if (const EventId free = trace_.storages.free_event[s]; free.valid()) {
          delta_[free.index()] += bytes;
        }
      }
      subtract_after(departure.event, bytes);
      if (departure.instruction >= 0) {
        change_[static_cast<std::size_t>(departure.instruction)] -= bytes;
      }
    }
  }

  void add_loads() {
    const auto& instructions = schedule_.instructions;
    for (std::size_t i = 0; i < instructions.size(); ++i) {
      if (instructions[i].action == Action::load) change_[i] += buffer_bytes(instructions[i].stay);
    }
    // What has a home of its own is on the device in its stays only.
    for (const Tenant& tenant : schedule_.tenants) {
      if (!tenant.has_own_home || !tenant.at_begin().valid()) continue;
      const std::size_t s = tenant.at_begin().index();
      at_begin_ -= counting_.storage_bytes[s];
      const EventId free = trace_.storages.free_event[s];
      if (free.valid()) delta_[free.index()] += counting_.storage_bytes[s];
    }
    for (std::size_t s = 0; s < schedule_.stays.size(); ++s) {
      if (schedule_.stays[s].wraps) at_begin_ += buffer_bytes(StayId(s));
    }
  }

  const Trace& trace_;
  const Schedule& schedule_;
  Counting counting_;
  Bytes at_begin_;
  std::vector<Bytes>& delta_;  // by event: its own action and what went in the gap before it
  std::vector<Bytes> change_;  // by instruction
};

}  // namespace

MemoryPeaks replay_memory(const StepIndex& index, const Schedule& schedule,
                          std::vector<Bytes>* requested) {
  const std::vector<Departure> leaving = departures(index.trace(), schedule);
  Counting by_request{index.bytes_at_begin(), index.requested_delta(), index.trace().storages.bytes,
                      false};
  const Peak peak = Walk(index, schedule, leaving, std::move(by_request)).run(requested);
  MemoryPeaks peaks{peak.bytes, peak.bytes, peak.event};
  if (index.rounds()) {
    Counting by_block{index.rounded_bytes_at_begin(), index.rounded_delta(), index.rounded_bytes(),
                      true};
    peaks.rounded = Walk(index, schedule, leaving, std::move(by_block)).run(nullptr).bytes;
  }
  return peaks;
}

}  // namespace stowage::simulator
