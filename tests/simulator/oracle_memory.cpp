#include "tests/simulator/oracle_memory.h"

#include <algorithm>

namespace stowage::testing {
namespace {

using simulator::Action;
using simulator::Instruction;
using simulator::Schedule;

// A moment of the step: right after the action of `event` and the first `done` instructions of the
// whole list.
struct Moment {
  std::int32_t event = 0;
  std::size_t done = 0;
};

class MemoryOracle {
 public:
  MemoryOracle(const Trace& trace, const Schedule& schedule) : trace_(trace), s_(schedule) {}

  [[nodiscard]] std::set<std::size_t> live_set(Moment m) const {
    std::set<std::size_t> live;
    for (std::size_t s = 0; s < trace_.storages.size(); ++s) {
      if (trace_.storages.device[s] == 0 && storage_lives(s, m)) live.insert(s);
    }
    for (std::size_t r = 0; r < s_.stays.size(); ++r) {
      if (buffer_lives(StayId(r), m)) live.insert(trace_.storages.size() + r);
    }
    return live;
  }

  [[nodiscard]] Bytes live(Moment m) const {
    Bytes sum = 0;
    for (const std::size_t item : live_set(m)) {
      const std::size_t storages = trace_.storages.size();
      sum +=
          item < storages ? trace_.storages.bytes[item] : s_.tenant(StayId(item - storages)).bytes;
    }
    return sum;
  }

 private:
  [[nodiscard]] bool storage_lives(std::size_t s, Moment m) const {
    for (const auto& tenant : s_.tenants) {
      if (!tenant.has_own_home) continue;
      const bool is_made = tenant.kind->is_made_anew;
      if (is_made && tenant.previous == StorageId(s)) return false;  // at home, as all that follow
      if (!is_made && tenant.storage == StorageId(s)) return false;
    }
    const auto alloc = trace_.storages.alloc_event[s].value;
    if (alloc >= 0 && m.event < alloc) return false;
    std::vector<std::size_t> evictions;  // rows of the instruction list
    for (std::size_t i = 0; i < s_.instructions.size(); ++i) {
      const Instruction& row = s_.instructions[i];
      if (row.action == Action::evict && s_.stays[row.stay.index()].is_made &&
          s_.tenant(row.stay).storage == StorageId(s)) {
        evictions.push_back(i);
      }
    }
    if (alloc < 0 || evictions.empty()) {  // as recorded
      const auto free = trace_.storages.free_event[s].value;
      return free < 0 || m.event < free;
    }
    const auto natural = trace_.storages.natural_free_event[s].value;
    const bool is_at_home = std::any_of(
        s_.tenants.begin(), s_.tenants.end(),
        [&](const auto& tenant) { return tenant.has_own_home && tenant.storage == StorageId(s); });
    const bool model_holds = !is_at_home && (natural < 0 || m.event <= natural);
    // Every eviction is to be done.
    const bool copy_holds =
        std::any_of(evictions.begin(), evictions.end(), [&](std::size_t i) { return m.done <= i; });
    return model_holds || copy_holds;
  }

  // From its load on, of this period or of the one before, until it is evicted and the model has
  // let go of what its unpacks handed out.
  [[nodiscard]] bool buffer_lives(StayId id, Moment m) const {
    const auto& stay = s_.stays[id.index()];
    if (stay.is_made) return false;            // the storage itself
    const auto last_of = [&](Action action) {  // how many instructions ago; none: 0
      const std::size_t count = stay.wraps ? s_.instructions.size() : m.done;
      for (std::size_t back = 1; back <= count; ++back) {
        const Instruction& i =
            s_.instructions[(m.done + s_.instructions.size() - back) % s_.instructions.size()];
        if (i.stay == id && i.action == action) return back;
      }
      return std::size_t{0};
    };
    const std::size_t load = last_of(Action::load);
    const std::size_t evict = last_of(Action::evict);
    if (load == 0) return false;
    if (evict == 0 || load < evict) return true;
    return std::any_of(stay.unpacks.begin(), stay.unpacks.end(), [&](UnpackId u) {
      const auto released = trace_.unpacks.released_event[u.index()].value;
      const auto own = trace_.unpacks.event[u.index()].value;
      return released < 0 || m.event <= std::max(released, own);
    });
  }

  const Trace& trace_;
  const Schedule& s_;
};

}  // namespace

std::vector<std::set<std::size_t>> oracle_live_sets(const Trace& trace, const Schedule& schedule) {
  const MemoryOracle oracle(trace, schedule);
  std::vector<std::set<std::size_t>> sets;
  std::size_t done = 0;
  for (std::int32_t e = 0; e < static_cast<std::int32_t>(trace.events.size()); ++e) {
    sets.push_back(oracle.live_set({e, done}));
    while (done < schedule.instructions.size() &&
           schedule.instructions[done].anchor.event.value == e) {
      sets.push_back(oracle.live_set({e, ++done}));
    }
  }
  return sets;
}

OracleMemory oracle_memory(const Trace& trace, const Schedule& schedule) {
  const MemoryOracle oracle(trace, schedule);
  OracleMemory result;
  const auto& list = schedule.instructions;
  const auto count = static_cast<std::int32_t>(trace.events.size());
  std::size_t done = 0;
  for (std::int32_t e = 0; e < count; ++e) {
    Bytes now = oracle.live({e, done});
    result.lowest = e == 0 ? now : std::min(result.lowest, now);
    const auto look = [&](bool counts) {
      if (counts && (now > result.peak || !result.peak_event.valid())) {
        result.peak = now;
        result.peak_event = EventId(e);
      }
    };
    look(e == 0 || trace.events.kind[static_cast<std::size_t>(e)] == EventKind::alloc);
    result.requested.push_back(now);
    for (; done < list.size() && list[done].anchor.event.value == e;) {
      const Action action = list[done++].action;
      now = oracle.live({e, done});
      result.requested.back() = std::max(result.requested.back(), now);
      result.lowest = std::min(result.lowest, now);
      look(action == Action::load);
    }
  }
  return result;
}

}  // namespace stowage::testing
