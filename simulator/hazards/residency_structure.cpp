#include "simulator/hazards/residency_structure.h"

#include <algorithm>
#include <array>
#include <string>
#include <utility>

#include "simulator/hazards/schedule_structure.h"

namespace stowage::simulator {
namespace {

constexpr std::size_t kSteps = 4;  // start_load, await_load, start_store, evict
using Rows = std::array<std::int32_t, kSteps>;

class ResidencyChecker {
 public:
  ResidencyChecker(const StepIndex& index, const Schedule& schedule, std::vector<Hazard>& hazards)
      : trace_(index.trace()), s_(schedule), hazards_(hazards) {}

  void run() {
    check_parameters();
    check_slots();
    rows_.assign(s_.residencies.size(), {-1, -1, -1, -1});
    find_rows();
    for (std::size_t r = 0; r < rows_.size(); ++r) check_steps(ResidencyId(r));
    check_overlaps();
  }

 private:
  void report(const std::string& text, ParameterId parameter, EventId event = {}) {
    hazards_.push_back({HazardKind::malformed, {}, {}, event, text, parameter});
  }
  [[nodiscard]] std::string name(ParameterId p) const { return label(trace_, s_, p); }
  [[nodiscard]] std::string name(ResidencyId r) const {
    return "residency " + std::to_string(r.value) + " of " + name(parameter_of(r));
  }
  [[nodiscard]] ParameterId parameter_of(ResidencyId r) const {
    return s_.residencies[r.index()].parameter;
  }

  void check_parameters() {
    std::vector<bool> streams(trace_.storages.size(), false);
    const Storages& storages = trace_.storages;
    for (std::size_t p = 0; p < s_.parameters.size(); ++p) {
      const ParameterId id(p);
      const std::size_t s = s_.parameters[p].storage.index();
      if (streams[s]) report(name(id) + " streams twice", id);
      streams[s] = true;
      if (storages.device[s] != 0 || storages.alloc_event[s].valid() ||
          storages.free_event[s].valid()) {
        report(name(id) + " is not on the training device all through the recorded step", id);
      }
      if (s_.parameters[p].bytes != storages.bytes[s]) {
        report(name(id) + " has another size than its storage", id);
      }
    }
    for (std::size_t o = 0; o < s_.offloads.size(); ++o) {
      if (!streams[s_.offloads[o].storage.index()]) continue;
      hazards_.push_back({HazardKind::malformed,
                          OffloadId(o),
                          {},
                          {},
                          label(trace_, s_, OffloadId(o)) + " is of a parameter that streams"});
    }
  }

  // A parameter's slot is in the arena and nobody else's.
  void check_slots() {
    struct Slot {
      Bytes begin;
      Bytes end;
      ParameterId parameter;  // none: an offload's
    };
    std::vector<Slot> slots;
    for (std::size_t p = 0; p < s_.parameters.size(); ++p) {
      const StreamedParameter& parameter = s_.parameters[p];
      if (parameter.host_offset < 0 || parameter.host_offset % kHostSlotAlignment != 0 ||
          parameter.host_offset > s_.host_bytes ||
          parameter.bytes > s_.host_bytes - parameter.host_offset) {
        report(name(ParameterId(p)) + " has a host slot outside the arena or not aligned",
               ParameterId(p));
      }
      slots.push_back(
          {parameter.host_offset, parameter.host_offset + parameter.bytes, ParameterId(p)});
    }
    for (const Offload& offload : s_.offloads) {
      if (s_.parameters.empty() || offload.bytes == 0) continue;
      slots.push_back({offload.host_offset, offload.host_offset + offload.bytes, {}});
    }
    std::sort(slots.begin(), slots.end(),
              [](const Slot& a, const Slot& b) { return a.begin < b.begin; });
    Slot reaching{0, 0, {}};            // the slot so far that ends last
    Slot reaching_parameter{0, 0, {}};  // the parameter's
    for (const Slot& slot : slots) {
      const Slot& other = slot.parameter.valid() ? reaching : reaching_parameter;
      if (slot.begin < other.end) {
        const ParameterId which = slot.parameter.valid() ? slot.parameter : other.parameter;
        report("the host slot of " + name(which) + " is also another's", which);
      }
      if (slot.end > reaching.end) reaching = slot;
      if (slot.parameter.valid() && slot.end > reaching_parameter.end) reaching_parameter = slot;
    }
  }

