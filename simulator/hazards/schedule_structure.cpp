#include "simulator/hazards/schedule_structure.h"

#include <algorithm>
#include <array>
#include <string>

#include "simulator/hazards/residency_structure.h"
#include "simulator/schedule/stay_places.h"

namespace stowage::simulator {
namespace {

template <class Tag>
bool in_range(Id<Tag> id, std::size_t size) {
  return id.valid() && id.index() < size;
}

Place place_of(const Instruction& i) {
  return {i.anchor.event, i.anchor.side};
}

class Checker {
 public:
  Checker(const StepIndex& index, const Schedule& schedule)
      : index_(index), trace_(index.trace()), s_(schedule) {}

  Structure run() && {
    check_ids();
    if (!out_.readable) return std::move(out_);
    check_offloads();
    check_reloads();
    check_served();
    check_instructions();
    check_residencies(index_, s_, out_.hazards);
    return std::move(out_);
  }

 private:
  void report(const std::string& text, EventId event = {}, OffloadId offload = {}) {
    out_.hazards.push_back({HazardKind::malformed, offload, {}, event, text});
  }
  void unreadable(const std::string& text) {
    out_.readable = false;
    report(text);
  }
  [[nodiscard]] std::string name(OffloadId o) const { return label(trace_, s_, o); }

  void check_ids() {
    if (s_.offload_of.size() != trace_.saved.size() ||
        s_.reload_of.size() != trace_.unpacks.size()) {
      unreadable("the schedule is for another trace: " + std::to_string(s_.offload_of.size()) +
                 " saved tensors and " + std::to_string(s_.reload_of.size()) + " unpacks, not " +
                 std::to_string(trace_.saved.size()) + " and " +
                 std::to_string(trace_.unpacks.size()));
    }
    for (const OffloadId o : s_.offload_of) {
      if (o.valid() && !in_range(o, s_.offloads.size())) unreadable("offload_of names no offload");
    }
    for (const ReloadId r : s_.reload_of) {
      if (r.valid() && !in_range(r, s_.reloads.size())) unreadable("reload_of names no reload");
    }
    for (const Offload& offload : s_.offloads) {
      bool fits = in_range(offload.storage, trace_.storages.size()) && !offload.saved.empty();
      for (const SavedId s : offload.saved) fits = fits && in_range(s, trace_.saved.size());
      if (!fits) unreadable("an offload names no storage or no saved tensor of the trace");
    }
    for (const Reload& reload : s_.reloads) {
      bool fits = in_range(reload.offload, s_.offloads.size()) && !reload.unpacks.empty();
      for (const UnpackId u : reload.unpacks) fits = fits && in_range(u, trace_.unpacks.size());
      if (!fits) unreadable("a reload names no offload of the schedule or no unpack of the trace");
    }
    for (const StreamedParameter& parameter : s_.parameters) {
      if (!in_range(parameter.storage, trace_.storages.size())) {
        unreadable("a streamed parameter names no storage of the trace");
      }
    }
    for (const Residency& residency : s_.residencies) {
      if (!in_range(residency.parameter, s_.parameters.size())) {
        unreadable("a residency names no parameter of the schedule");
      }
    }
    for (const Instruction& i : s_.instructions) {
      const bool leaves = i.action == Action::start_offload || i.action == Action::release;
      if (moves_parameter(i.action)) {
        if (!in_range(i.residency, s_.residencies.size())) {
          unreadable(std::string("a ") + name_of(i.action) + " names no row of the schedule");
        }
      } else if (leaves ? !in_range(i.offload, s_.offloads.size())
                        : !in_range(i.reload, s_.reloads.size())) {
        unreadable(std::string("a ") + name_of(i.action) + " names no row of the schedule");
      }
      if (!in_range(i.anchor.event, index_.event_count()) || !index_.is_anchor(i.anchor.event)) {
        unreadable(std::string("a ") + name_of(i.action) + " stands at no anchor");
        continue;
      }
      const Anchor anchor = index_.anchor_at(i.anchor.event, i.anchor.side);
      if (anchor.kind != i.anchor.kind || anchor.ordinal != i.anchor.ordinal) {
        report(std::string("a ") + name_of(i.action) + " stands at " + name_of(i.anchor.kind) +
                   " " + std::to_string(i.anchor.ordinal) + ", but its event is another anchor",
               i.anchor.event);
      }
    }
  }

