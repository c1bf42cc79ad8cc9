#include "simulator/allocator/allocation_sequence.h"

#include <algorithm>
#include <tuple>
#include <utility>

#include "simulator/schedule/departures.h"
#include "simulator/schedule/tenant_kind.h"

namespace stowage::simulator {
namespace {

using Slot = AllocationSequence::Slot;

class Builder {
 public:
  Builder(const StepIndex& index, const Schedule& schedule)
      : trace_(index.trace()),
        schedule_(schedule),
        storages_(trace_.storages.size()),
        moved_(storages_, false),
        at_home_(storages_, false),
        stays_(storages_ + schedule.stays.size(), false) {}

  AllocationSequence run() && {
    out_.bytes = trace_.storages.bytes;
    for (const Tenant& tenant : schedule_.tenants) {
      if (!tenant.has_own_home) continue;
      if (!tenant.kind->is_made_anew) {
        out_.adopted.push_back(tenant.storage.value);
        continue;
      }
      at_home_[tenant.storage.index()] = true;
      if (tenant.previous.valid()) at_home_[tenant.previous.index()] = true;
    }
    for (std::size_t i = 0; i < schedule_.stays.size(); ++i) {
      const Stay& stay = schedule_.stays[i];
      out_.bytes.push_back(stay.is_made ? 0 : schedule_.tenant(StayId(i)).bytes);
      if (stay.wraps) out_.wrapping.push_back(slot_of(StayId(i)));
    }
    collect_gap_frees();
    walk();
    link_periods();
    return std::move(out_);
  }

 private:
  struct GapFree {
    EventId event;  // behind it
    Slot slot = 0;
  };

  [[nodiscard]] Slot slot_of(StayId stay) const {
    return static_cast<Slot>(storages_ + stay.index());
  }

  [[nodiscard]] bool counts(std::size_t storage) const {
    return trace_.storages.device[storage] == 0 && trace_.storages.bytes[storage] > 0;
  }

  void collect_gap_frees() {
    for (const Departure& departure : departures(trace_, schedule_)) {
      const bool is_buffer = departure.stay.valid();
      const Slot slot = is_buffer ? slot_of(departure.stay) : departure.storage.value;
      if (!is_buffer) moved_[departure.storage.index()] = true;
      if (departure.event.valid()) gap_frees_.push_back({departure.event, slot});
      if (departure.instruction >= 0) freed_at_.push_back({departure.instruction, slot});
    }
    std::sort(gap_frees_.begin(), gap_frees_.end(), [](const GapFree& a, const GapFree& b) {
      return std::tie(a.event, a.slot) < std::tie(b.event, b.slot);
    });
  }

  void allocate(Slot slot, std::size_t event, bool by_plan = false) {
    out_.period.push_back({EventId(event), slot, false, by_plan});
    stays_[static_cast<std::size_t>(slot)] = true;
  }
  void free(Slot slot, std::size_t event, bool by_plan = false) {
    out_.period.push_back({EventId(event), slot, true, by_plan});
    stays_[static_cast<std::size_t>(slot)] = false;
  }

  void walk() {
    const auto& instructions = schedule_.instructions;
    std::size_t next_instruction = 0;
    auto gap = gap_frees_.begin();
    auto at = freed_at_.begin();  // in order of instructions
    for (std::size_t e = 0; e < trace_.events.size(); ++e) {
      own_action(e);
      for (; next_instruction < instructions.size() &&
             instructions[next_instruction].anchor.event.index() == e;
           ++next_instruction) {
        const Instruction& instruction = instructions[next_instruction];
        if (instruction.action == Action::load) allocate(slot_of(instruction.stay), e, true);
        if (at != freed_at_.end() && static_cast<std::size_t>(at->first) == next_instruction) {
          free((at++)->second, e, true);
        }
      }
      // Behind the last event: in the next period's begin, as far as anybody can see.
      if (e + 1 == trace_.events.size()) break;
      for (; gap != gap_frees_.end() && gap->event.index() == e; ++gap) free(gap->slot, e + 1);
    }
  }

  void own_action(std::size_t e) {
    const EventKind kind = trace_.events.kind[e];
    if (kind != EventKind::alloc && kind != EventKind::free) return;
    const std::int32_t row = trace_.events.ref[e];
    const auto s = static_cast<std::size_t>(row);
    if (!counts(s)) return;
    if (kind == EventKind::alloc) {
      allocate(row, e);
    } else if (!moved_[s] && !at_home_[s]) {
      free(row, e);
    }
  }

  void link_periods() {
    struct End {
      Bytes bytes;
      std::int32_t order;  // by which those of one size are paired
      Slot slot;
    };
    std::vector<End> old;
    std::vector<End> made;
    const Storages& storages = trace_.storages;
    for (std::size_t s = 0; s < storages_; ++s) {
      if (!counts(s) || at_home_[s]) continue;
      const auto slot = static_cast<Slot>(s);
      if (storages.alloc_event[s].valid()) {
        if (!storages.free_event[s].valid()) {
          made.push_back({storages.bytes[s], storages.alloc_event[s].value, slot});
        }
      } else if (storages.free_event[s].valid()) {
        old.push_back({storages.bytes[s], slot, slot});
      } else {
        out_.lasting.push_back(slot);
      }
    }
    const auto before = [](const End& a, const End& b) {
      return std::tie(a.bytes, a.order) < std::tie(b.bytes, b.order);
    };
    std::sort(old.begin(), old.end(), before);
    std::sort(made.begin(), made.end(), before);
    auto m = made.begin();
    for (const End& end : old) {
      for (; m != made.end() && m->bytes < end.bytes; ++m) out_.is_paired = false;
      const bool pairs = m != made.end() && m->bytes == end.bytes;
      out_.is_paired = out_.is_paired && pairs;
      if (pairs && stays_[static_cast<std::size_t>(m->slot)]) {
        out_.carried.push_back({end.slot, m->slot});
        stays_[static_cast<std::size_t>(m->slot)] = false;
      } else {
        out_.made_before.push_back(end.slot);
      }
      if (pairs) ++m;
    }
    out_.is_paired = out_.is_paired && m == made.end();
    for (const Slot slot : out_.wrapping) stays_[static_cast<std::size_t>(slot)] = false;
    for (std::size_t slot = 0; slot < stays_.size(); ++slot) {
      if (stays_[slot]) out_.freed_behind.push_back(static_cast<Slot>(slot));
    }
  }

  const Trace& trace_;
  const Schedule& schedule_;
  std::size_t storages_;
  std::vector<bool> moved_;    // by storage
  std::vector<bool> at_home_;  // what is made anew in each step, and what the step before left
  std::vector<bool> stays_;    // by slot: allocated and not freed so far
  std::vector<GapFree> gap_frees_;
  std::vector<std::pair<std::int32_t, Slot>> freed_at_;  // by instruction
  AllocationSequence out_;
};

}  // namespace

bool AllocationSequence::is_born_at_home(const Setup& setup, std::size_t row) const {
  const StorageId storage = setup.storage[row];
  if (!storage.valid() || !setup.event[row].valid()) return false;
  return std::find(adopted.begin(), adopted.end(), storage.value) != adopted.end();
}

AllocationSequence allocation_sequence(const StepIndex& index, const Schedule& schedule) {
  return Builder(index, schedule).run();
}

}  // namespace stowage::simulator
