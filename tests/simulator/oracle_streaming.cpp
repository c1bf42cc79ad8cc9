#include "tests/simulator/oracle_streaming.h"

#include <algorithm>
#include <map>

namespace stowage::testing {
namespace {

using simulator::Action;
using simulator::Instruction;
using simulator::ParameterTouch;
using simulator::Schedule;
using simulator::Side;
using simulator::StepIndex;

struct StreamingNode {
  std::vector<std::size_t> after;  // direct predecessors
  // Accesses: a buffer by its number >= 0, the slot of parameter p as -1 - p.
  std::vector<std::pair<int, bool>> accesses;  // of what, and whether it changes it
};

struct Parameter {
  int buffer = -1;  // its number, unique; -1 = not on the device
  ResidencyId stay;
  bool visible = false;  // awaited
  int latest = 0;        // version
  int at_home = 0;       // version in the slot
  int in_buffer = 0;
  std::size_t load = 0;  // nodes; 0 = none
  std::size_t store = 0;
};

class StreamingOracle {
 public:
  StreamingOracle(const StepIndex& index, const Schedule& schedule)
      : index_(index), s_(schedule), parameters_(schedule.parameters.size()) {
    nodes_.push_back({});
  }

  bool safe() {
    begin();
    for (int period = 0; period < 2; ++period) run_period();
    return ok_ && no_race();
  }

 private:
  std::size_t add(std::vector<std::size_t> after, std::vector<std::pair<int, bool>> accesses) {
    nodes_.push_back({std::move(after), std::move(accesses)});
    return nodes_.size() - 1;
  }
  void on_compute(std::vector<std::pair<int, bool>> accesses) {
    compute_ = add({compute_}, std::move(accesses));
  }
  void wait(std::size_t node) {
    if (node != 0) compute_ = add({compute_, node}, {});
  }
  // Source and destination of a copy, as one access each at its only node.
  std::size_t copy(int lane, int from, int to) {
    return lane_[lane] = add({compute_, lane_[lane]}, {{from, false}, {to, true}});
  }

  // A residency whose evict comes without a start_load ahead of it is there from the begin.
  void begin() {
    for (std::size_t e = 0; e < s_.instructions.size(); ++e) {
      const Instruction& evict = s_.instructions[e];
      if (evict.action != Action::evict) continue;
      const auto ahead = [&](Action action) {
        return std::any_of(s_.instructions.begin(),
                           s_.instructions.begin() + static_cast<std::ptrdiff_t>(e),
                           [&](const Instruction& i) {
                             return i.action == action && i.residency == evict.residency;
                           });
      };
      if (ahead(Action::start_load)) continue;
      Parameter& p = of(evict.residency);
      p.buffer = next_buffer_++;
      p.stay = evict.residency;
      p.visible = !ahead(Action::await_load);
    }
  }

  Parameter& of(ResidencyId r) { return parameters_[s_.residencies[r.index()].parameter.index()]; }
  int slot_of(ResidencyId r) const { return -1 - s_.residencies[r.index()].parameter.value; }

  void run_period() {
    const auto& trace = index_.trace();
    std::map<const ParameterTouch*, int> began_with;
    for (int e = 0; e < static_cast<int>(trace.events.size()); ++e) {
      run_instructions(e, Side::before);
      for (const bool behind : {false, true}) {
        for (std::size_t p = 0; p < parameters_.size(); ++p) {
          for (const ParameterTouch& touch :
               index_.parameter_uses().touches_of(s_.parameters[p].storage)) {
            if (!behind && touch.begin.value == e) {
              began_with[&touch] = parameters_[p].buffer;
              begin_touch(parameters_[p]);
            }
            if (touch.ends_behind == behind && touch.end.value == e) {
              end_touch(parameters_[p], touch, began_with[&touch]);
            }
          }
        }
        if (!behind) run_instructions(e, Side::after);
      }
    }
  }

  void begin_touch(const Parameter& p) {
    if (p.buffer < 0 || !p.visible || p.in_buffer != p.latest) ok_ = false;
    on_compute({{p.buffer, false}});
  }

  void end_touch(Parameter& p, const ParameterTouch& touch, int buffer) {
    if (buffer != p.buffer) ok_ = false;
    on_compute({{buffer, touch.writes}});
    if (touch.writes) p.in_buffer = ++p.latest;
  }

  void run_instructions(int e, Side side) {
    for (const Instruction& i : s_.instructions) {
      if (i.anchor.event.value == e && i.anchor.side == side && i.residency.valid()) execute(i);
    }
  }

  void execute(const Instruction& i) {
    Parameter& p = of(i.residency);
    const bool is_here = p.buffer >= 0 && p.stay == i.residency;
    if (i.action == Action::start_load) {
      p.buffer = next_buffer_++;
      p.stay = i.residency;
      p.visible = false;
      p.in_buffer = p.at_home;
      p.load = copy(0, slot_of(i.residency), p.buffer);
    } else if (i.action == Action::await_load) {
      if (!is_here) return;
      wait(p.load);
      p.visible = true;
    } else if (i.action == Action::start_store) {
      if (!is_here || !p.visible) ok_ = false;
      p.at_home = p.in_buffer;
      p.store = copy(1, p.buffer, slot_of(i.residency));
    } else if (i.action == Action::evict) {
      if (s_.residencies[i.residency.index()].written) wait(p.store);
      if (!is_here) return;
      on_compute({{p.buffer, true}});
      p.buffer = -1;
    }
  }

  bool no_race() {
    const std::size_t n = nodes_.size();
    std::vector<std::vector<bool>> reach(n, std::vector<bool>(n, false));  // [b][a]: a is ahead
    for (std::size_t b = 1; b < n; ++b) {
      for (const std::size_t a : nodes_[b].after) {
        reach[b][a] = true;
        for (std::size_t c = 0; c < a; ++c) {
          if (reach[a][c]) reach[b][c] = true;
        }
      }
    }
    for (std::size_t b = 0; b < n; ++b) {
      for (std::size_t a = 0; a < b; ++a) {
        for (const auto& [what, changes] : nodes_[b].accesses) {
          for (const auto& [other, other_changes] : nodes_[a].accesses) {
            if (what == other && (changes || other_changes) && !reach[b][a]) return false;
          }
        }
      }
    }
    return true;
  }

  const StepIndex& index_;
  const Schedule& s_;
  std::vector<Parameter> parameters_;
  std::vector<StreamingNode> nodes_;  // row 0: the begin
  std::size_t compute_ = 0;
  std::size_t lane_[2] = {0, 0};
  int next_buffer_ = 1000;  // apart from -1 and the slots
  bool ok_ = true;
};

}  // namespace

bool oracle_streams_safely(const StepIndex& index, const Schedule& schedule) {
  return StreamingOracle(index, schedule).safe();
}

}  // namespace stowage::testing
