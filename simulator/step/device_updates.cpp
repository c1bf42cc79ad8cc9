#include "simulator/step/device_updates.h"

#include <algorithm>
#include <cstddef>
#include <optional>
#include <utility>

#include "simulator/step/op_spans.h"
#include "simulator/step/step_index.h"

namespace stowage::simulator {
namespace {

// From parameter_update_begin to parameter_update_end, both included.
struct Update {
  StorageId parameter;
  EventId begin;
  EventId end;
  [[nodiscard]] bool has(EventId event) const {
    return event.valid() && begin <= event && event <= end;
  }
};

// The last event of the update: where a gradient ends right behind it, that is the update's, too.
EventId last_of(const Trace& trace, const Update& update) {
  const EventId next(update.end.value + 1);
  if (next.index() >= trace.events.size() || trace.events.kind[next.index()] != EventKind::free) {
    return update.end;
  }
  const StorageId freed(trace.events.ref[next.index()]);
  const bool is_gradient = trace.storages.storage_class[freed.index()] == StorageClass::gradient &&
                           trace.storages.parameter[freed.index()] == update.parameter;
  return is_gradient ? next : update.end;
}

// In order of events.
std::vector<Update> updates_of(const Events& events) {
  std::vector<Update> updates;
  for (std::size_t e = 0; e < events.size(); ++e) {
    if (events.kind[e] == EventKind::parameter_update_begin) {
      updates.push_back({StorageId(events.ref[e]), EventId(e), {}});
    } else if (events.kind[e] == EventKind::parameter_update_end && !updates.empty()) {
      updates.back().end = EventId(e);
    }
  }
  return updates;
}

class Reasons {
 public:
  explicit Reasons(const StepIndex& index)
      : index_(index), trace_(index.trace()), updates_(updates_of(trace_.events)) {}

  std::map<StorageId, std::string> run() && {
    for (const Update& update : updates_) {
      const auto [known, is_first] = reasons_.try_emplace(update.parameter);
      known->second = is_first ? reason(update) : "stays: it is updated several times";
    }
    check_events();
    check_storages();
    check_uses();
    return std::move(reasons_);
  }

 private:
  [[nodiscard]] const Update* update_at(EventId event) const {
    const auto behind =
        std::upper_bound(updates_.begin(), updates_.end(), event,
                         [](EventId at, const Update& update) { return at < update.begin; });
    if (behind == updates_.begin()) return nullptr;
    const Update& update = *(behind - 1);
    return update.has(event) ? &update : nullptr;
  }

  void stays(const Update& update, const char* why) {
    std::string& known = reasons_[update.parameter];
    if (known.empty()) known = why;
  }

  [[nodiscard]] PhaseKind phase_at(EventId event) const {
    const Phases& phases = trace_.phases;
    const auto behind =
        std::upper_bound(phases.first_event.begin(), phases.first_event.end(), event);
    if (behind == phases.first_event.begin()) return PhaseKind::data;
    return phases.kind[static_cast<std::size_t>(behind - phases.first_event.begin()) - 1];
  }

  [[nodiscard]] std::string reason(const Update& update) {
    if (trace_.run.optimizer.starts_with(kPythonOptimizer)) {
      return "stays: its optimizer's arithmetic is Python's";
    }
    if (!update.end.valid()) return "stays: the recording does not say when its update ends";
    const PhaseKind phase = phase_at(update.begin);
    if (phase != PhaseKind::optimizer && phase != PhaseKind::backward) {
      return "stays: its update is neither behind backward nor in it";
    }
    const ModelStateUses& uses = index_.model_state_uses();
    if (const std::string& why = uses.reason_to_stay(update.parameter); !why.empty()) return why;
    if (is_used_behind(update, update.parameter)) {
      return "stays: the step uses it behind its update";
    }
    if (is_its_own_only(update, update.parameter)) return "stays: nothing but its update uses it";
    const Storages& storages = trace_.storages;
    int gradients = 0;
    for (std::size_t s = 0; s < storages.size(); ++s) {
      if (storages.parameter[s] != update.parameter) continue;
      const StorageId storage(s);
      const bool is_gradient = storages.storage_class[s] == StorageClass::gradient;
      const bool is_of_step_before =
          !storages.alloc_event[s].valid() && storages.free_event[s].valid();
      if (is_gradient && is_of_step_before) continue;
      gradients += is_gradient ? 1 : 0;
      const bool goes_with_it = phase == PhaseKind::backward && uses.is_only_freed(storage);
      if (goes_with_it && !is_freed_behind(update, storage)) {
        return "stays: its gradient is not freed right behind its update";
      }
      const std::string& why = uses.reason_to_stay(storage);
      if (!goes_with_it && !why.empty()) {
        return (is_gradient ? "stays: of its gradient, " : "stays: of its state, ") +
               why.substr(std::string("stays: ").size());
      }
      if (is_gradient && is_used_ahead(update, storage)) {
        return "stays: the step uses its gradient between backward and its update";
      }
      if (is_gradient && is_used_behind(update, storage)) {
        return "stays: the step uses its gradient behind its update";
      }
      if (!is_gradient && !is_its_own_only(update, storage)) {
        return "stays: the step uses its state outside its update";
      }
    }
    return gradients == 1 ? "" : "stays: the recording does not say which gradient is its own";
  }