  void check_offloads() {
    for (std::size_t row = 0; row < s_.offloads.size(); ++row) {
      const OffloadId id(row);
      const Offload& offload = s_.offloads[row];
      const Bytes storage_bytes = trace_.storages.bytes[offload.storage.index()];
      if (offload.bytes < 0 || offload.begin < 0 || offload.begin > storage_bytes ||
          offload.bytes > storage_bytes - offload.begin) {
        report(name(id) + " copies bytes that its storage does not have", {}, id);
      }
      if (offload.host_offset < 0 || offload.host_offset % kHostSlotAlignment != 0 ||
          offload.host_offset > s_.host_bytes ||
          offload.bytes > s_.host_bytes - offload.host_offset) {
        report(name(id) + " has a host slot outside the arena or not aligned", {}, id);
      }
      if (!std::is_sorted(offload.saved.begin(), offload.saved.end())) {
        report(name(id) + " lists its saved tensors out of order", {}, id);
      }
      for (const SavedId s : offload.saved) {
        if (s_.offload_of[s.index()] != id || trace_.saved.storage[s.index()] != offload.storage) {
          report(name(id) + " and its saved tensor " + trace_.string(trace_.saved.site[s.index()]) +
                     " do not refer to each other",
                 {}, id);
        }
        ByteRange view = byte_range(trace_, trace_.saved.tensor[s.index()]);
        view.end = std::min(view.end, storage_bytes);
        if (view.size() > 0 &&
            (view.begin < offload.begin || view.end > offload.begin + offload.bytes)) {
          report(name(id) + " does not copy all bytes of " +
                     trace_.string(trace_.saved.site[s.index()]),
                 {}, id);
        }
      }
      for (const SavedId s : index_.saved_of(offload.storage)) {
        if (!s_.offload_of[s.index()].valid()) {
          report(name(id) + " gives up a storage that " +
                     trace_.string(trace_.saved.site[s.index()]) + " keeps",
                 {}, id);
        }
      }
    }
  }

  void check_reloads() {
    for (std::size_t row = 0; row < s_.reloads.size(); ++row) {
      const Reload& reload = s_.reloads[row];
      if (!std::is_sorted(reload.unpacks.begin(), reload.unpacks.end())) {
        report("a reload of " + name(reload.offload) + " lists its unpacks out of order", {},
               reload.offload);
      }
      for (const UnpackId u : reload.unpacks) {
        if (s_.reload_of[u.index()] != ReloadId(row)) {
          report("a reload of " + name(reload.offload) + " and unpack " + std::to_string(u.value) +
                     " do not refer to each other",
                 trace_.unpacks.event[u.index()], reload.offload);
        }
      }
    }
  }

  void check_served() {
    for (std::size_t s = 0; s < s_.offload_of.size(); ++s) {
      const OffloadId o = s_.offload_of[s];
      if (!o.valid()) continue;
      const auto& saved = s_.offloads[o.index()].saved;
      if (std::find(saved.begin(), saved.end(), SavedId(s)) == saved.end()) {
        report(name(o) + " does not list " + trace_.string(trace_.saved.site[s]), {}, o);
      }
    }
    for (std::size_t u = 0; u < s_.reload_of.size(); ++u) {
      const OffloadId o = s_.offload_of[trace_.unpacks.saved[u].index()];
      const ReloadId r = s_.reload_of[u];
      const EventId event = trace_.unpacks.event[u];
      if (!o.valid() && !r.valid()) continue;
      if (!r.valid()) {
        report("unpack " + std::to_string(u) + " of " + name(o) + " has no reload", event, o);
        continue;
      }
      const Reload& reload = s_.reloads[r.index()];
      if (reload.offload != o) {
        report("unpack " + std::to_string(u) + " gets the bytes of " + name(reload.offload), event,
               reload.offload);
      }
      if (std::find(reload.unpacks.begin(), reload.unpacks.end(), UnpackId(u)) ==
          reload.unpacks.end()) {
        report("a reload of " + name(reload.offload) + " does not list unpack " + std::to_string(u),
               event, reload.offload);
      }
    }
  }

