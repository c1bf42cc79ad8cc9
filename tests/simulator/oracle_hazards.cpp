#include "tests/simulator/oracle_hazards.h"

#include <algorithm>
#include <map>
#include <tuple>

namespace stowage::testing {
namespace {

using simulator::Action;
using simulator::CopyMode;
using simulator::Instruction;
using simulator::Schedule;
using simulator::Side;
using simulator::StepIndex;

enum class Object { storage, buffer, host };
enum class Does { read, write, gone };

struct HazardNode {
  std::vector<std::size_t> after;  // direct predecessors
  // An access: object, which one, bytes, what it does.
  bool accesses = false;
  Object object = Object::host;
  int id = 0;
  int period = 0;
  Bytes first = 0;
  Bytes last = 0;
  Does does = Does::read;
  int offload = -1;  // the offload whose bytes are meant
};

class HazardOracle {
 public:
  HazardOracle(const StepIndex& index, const Schedule& schedule)
      : trace_(index.trace()), index_(index), s_(schedule) {}

  bool safe() {
    for (period_ = 0; period_ < 2; ++period_) run_period();
    return ok_ && no_race() && right_bytes();
  }

 private:
  std::size_t add(std::vector<std::size_t> after) {
    nodes_.push_back({});
    nodes_.back().after = std::move(after);
    return nodes_.size() - 1;
  }
  std::size_t on_compute() {
    return compute_ = add(nodes_.empty() ? std::vector<std::size_t>{}
                                         : std::vector<std::size_t>{compute_});
  }
  void access(std::size_t node, Object object, int id, int period, Bytes first, Bytes last,
              Does does, int offload) {
    HazardNode& n = nodes_[node];
    n.accesses = true;
    n.object = object;
    n.id = id;
    n.period = period;
    n.first = first;
    n.last = last;
    n.does = does;
    n.offload = offload;
  }

  // A copy's read and write, on compute or on a lane; returns the node of its end.
  std::size_t copy(int lane, CopyMode mode, std::size_t& read) {
    if (mode == CopyMode::compute) {
      read = on_compute();
      return on_compute();
    }
    const std::size_t issued = on_compute();
    std::vector<std::size_t> after{issued};
    if (lane_last_.count(lane) > 0) after.push_back(lane_last_[lane]);
    read = add(after);
    const std::size_t end = add({read});
    lane_last_[lane] = end;
    if (mode == CopyMode::blocking) wait(end);
    return end;
  }
  void wait(std::size_t node) {
    const std::size_t previous = compute_;
    compute_ = add({previous, node});
  }

  [[nodiscard]] int lasting_period(StorageId s) const {
    return trace_.storages.alloc_event[s.index()].valid() ? period_ : 0;
  }

  void execute(const Instruction& i) {
    switch (i.action) {
      case Action::start_offload: {
        const auto& o = s_.offloads[i.offload.index()];
        std::size_t read = 0;
        const std::size_t end = copy(0, o.copy_out, read);
        access(read, Object::storage, o.storage.value, lasting_period(o.storage), o.begin,
               o.begin + o.bytes, Does::read, i.offload.value);
        access(end, Object::host, 0, 0, o.host_offset, o.host_offset + o.bytes, Does::write,
               i.offload.value);
        copied_out_[{period_, i.offload.value}] = end;
        break;
      }
      case Action::start_reload: {
        const auto& r = s_.reloads[i.reload.index()];
        const auto& o = s_.offloads[r.offload.index()];
        std::size_t read = 0;
        const std::size_t end = copy(1, r.copy_in, read);
        access(read, Object::host, 0, 0, o.host_offset, o.host_offset + o.bytes, Does::read,
               r.offload.value);
        access(end, Object::buffer, i.reload.value, period_, 0, 1, Does::write, r.offload.value);
        copied_in_[{period_, i.reload.value}] = end;
        must_follow_.push_back({{period_, r.offload.value}, read});
        break;
      }
      case Action::release:
        if (const auto at = copied_out_.find({period_, i.offload.value}); at != copied_out_.end()) {
          wait(at->second);
        }
        break;
      case Action::await:
        if (const auto at = copied_in_.find({period_, i.reload.value}); at != copied_in_.end()) {
          wait(at->second);
        }
        break;
      case Action::drop:
      case Action::start_load:
      case Action::await_load:
      case Action::start_store:
      case Action::evict:
        break;
    }
  }