  [[nodiscard]] bool is_freed_behind(const Update& update, StorageId gradient) const {
    const EventId last = last_of(trace_, update);
    return last != update.end && trace_.storages.free_event[gradient.index()] == last;
  }

  [[nodiscard]] bool is_its_own_only(const Update& update, StorageId storage) const {
    const auto& touches = index_.model_state_uses().touches_of(storage);
    return std::all_of(touches.begin(), touches.end(), [&](const ModelStateTouch& touch) {
      return update.begin <= touch.begin && touch.end <= update.end;
    });
  }

  // By what looks at all gradients: clipping, a gradient scaler.
  [[nodiscard]] bool is_used_ahead(const Update& update, StorageId storage) const {
    const auto& touches = index_.model_state_uses().touches_of(storage);
    return std::any_of(touches.begin(), touches.end(), [&](const ModelStateTouch& touch) {
      return touch.begin < update.begin && phase_at(touch.begin) == PhaseKind::optimizer;
    });
  }

  [[nodiscard]] bool is_used_behind(const Update& update, StorageId storage) const {
    const auto& touches = index_.model_state_uses().touches_of(storage);
    return std::any_of(touches.begin(), touches.end(), [&](const ModelStateTouch& touch) {
      return update.begin < touch.end && !(update.begin <= touch.begin && touch.end <= update.end);
    });
  }

  void check_events() {
    for (const Update& update : updates_) {
      for (EventId e = update.begin; e < update.end; ++e.value) {
        const EventKind kind = trace_.events.kind[e.index()];
        if (kind != EventKind::pack && kind != EventKind::unpack) continue;
        stays(update, "stays: its update saves or uses saved tensors");
      }
    }
  }

  void check_storages() {
    const Storages& storages = trace_.storages;
    for (std::size_t s = 0; s < storages.size(); ++s) {
      const EventId made = storages.alloc_event[s];
      const EventId freed = storages.free_event[s];
      const Update* const making = made.valid() ? update_at(made) : nullptr;
      const Update* const freeing = freed.valid() ? update_at(freed) : nullptr;
      if (making == freeing) continue;
      if (making != nullptr) stays(*making, "stays: its update makes what outlives it");
      if (freeing != nullptr) stays(*freeing, "stays: its update frees what it did not make");
    }
  }

  void check_uses() {
    const OpSpans spans(trace_);
    const Storages& storages = trace_.storages;
    for (std::size_t u = 0; u < trace_.uses.size(); ++u) {
      const EventId begin = spans.begin(trace_.uses.op[u]);
      const Update* const update = begin.valid() ? update_at(begin) : nullptr;
      const StorageId storage = trace_.tensors.storage[trace_.uses.tensor[u].index()];
      if (update == nullptr || !storage.valid() || storage == update->parameter) continue;
      const std::size_t s = storage.index();
      if (storages.parameter[s] == update->parameter) continue;
      if (update->has(storages.alloc_event[s])) continue;
      stays(*update, "stays: its update uses what is not its own");
    }
  }

  const StepIndex& index_;
  const Trace& trace_;
  const std::vector<Update> updates_;
  std::map<StorageId, std::string> reasons_;
};

}  // namespace

DeviceUpdates::DeviceUpdates(const StepIndex& index) : reasons_(Reasons(index).run()) {}

std::vector<StorageId> DeviceUpdates::parameters() const {
  std::vector<StorageId> parameters;
  for (const auto& [parameter, reason] : reasons_) parameters.push_back(parameter);
  return parameters;
}

const std::string& DeviceUpdates::reason_to_stay(StorageId parameter) const {
  static const std::string none = "stays: the step does not update it";
  const auto found = reasons_.find(parameter);
  return found == reasons_.end() ? none : found->second;
}

std::vector<StorageId> host_updates(const Trace& recording, const std::vector<bool>& wanted) {
  std::vector<StorageId> updates;
  if (std::find(wanted.begin(), wanted.end(), true) == wanted.end()) return updates;
  const StepIndex index(recording);
  const DeviceUpdates on_device(index);
  for (const StorageId parameter : on_device.parameters()) {
    if (!wanted[parameter.index()]) continue;
    if (on_device.reason_to_stay(parameter).empty()) updates.push_back(parameter);
  }
  return updates;
}

StepTemplate leave_out_updates(const Trace& trace, const std::vector<StorageId>& parameters) {
  StepTemplate out;
  out.leaves_out = true;
  for (const Update& update : updates_of(trace.events)) {
    if (std::find(parameters.begin(), parameters.end(), update.parameter) == parameters.end()) {
      continue;
    }
    out.replacements.push_back({update.begin, EventId(last_of(trace, update).value + 1), {}});
  }
  return out;
}

}  // namespace stowage::simulator