  void check_instructions() {
    const auto& list = s_.instructions;
    for (std::size_t i = 1; i < list.size(); ++i) {
      if (place_of(list[i]) < place_of(list[i - 1])) {
        report(std::string("a ") + name_of(list[i].action) + " is listed behind a later one",
               list[i].anchor.event);
      }
    }
    // Rows of the list by what they act on: start_offload, release; start_reload, await, drop.
    std::vector<std::array<std::int32_t, 2>> of_offload(s_.offloads.size(), {-1, -1});
    std::vector<std::array<std::int32_t, 3>> of_reload(s_.reloads.size(), {-1, -1, -1});
    for (std::size_t i = 0; i < list.size(); ++i) {
      if (moves_parameter(list[i].action)) continue;
      const bool leaves =
          list[i].action == Action::start_offload || list[i].action == Action::release;
      const OffloadId o = leaves ? list[i].offload : s_.reloads[list[i].reload.index()].offload;
      const auto step = static_cast<std::size_t>(list[i].action);
      std::int32_t& slot = leaves ? of_offload[list[i].offload.index()][step]
                                  : of_reload[list[i].reload.index()][step - 2];
      if (slot >= 0)
        report(std::string("second ") + name_of(list[i].action) + " of " + name(o),
               list[i].anchor.event, o);
      slot = static_cast<std::int32_t>(i);
    }
    for (std::size_t o = 0; o < of_offload.size(); ++o)
      check_offload_steps(OffloadId(o), of_offload[o]);
    for (std::size_t r = 0; r < of_reload.size(); ++r) {
      check_reload_steps(s_.reloads[r], of_reload[r], of_offload[s_.reloads[r].offload.index()][1]);
    }
  }

  void check_offload_steps(OffloadId id, const std::array<std::int32_t, 2>& at) {
    if (at[0] < 0) report(name(id) + " has no start_offload", {}, id);
    if (at[1] < 0) report(name(id) + " has no release", {}, id);
    if (at[0] >= 0) {
      const Instruction& start = s_.instructions[static_cast<std::size_t>(at[0])];
      if (place_of(start) != start_of(trace_, s_.offloads[id.index()])) {
        report(name(id) + " does not start behind its first pack", start.anchor.event, id);
      }
      if (at[1] >= 0 && at[1] < at[0]) {
        report(name(id) + " is released ahead of its start_offload", start.anchor.event, id);
      }
    }
  }

  void check_reload_steps(const Reload& reload, const std::array<std::int32_t, 3>& at,
                          std::int32_t release) {
    const OffloadId o = reload.offload;
    const EventId event = await_of(trace_, reload).event;
    static constexpr const char* kStep[] = {"start_reload", "await", "drop"};
    for (std::size_t i = 0; i < at.size(); ++i) {
      if (at[i] < 0) report("a reload of " + name(o) + " has no " + kStep[i], event, o);
    }
    if (at[0] >= 0 && release >= 0 && at[0] < release) {
      report("a reload of " + name(o) + " starts ahead of the release", event, o);
    }
    if (at[0] >= 0 && at[1] >= 0 && at[1] < at[0]) {
      report("a reload of " + name(o) + " is awaited ahead of its start", event, o);
    }
    if (at[1] >= 0 &&
        place_of(s_.instructions[static_cast<std::size_t>(at[1])]) > await_of(trace_, reload)) {
      report("a reload of " + name(o) + " is awaited behind its first unpack", event, o);
    }
    if (at[2] >= 0 &&
        place_of(s_.instructions[static_cast<std::size_t>(at[2])]) != drop_of(trace_, reload)) {
      report("a reload of " + name(o) + " is not dropped behind its last unpack", event, o);
    }
  }

  const StepIndex& index_;
  const Trace& trace_;
  const Schedule& s_;
  Structure out_;
};

}  // namespace

Structure check_structure(const StepIndex& index, const Schedule& schedule) {
  return Checker(index, schedule).run();
}

std::string label(const Trace& trace, const Schedule& schedule, OffloadId offload) {
  const SavedId first = schedule.offloads[offload.index()].saved.front();
  return "offload " + std::to_string(offload.value) + " (" +
         trace.string(trace.saved.site[first.index()]) + ")";
}

std::string label(const Trace& trace, const Schedule& schedule, ParameterId parameter) {
  const LayerId layer =
      trace.storages.layer[schedule.parameters[parameter.index()].storage.index()];
  return "parameter " + std::to_string(parameter.value) + " (" +
         (layer.valid() ? trace.string(trace.layers.name[layer.index()]) : "no layer") + ")";
}

}  // namespace stowage::simulator
