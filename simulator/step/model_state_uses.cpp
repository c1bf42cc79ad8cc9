#include "simulator/step/model_state_uses.h"

#include <algorithm>
#include <map>
#include <set>

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
    previous_.resize(static_cast<std::size_t>(rows));
    is_only_freed_.resize(static_cast<std::size_t>(rows));
    reasons_.front() = "stays: it is no parameter, no optimizer state and no gradient";
  }

  void run() {
    const OpSpans spans(trace_);
    index_events();
    add_makings(spans);
    add_ops(spans);
    add_saved();
    add_accumulations();
    add_reduction();
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
  std::vector<StorageId> previous() && { return std::move(previous_); }
  std::vector<bool> only_freed() && { return std::move(is_only_freed_); }

 private:
  struct Update {
    EventId begin;
    EventId end;
  };

  [[nodiscard]] bool is_model_state(StorageId storage) const {
    if (!storage.valid()) return false;
    const StorageClass own = trace_.storages.storage_class[storage.index()];
    return own == StorageClass::parameter || own == StorageClass::optimizer_state ||
           own == StorageClass::gradient;
  }
  [[nodiscard]] bool is_gradient(StorageId storage) const {
    return trace_.storages.storage_class[storage.index()] == StorageClass::gradient;
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
    const Storages& storages = trace_.storages;
    for (std::size_t s = 0; s < row_.size(); ++s) {
      if (!is_gradient(StorageId(s)) || !storages.parameter[s].valid()) continue;
      gradients_[storages.parameter[s]].emplace_back(s);
    }
    for (std::size_t e = 0; e < trace_.events.size(); ++e) {
      const auto ref = static_cast<std::size_t>(std::max(trace_.events.ref[e], 0));
      switch (trace_.events.kind[e]) {
        case EventKind::parameter_update_begin:
          updates_[row_of(StorageId(ref))].push_back({EventId(e), {}});
          break;
        case EventKind::parameter_update_end:
          if (auto& of = updates_[row_of(StorageId(ref))]; !of.empty()) of.back().end = EventId(e);
          break;
        case EventKind::gradient_accumulated:
          accumulations_.emplace_back(e);
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

  // What an op returns is no use of it.
  void add_makings(const OpSpans& spans) {
    for (std::size_t s = 0; s < row_.size(); ++s) {
      const EventId made = trace_.storages.alloc_event[s];
      if (!is_gradient(StorageId(s)) || !made.valid()) continue;
      const OpId op = spans.outermost(trace_.storages.alloc_op[s]);
      ModelStateTouch touch;
      touch.begin = touch.end = made;
      if (op.valid() && spans.is_known(op) && spans.begin(op) < made && made < spans.end(op)) {
        touch.begin = spans.begin(op);
        touch.end = spans.end(op);
      }
      touch.writes = true;
      touch.first = {index_.previous_anchor(touch.begin), Side::after};
      touch.last = behind(touch.end);
      touch.phase = phase_of_[made.index()];
      touch.layer = trace_.storages.layer[s];
      touches_[row_of(StorageId(s))].push_back(touch);
    }
  }

  void add_accumulations() {
    for (const EventId event : accumulations_) {
      const auto of = gradients_.find(StorageId(trace_.events.ref[event.index()]));
      if (of == gradients_.end()) continue;
      for (const StorageId gradient : of->second) {
        const EventId made = trace_.storages.alloc_event[gradient.index()];
        if (!made.valid() || event < made) continue;
        if (has_accumulated_.insert(gradient).second) {
          // Until then autograd holds it, and may yet add to it.
          ModelStateTouch& making = touches_[row_of(gradient)].front();
          making.end = event;
          making.last = behind(event);
          continue;
        }
        ModelStateTouch touch;
        touch.begin = touch.end = event;
        touch.first = {index_.previous_anchor(event), Side::after};
        touch.last = behind(event);
        touch.phase = phase_of_[event.index()];
        touch.layer = trace_.storages.layer[gradient.index()];
        touches_[row_of(gradient)].push_back(touch);
      }
    }
  }

  // Ranks have the same gradients only then.
  void add_reduction() {
    const EventId event = index_.step().gradients_reduced_at();
    if (!event.valid()) return;
    for (std::size_t s = 0; s < row_.size(); ++s) {
      const EventId made = trace_.storages.alloc_event[s];
      if (!is_gradient(StorageId(s)) || !made.valid() || event < made) continue;
      ModelStateTouch touch;
      touch.begin = touch.end = event;
      touch.writes = true;
      touch.first = {index_.previous_anchor(event), Side::after};
      touch.last = behind(event);
      touch.phase = phase_of_[event.index()];
      touch.layer = trace_.storages.layer[s];
      touches_[row_of(StorageId(s))].push_back(touch);
    }
  }

  void add_ops(const OpSpans& spans) {
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
      if (is_gradient(saved.storage[s])) {
        reasons_[row_of(saved.storage[s])] = "stays: it is saved for backward";
      }
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

  [[nodiscard]] std::string reason(StorageId storage) {
    const Storages& storages = trace_.storages;
    const std::size_t s = storage.index();
    if (storages.device[s] != 0) return "stays: it is not on the training device";
    if (is_gradient(storage)) return reason_of_gradient(storage);
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

  [[nodiscard]] std::string reason_of_gradient(StorageId storage) {
    const Storages& storages = trace_.storages;
    const std::size_t s = storage.index();
    if (!storages.alloc_event[s].valid()) {
      return storages.free_event[s].valid() ? "stays: the step before made it"
                                            : "stays: it is kept from step to step";
    }
    if (storages.bytes[s] == 0) return "stays: it has no bytes";
    if (!storages.parameter[s].valid()) {
      return "stays: the recording does not say whose gradient it is";
    }
    if (!has_accumulated_.contains(storage)) {
      return "stays: the recording does not say when it has accumulated";
    }
    const bool is_freed = storages.free_event[s].valid();
    is_only_freed_[row_of(storage)] = is_freed && gradients_.at(storages.parameter[s]).size() == 1;
    if (is_freed) return "stays: it is freed in the step";
    StorageId previous;
    for (const StorageId other : gradients_.at(storages.parameter[s])) {
      if (other == storage) continue;
      if (previous.valid()) return "stays: its parameter has several gradients";
      previous = other;
    }
    if (!previous.valid() && is_updated_on_host(storages.parameter[s])) return {};
    const std::size_t p = previous.valid() ? previous.index() : s;
    const EventId freed = storages.free_event[p];
    if (!previous.valid() || storages.device[p] != 0 || storages.alloc_event[p].valid() ||
        !freed.valid() || freed > storages.alloc_event[s] ||
        storages.bytes[p] != storages.bytes[s]) {
      return "stays: the step frees none as large of the same parameter ahead of it";
    }
    if (!touches_[row_of(previous)].empty())
      return "stays: the step uses the one of the step before";
    previous_[row_of(storage)] = previous;
    return {};
  }

  [[nodiscard]] bool is_updated_on_host(StorageId parameter) const {
    const std::vector<StorageId>& all = index_.step().host_updates();
    return !all.empty() &&
           std::find(all.begin(), all.end(), index_.step().origin(parameter).row) != all.end();
  }

  const StepIndex& index_;
  const Trace& trace_;
  std::vector<PhaseId> phase_of_;  // by event
  std::vector<std::int32_t> row_;  // as ModelStateUses::row_
  std::vector<std::vector<Update>> updates_;
  std::vector<std::vector<ModelStateTouch>> touches_;
  std::vector<std::string> reasons_;
  std::vector<StorageId> previous_;
  std::vector<bool> is_only_freed_;
  std::map<StorageId, std::vector<StorageId>> gradients_;  // by parameter
  std::vector<EventId> accumulations_;
  std::set<StorageId> has_accumulated_;
};

}  // namespace

ModelStateUses::ModelStateUses(const StepIndex& index) {
  Collector collector(index);
  collector.run();
  row_ = std::move(collector).rows();
  touches_ = std::move(collector).touches();
  reasons_ = std::move(collector).reasons();
  previous_ = std::move(collector).previous();
  is_only_freed_ = std::move(collector).only_freed();
}

}  // namespace stowage::simulator