  void run_period() {
    // When storages and buffers go: {event, after the instruction list up to ..}.
    std::map<int, int> storage_gone;
    std::map<int, int> buffer_gone;
    std::map<int, int> last_release;
    for (const Instruction& i : s_.instructions) {
      if (i.action == Action::release) {
        int& last = last_release[s_.offloads[i.offload.index()].storage.value];
        last = std::max(last, i.anchor.event.value);
      }
      if (i.action == Action::drop) {
        int last = i.anchor.event.value;
        bool survives = false;
        for (const UnpackId u : s_.reloads[i.reload.index()].unpacks) {
          const int released = trace_.unpacks.released_event[u.index()].value;
          survives = survives || released < 0;
          last = std::max(last, released);
        }
        if (!survives) buffer_gone[i.reload.value] = last;
      }
    }
    for (const auto& [storage, release] : last_release) {
      const auto row = static_cast<std::size_t>(storage);
      const int natural = trace_.storages.natural_free_event[row].value;
      if (!trace_.storages.alloc_event[row].valid() || natural < 0) continue;
      storage_gone[storage] = std::max(natural, release);
    }
    for (int e = 0; e < static_cast<int>(trace_.events.size()); ++e) {
      run_instructions(e, Side::before);
      own_action(e);
      run_instructions(e, Side::after);
      for (const auto& [storage, at] : storage_gone) {
        if (at != e) continue;
        access(on_compute(), Object::storage, storage, period_, 0, 1'000'000'000, Does::gone, -1);
      }
      for (const auto& [reload, at] : buffer_gone) {
        if (at == e) access(on_compute(), Object::buffer, reload, period_, 0, 1, Does::gone, -1);
      }
    }
  }

  void run_instructions(int e, Side side) {
    for (const Instruction& i : s_.instructions) {
      if (i.anchor.event.value == e && i.anchor.side == side) execute(i);
    }
  }

  void own_action(int e) {
    const auto row = static_cast<std::size_t>(e);
    const auto ref = static_cast<std::size_t>(std::max(trace_.events.ref[row], 0));
    if (trace_.events.kind[row] == EventKind::unpack && s_.reload_of[ref].valid()) {
      const ReloadId r = s_.reload_of[ref];
      if (copied_in_.count({period_, r.value}) == 0) ok_ = false;
      access(on_compute(), Object::buffer, r.value, period_, 0, 1, Does::read,
             s_.reloads[r.index()].offload.value);
    }
    for (std::size_t s = 0; s < trace_.storages.size(); ++s) {
      const auto& writes = index_.writes_of(StorageId(s));
      if (std::find(writes.begin(), writes.end(), EventId(row)) == writes.end()) continue;
      access(on_compute(), Object::storage, static_cast<int>(s), lasting_period(StorageId(s)), 0,
             1'000'000'000, Does::write, -1);
    }
  }

  bool no_race() {
    const std::size_t n = nodes_.size();
    reach_.assign(n, std::vector<bool>(n, false));  // [b][a]: a is ordered ahead of b
    for (std::size_t b = 0; b < n; ++b) {
      for (const std::size_t a : nodes_[b].after) {
        reach_[b][a] = true;
        for (std::size_t c = 0; c < a; ++c) {
          if (reach_[a][c]) reach_[b][c] = true;
        }
      }
    }
    for (const auto& [offload, read] : must_follow_) {
      const auto written = copied_out_.find(offload);
      if (written == copied_out_.end() || !reach_[read][written->second]) return false;
    }
    for (std::size_t b = 0; b < n; ++b) {
      for (std::size_t a = 0; a < b; ++a) {
        const HazardNode& x = nodes_[a];
        const HazardNode& y = nodes_[b];
        const bool same = x.accesses && y.accesses && x.object == y.object && x.id == y.id &&
                          x.period == y.period;
        // Not empty, and some byte in both.
        const bool conflict = same && std::max(x.first, y.first) < std::min(x.last, y.last) &&
                              (x.does != Does::read || y.does != Does::read);
        if (conflict && !reach_[b][a]) return false;
      }
    }
    return true;
  }

  // Nodes are in an order of the graph; without races every order moves the same bytes.
  bool right_bytes() {
    std::map<Bytes, std::pair<int, int>> host;  // by 4 bytes: whose bytes these are
    std::map<std::pair<int, int>, bool> storage_is_gone;
    std::map<std::pair<int, int>, int> buffer;  // 1 written, 2 gone
    std::map<int, int> runs;                    // how often an offload was copied: its period
    for (const HazardNode& n : nodes_) {
      if (!n.accesses) continue;
      const std::pair key{n.id, n.period};
      switch (n.object) {
        case Object::storage:
          if (n.does == Does::gone) storage_is_gone[key] = true;
          if (n.does == Does::read && n.first < n.last && storage_is_gone[key]) return false;
          break;
        case Object::buffer:
          if (n.does == Does::gone) buffer[key] = 2;
          if (n.does == Does::write) {
            if (buffer[key] == 2) return false;
            buffer[key] = 1;
          }
          if (n.does == Does::read && buffer[key] != 1) return false;
          break;
        case Object::host: {
          if (n.does == Does::write) ++runs[n.offload];
          const std::pair token{n.offload, runs[n.offload]};
          for (Bytes at = n.first; at < n.last; at += 4) {
            if (n.does == Does::write) host[at] = token;
            if (n.does == Does::read && host[at] != token) return false;
          }
          break;
        }
      }
    }
    return true;
  }

  const Trace& trace_;
  const StepIndex& index_;
  const Schedule& s_;
  int period_ = 0;
  bool ok_ = true;
  std::vector<HazardNode> nodes_;
  std::size_t compute_ = 0;
  std::map<int, std::size_t> lane_last_;
  std::map<std::pair<int, int>, std::size_t> copied_out_;
  std::map<std::pair<int, int>, std::size_t> copied_in_;
  std::vector<std::pair<std::pair<int, int>, std::size_t>> must_follow_;
  std::vector<std::vector<bool>> reach_;
};

}  // namespace

bool oracle_is_safe(const StepIndex& index, const Schedule& schedule) {
  return HazardOracle(index, schedule).safe();
}

}  // namespace stowage::testing