  void find_rows() {
    for (std::size_t i = 0; i < s_.instructions.size(); ++i) {
      const Instruction& instruction = s_.instructions[i];
      if (!moves_parameter(instruction.action)) continue;
      const ResidencyId r = instruction.residency;
      const auto step = static_cast<std::size_t>(instruction.action) -
                        static_cast<std::size_t>(Action::start_load);
      std::int32_t& row = rows_[r.index()][step];
      if (row >= 0) {
        report(std::string("second ") + name_of(instruction.action) + " of " + name(r),
               parameter_of(r), instruction.anchor.event);
      }
      row = static_cast<std::int32_t>(i);
    }
  }

  void check_steps(ResidencyId r) {
    const Residency& residency = s_.residencies[r.index()];
    static constexpr std::array<const char*, kSteps> kStep = {"start_load", "await_load",
                                                              "start_store", "evict"};
    static constexpr std::size_t kStore = 2;
    const Rows& rows = rows_[r.index()];
    bool complete = true;
    for (std::size_t i = 0; i < kSteps; ++i) {
      const bool wanted = i != kStore || residency.written;
      if (wanted && rows[i] < 0) report(name(r) + " has no " + kStep[i], residency.parameter);
      if (!wanted && rows[i] >= 0) {
        report(name(r) + " is stored, but nothing writes it", residency.parameter);
      }
      complete = complete && (rows[i] >= 0) == wanted;
    }
    if (!complete) return;
    // In order, going round from start_load.
    const auto count = static_cast<std::int32_t>(s_.instructions.size());
    std::int32_t previous = 0;
    for (std::size_t i = 1; i < kSteps; ++i) {
      if (rows[i] < 0) continue;
      const std::int32_t distance = (rows[i] - rows[0] + count) % count;
      if (distance < previous) {
        report(name(r) + " has its instructions out of order", residency.parameter,
               s_.instructions[static_cast<std::size_t>(rows[i])].anchor.event);
      }
      previous = distance;
    }
    if (residency.wraps != (rows[3] < rows[0])) {
      report(name(r) + (residency.wraps ? " does not go" : " goes") + " over the step's end",
             residency.parameter);
    }
  }

  // Of each parameter: behind a start_load comes the evict of the same residency, going round.
  void check_overlaps() {
    std::vector<std::vector<const Instruction*>> of(s_.parameters.size());
    for (const Instruction& i : s_.instructions) {
      if (i.action != Action::start_load && i.action != Action::evict) continue;
      of[parameter_of(i.residency).index()].push_back(&i);
    }
    for (std::size_t p = 0; p < of.size(); ++p) {
      for (std::size_t i = 0; i < of[p].size(); ++i) {
        const Instruction& next = *of[p][(i + 1) % of[p].size()];
        if (of[p][i]->action != Action::start_load) continue;
        if (next.action == Action::evict && next.residency == of[p][i]->residency) continue;
        report(name(of[p][i]->residency) + " overlaps " + name(next.residency), ParameterId(p),
               next.anchor.event);
      }
    }
  }

  const Trace& trace_;
  const Schedule& s_;
  std::vector<Hazard>& hazards_;
  std::vector<Rows> rows_;  // of the instruction list, by residency
};

}  // namespace

void check_residencies(const StepIndex& index, const Schedule& schedule,
                       std::vector<Hazard>& hazards) {
  ResidencyChecker(index, schedule, hazards).run();
}

}  // namespace stowage::simulator
