#include "simulator/step/model_state_uses.h"

#include <algorithm>

#include "simulator/step/op_spans.h"
#include "simulator/step/step_index.h"

namespace stowage::simulator {
namespace {

class Collector {
 public:
  explicit Collector(const StepIndex& index)
      : index_(index), trace_(index.trace()), row_(trace_.storages.size(), 0) {
    std::int32_t rows = 1;
    for (std::size_t s = 0; s < row_.size(); ++s) {
      if (is_model_state(StorageId(s))) row_[s] = rows++;
    }
    touches_.resize(static_cast<std::size_t>(rows));
    reasons_.resize(static_cast<std::size_t>(rows));
    updates_.resize(static_cast<std::size_t>(rows));
    reasons_.front() = "stays: it is no parameter and no optimizer state";
  }

  void run() {
    index_events();
    add_ops();
    add_saved();
    for (auto& touches : touches_) {
      std::stable_sort(
          touches.begin(), touches.end(),
          [](const ModelStateTouch& a, const ModelStateTouch& b) { return a.begin < b.begin; });
    }
    for (std::size_t s = 0; s < row_.size(); ++s) {
      std::string& known = reasons_[row_of(StorageId(s))];
      if (known.empty()) known = reason(StorageId(s));
    }
  }

  std::vector<std::int32_t> rows() && { return std::move(row_); }
  std::vector<std::vector<ModelStateTouch>> touches() && { return std::move(touches_); }
  std::vector<std::string> reasons() && { return std::move(reasons_); }

 private:
  struct Update {
    EventId begin;
    EventId end;
  };

  [[nodiscard]] bool is_model_state(StorageId storage) const {
    if (!storage.valid()) return false;
    const StorageClass own = trace_.storages.storage_class[storage.index()];
    return own == StorageClass::parameter || own == StorageClass::optimizer_state;
  }
  // Whose update it is written in.
  [[nodiscard]] StorageId parameter_of(StorageId storage) const {
    return trace_.storages.storage_class[storage.index()] == StorageClass::parameter
               ? storage
               : trace_.storages.parameter[storage.index()];
  }

  [[nodiscard]] std::size_t row_of(StorageId storage) const {
    return static_cast<std::size_t>(row_[storage.index()]);
  }

  void index_events() {
    for (std::size_t e = 0; e < trace_.events.size(); ++e) {
      const auto ref = static_cast<std::size_t>(std::max(trace_.events.ref[e], 0));
      switch (trace_.events.kind[e]) {
        case EventKind::parameter_update_begin:
          updates_[row_of(StorageId(ref))].push_back({EventId(e), {}});
          break;
        case EventKind::parameter_update_end:
          if (auto& of = updates_[row_of(StorageId(ref))]; !of.empty()) of.back().end = EventId(e);
          break;
        default:
          break;
      }
    }
    phase_of_.resize(trace_.events.size());
    for (std::size_t p = 0; p < trace_.phases.size(); ++p) {
      const std::size_t last = trace_.phases.last_event[p].index();
      for (std::size_t e = trace_.phases.first_event[p].index(); e <= last; ++e) {
        phase_of_[e] = PhaseId(p);
      }
    }
  }

  void add_ops() {
    const OpSpans spans(trace_);
    for (std::size_t u = 0; u < trace_.uses.size(); ++u) {
      const StorageId storage = trace_.tensors.storage[trace_.uses.tensor[u].index()];
      if (!is_model_state(storage)) continue;
      const OpId op = spans.outermost(trace_.uses.op[u]);
      const EventId begin = spans.begin(op);
      if (!begin.valid()) continue;
      const UseMode mode = trace_.uses.mode[u];
      const bool writes = mode == UseMode::write || mode == UseMode::in_place;
      auto& touches = touches_[row_of(storage)];
      if (!touches.empty() && touches.back().begin == begin) {
        touches.back().writes = touches.back().writes || writes;
        continue;
      }
      ModelStateTouch touch;
      touch.begin = begin;
      const EventId end = spans.end(op);
      touch.end = end.valid() ? end : EventId(trace_.events.size() - 1);
      touch.writes = writes;
      touch.first = {index_.previous_anchor(touch.begin), Side::after};
      touch.last = behind(touch.end);
      touch.phase = phase_of_[touch.begin.index()];
      touch.layer = trace_.ops.layer[op.index()];
      touches.push_back(touch);
    }
  }

