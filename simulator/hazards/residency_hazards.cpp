#include "simulator/hazards/residency_hazards.h"

#include <algorithm>
#include <string>
#include <utility>

#include "simulator/hazards/happens_before.h"
#include "simulator/hazards/schedule_structure.h"
#include "simulator/step/parameter_uses.h"

namespace stowage::simulator {
namespace {

// What the compute stream comes by in one period, in program order.
struct ResidencyItem {
  enum Kind : std::uint8_t { before, touch_begin, touch_end, after };
  EventId event;
  int stage = 0;  // at one event: before it, its own action, after it, the gap behind it
  Kind kind = before;
  std::int32_t row = -1;  // instruction; touch
};

struct Touch {
  ParameterId parameter;
  const ParameterTouch* what = nullptr;
};

// One parameter, now.
struct ResidencyState {
  ResidencyId stay;      // valid: on the device
  bool arrived = false;  // awaited
  bool dirty = false;    // updated and not stored
  bool stored = false;   // its store has started in this stay
  Access load;
  Access store;  // the last one, of any stay
};

class ResidencyWalk {
 public:
  ResidencyWalk(const StepIndex& index, const Schedule& schedule)
      : index_(index), trace_(index.trace()), s_(schedule), states_(schedule.parameters.size()) {}

  std::vector<Hazard> run() && {
    list_items();
    begin_first_period();
    for (std::size_t period = 0; period < kPeriods; ++period) {
      for (const ResidencyItem& item : items_) step(item);
    }
    return std::move(hazards_);
  }

 private:
  void report(HazardKind kind, ParameterId parameter, EventId event, const std::string& text) {
    const std::string all = text + " at event " + std::to_string(event.value);
    for (const Hazard& known : hazards_) {  // the second period repeats the first
      if (known.kind == kind && known.text == all) return;
    }
    hazards_.push_back({kind, {}, {}, event, all, parameter});
  }
  [[nodiscard]] std::string name(ParameterId p) const { return label(trace_, s_, p); }

  void list_items() {
    for (std::size_t p = 0; p < s_.parameters.size(); ++p) {
      for (const ParameterTouch& touch :
           index_.parameter_uses().touches_of(s_.parameters[p].storage)) {
        const auto row = static_cast<std::int32_t>(touches_.size());
        touches_.push_back({ParameterId(p), &touch});
        items_.push_back({touch.begin, 1, ResidencyItem::touch_begin, row});
        items_.push_back({touch.end, touch.ends_behind ? 3 : 1, ResidencyItem::touch_end, row});
      }
    }
    used_as_.resize(touches_.size());
    for (std::size_t i = 0; i < s_.instructions.size(); ++i) {
      if (!moves_parameter(s_.instructions[i].action)) continue;
      const Anchor& anchor = s_.instructions[i].anchor;
      const bool ahead = anchor.side == Side::before;
      items_.push_back({anchor.event, ahead ? 0 : 2,
                        ahead ? ResidencyItem::before : ResidencyItem::after,
                        static_cast<std::int32_t>(i)});
    }
    std::stable_sort(items_.begin(), items_.end(),
                     [](const ResidencyItem& a, const ResidencyItem& b) {
                       return std::pair(a.event, a.stage) < std::pair(b.event, b.stage);
                     });
  }

  // What wraps is on the device when the first period begins; awaited, if it is not in the period.
  void begin_first_period() {
    std::vector<bool> started(s_.residencies.size(), false);
    std::vector<bool> awaited(s_.residencies.size(), false);
    for (const Instruction& i : s_.instructions) {
      if (!moves_parameter(i.action)) continue;
      const std::size_t r = i.residency.index();
      if (i.action == Action::start_load) started[r] = true;
      if (i.action == Action::evict && !started[r]) {
        ResidencyState& state = states_[s_.residencies[r].parameter.index()];
        state.stay = i.residency;
        state.arrived = !awaited[r];
      }
      if (i.action == Action::await_load && !started[r]) awaited[r] = true;
    }
  }

  void step(const ResidencyItem& item) {
    const auto row = static_cast<std::size_t>(item.row);
    switch (item.kind) {
      case ResidencyItem::before:
      case ResidencyItem::after:
        execute(s_.instructions[row]);
        break;
      case ResidencyItem::touch_begin:
        begin_touch(row);
        break;
      case ResidencyItem::touch_end:
        end_touch(row);
        break;
    }
  }

  void begin_touch(std::size_t row) {
    const Touch& touch = touches_[row];
    const ResidencyState& state = states_[touch.parameter.index()];
    const EventId event = touch.what->begin;
    const Access use = streams_.on_compute(event);
    used_as_[row] = state.stay;
    const bool has_bytes = !state.load.happened || ordered(state.load, use);
    if (state.stay.valid() && state.arrived && has_bytes) return;
    report(HazardKind::parameter_absent, touch.parameter, event,
           name(touch.parameter) + " is used without being on the device");
  }

  void end_touch(std::size_t row) {
    const Touch& touch = touches_[row];
    ResidencyState& state = states_[touch.parameter.index()];
    const EventId event = touch.what->end;
    streams_.on_compute(event);
    if (used_as_[row].valid() && used_as_[row] != state.stay) {
      report(HazardKind::parameter_absent, touch.parameter, event,
             name(touch.parameter) + " leaves during a use that ends");
    }
    if (!touch.what->writes) return;
    state.dirty = true;
    if (!state.stored) return;
    report(HazardKind::update_lost, touch.parameter, event,
           name(touch.parameter) + " is updated behind the start of its store,");
  }

  void execute(const Instruction& i) {
    const EventId event = i.anchor.event;
    const Residency& residency = s_.residencies[i.residency.index()];
    const ParameterId p = residency.parameter;
    ResidencyState& state = states_[p.index()];
    const bool is_here = state.stay == i.residency;
    switch (i.action) {
      case Action::start_load:
        state.load = streams_.on_lane(h2d, event);
        if (state.store.happened && !ordered(state.store, state.load)) {
          report(HazardKind::load_before_store_finished, p, event,
                 "the load of " + name(p) + " may read its slot before the store has written it,");
        }
        if (state.dirty) {
          report(HazardKind::update_lost, p, event,
                 name(p) + " is loaded over an update that was not stored");
        }
        state.stay = i.residency;
        state.arrived = state.stored = state.dirty = false;
        break;
      case Action::await_load:
        if (!is_here) break;
        streams_.wait_for(state.load);
        state.arrived = true;
        break;
      case Action::start_store: {
        const Access store = streams_.on_lane(d2h, event);
        if (!is_here || !state.arrived || (state.load.happened && !ordered(state.load, store))) {
          report(HazardKind::freed_while_copied, p, event,
                 "the store of " + name(p) + " reads a buffer without its bytes");
        }
        state.store = store;
        state.stored = is_here;
        state.dirty = false;
        break;
      }
      case Action::evict:
        if (residency.written) streams_.wait_for(state.store);
        evict(p, state, event, is_here);
        break;
      default:
        break;
    }
  }

  void evict(ParameterId p, ResidencyState& state, EventId event, bool is_here) {
    const Access gone = streams_.on_compute(event);
    if (!is_here) return;
    if ((state.load.happened && !ordered(state.load, gone)) ||
        (state.stored && !ordered(state.store, gone))) {
      report(HazardKind::freed_while_copied, p, event,
             "the buffer of " + name(p) + " goes while a copy may use it,");
    }
    if (state.dirty) {
      report(HazardKind::update_lost, p, event, name(p) + " leaves with an update not stored");
    }
    state.stay = {};
    state.arrived = false;
  }

  const StepIndex& index_;
  const Trace& trace_;
  const Schedule& s_;
  std::vector<ResidencyItem> items_;
  std::vector<Touch> touches_;
  std::vector<ResidencyId> used_as_;    // by touch: what was there at its begin
  std::vector<ResidencyState> states_;  // by parameter
  Streams streams_;
  std::vector<Hazard> hazards_;
};

}  // namespace

std::vector<Hazard> find_residency_hazards(const StepIndex& index, const Schedule& schedule) {
  if (schedule.parameters.empty()) return {};
  return ResidencyWalk(index, schedule).run();
}

}  // namespace stowage::simulator