  void add_saved() {
    const Saved& saved = trace_.saved;
    for (std::size_t s = 0; s < saved.size(); ++s) {
      if (!is_model_state(saved.storage[s])) continue;
      ModelStateTouch touch;
      touch.begin = touch.end = saved.event[s];
      add_hooked(SavedId(s), touch);
      for (const UnpackId u : index_.unpacks_of(SavedId(s))) {
        const EventId released = trace_.unpacks.released_event[u.index()];
        touch.begin = trace_.unpacks.event[u.index()];
        touch.end = std::max(released, touch.begin);
        touch.ends_behind = true;
        add_hooked(SavedId(s), touch);
        if (released.valid()) continue;
        reasons_[row_of(saved.storage[s])] =
            "stays: what is saved of it at " + trace_.string(saved.site[s]) + " outlives the step";
      }
    }
  }

  void add_hooked(SavedId saved, ModelStateTouch touch) {
    touch.first = {touch.begin, Side::before};
    const std::size_t gone = touch.end.index() + (touch.ends_behind ? 1 : 0);
    touch.last = behind(EventId(std::min(gone, trace_.events.size() - 1)));
    touch.phase = phase_of_[touch.begin.index()];
    touch.layer = trace_.saved.layer[saved.index()];
    touches_[row_of(trace_.saved.storage[saved.index()])].push_back(touch);
  }

  // At the step's end it goes ahead of that, so that the next one can come there.
  [[nodiscard]] Place behind(EventId event) const {
    const EventId anchor = index_.next_anchor(event);
    const bool at_end = anchor.index() + 1 == trace_.events.size() && event < anchor;
    return {anchor, at_end ? Side::before : Side::after};
  }

  [[nodiscard]] std::string reason(StorageId storage) const {
    const Storages& storages = trace_.storages;
    const std::size_t s = storage.index();
    if (storages.device[s] != 0) return "stays: it is not on the training device";
    if (storages.alloc_event[s].valid()) return "stays: it is made in the step";
    if (storages.free_event[s].valid()) return "stays: it is freed in the step";
    if (storages.bytes[s] == 0) return "stays: it has no bytes";
    const auto& touches = touches_[row_of(storage)];
    const StorageId parameter = parameter_of(storage);
    const std::vector<Update> none;
    const auto& updates = parameter.valid() ? updates_[row_of(parameter)] : none;
    if (touches.empty()) return "stays: the step does not use it";
    for (const ModelStateTouch& touch : touches) {
      if (!touch.writes) continue;
      const bool announced = std::any_of(updates.begin(), updates.end(), [&](const Update& update) {
        return update.begin <= touch.begin && touch.end <= update.end;
      });
      if (announced) continue;
      if (!touch.phase.valid() || trace_.phases.kind[touch.phase.index()] != PhaseKind::optimizer) {
        return "stays: the step writes it outside the optimizer";
      }
      return "stays: the recording does not say when the optimizer updates it";
    }
    return {};
  }

  const StepIndex& index_;
  const Trace& trace_;
  std::vector<PhaseId> phase_of_;  // by event
  std::vector<std::int32_t> row_;  // as ModelStateUses::row_
  std::vector<std::vector<Update>> updates_;
  std::vector<std::vector<ModelStateTouch>> touches_;
  std::vector<std::string> reasons_;
};

}  // namespace

ModelStateUses::ModelStateUses(const StepIndex& index) {
  Collector collector(index);
  collector.run();
  row_ = std::move(collector).rows();
  touches_ = std::move(collector).touches();
  reasons_ = std::move(collector).reasons();
}

}  // namespace stowage::simulator
