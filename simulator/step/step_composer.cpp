#include "simulator/step/step_composer.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "simulator/step/step_holds.h"
#include "simulator/step/step_names.h"
#include "simulator/step/step_storages.h"
#include "traces/fingerprint.h"

namespace stowage::simulator {
namespace {

class Composer {
 public:
  explicit Composer(const StepLayout& layout)
      : layout_(layout), storages_(layout), names_(layout.sources(), trace_) {}

  Result<Trace> run() {
    if (Status found = storages_.find(); !found) return std::move(found).error();
    add_head();
    for (const StorageId existing : layout_.existing()) {
      add_storage(0, *layout_.sources().front().trace, existing);
    }
    for (const Placement& placement : layout_.placements()) {
      here_ = &placement;
      source_ = layout_.source_of(placement).trace.get();
      source_row_ = layout_.groups()[static_cast<std::size_t>(placement.group)].source;
      add_storages();
      add_events();
      add_phases();
      add_ops();
      add_device_rows();
      add_tensors();
      add_saved();
      add_unpacks();
    }
    finish();
    if (error_) return *std::move(error_);
    return std::move(trace_);
  }

 private:
  void fail(const std::string& text) {
    if (error_) return;
    error_.emplace();
    error_->code = ErrorCode::bad_input;
    error_->message = text;
  }
  [[nodiscard]] std::string in_pass() const {
    return " of pass '" + layout_.sources()[static_cast<std::size_t>(source_row_)].name + "'";
  }

  // What the recording says of the machine and the run. What it measured of its own step (peaks,
  // the allocator's counters, the passes' times) says nothing of another one.
  void add_head() {
    const Trace& recording = *layout_.sources().front().trace;
    trace_.schema = recording.schema;
    trace_.run = recording.run;
    trace_.env = recording.env;
    trace_.clock = recording.clock;
    trace_.quality = recording.quality;
    trace_.calibration = recording.calibration;
  }

  void add_storages() {
    each(RowTable::storages, [&](std::size_t s) {
      add_storage(source_row_, *source_, StorageId(s));
      trace_.storages.alloc_event.back() = here(source_->storages.alloc_event[s]);
    });
  }

  void add_storage(std::int32_t source_row, const Trace& source, StorageId storage) {
    const Storages& from = source.storages;
    const std::size_t s = storage.index();
    Storages& to = trace_.storages;
    to.device.push_back(from.device[s]);
    to.bytes.push_back(from.bytes[s]);
    to.rounded_bytes.push_back(from.rounded_bytes[s]);
    to.storage_class.push_back(from.storage_class[s]);
    to.evidence.push_back(from.evidence[s]);
    to.layer.push_back(names_.layer(source_row, from.layer[s]));
    to.alloc_op.push_back(here_ == nullptr ? OpId() : op(from.alloc_op[s]));
    to.alloc_event.emplace_back();
    to.free_event.emplace_back();
    to.natural_free_event.emplace_back();
  }

  void add_events() {
    const Events& from = source_->events;
    Events& to = trace_.events;
    for (std::size_t e = here_->first.index(); e < here_->end.index(); ++e) {
      if (e > 0) now_ += from.time[e] - from.time[e - 1];
      to.kind.push_back(from.kind[e]);
      to.op.push_back(op(from.op[e]));
      to.time.push_back(now_);
      // A free may stand ahead of the piece that makes its storage: then it is refused later.
      to.ref.push_back(ref_of(e));
    }
  }

  std::int32_t ref_of(std::size_t event) {
    const std::int32_t ref = source_->events.ref[event];
    const auto row = static_cast<std::size_t>(std::max(ref, 0));
    switch (source_->events.kind[event]) {
      case EventKind::alloc:
      case EventKind::free:
      case EventKind::gradient_accumulated:
      case EventKind::parameter_update_begin:
      case EventKind::parameter_update_end:
        return storage(StorageId(row), event).value;
      case EventKind::pack:
        return own(RowTable::saved, row);
      case EventKind::unpack:
        return own(RowTable::unpacks, row);
      case EventKind::layer_forward_begin:
      case EventKind::layer_forward_end:
      case EventKind::layer_backward_begin:
      case EventKind::layer_backward_end:
        return names_.layer(source_row_, LayerId(row)).value;
      case EventKind::op_begin:
      case EventKind::op_end:
        return op_of_event(OpId(row), event).value;
      default:
        return -1;
    }
  }

  // Behind a storage without a row there is no step: any row will do until the error is returned.
  StorageId storage(StorageId of_source, std::size_t event) {
    const StorageId row = storages_.row(here_->group, of_source);
    if (!row.valid()) {
      fail(
          "storage " + std::to_string(of_source.value) + in_pass() + ", which its event " +
          std::to_string(event) +
          " needs, is not in the step: no piece makes it, and it stands for none of the recording");
    }
    return row;
  }

  OpId op_of_event(OpId of_source, std::size_t event) {
    const OpId row = op(of_source);
    if (!row.valid()) {
      fail("event " + std::to_string(event) + in_pass() +
           " belongs to an op that begins in no piece");
    }
    return row;
  }

  // A run of one kind and micro-batch is one phase, whatever it was recorded as.
  void add_phases() {
    const PassRows& rows = *layout_.source_of(*here_).rows;
    const Phases& from = source_->phases;
    Phases& to = trace_.phases;
    phase_of_.resize(trace_.events.size());
    for (std::size_t e = here_->first.index(); e < here_->end.index(); ++e) {
      const PhaseId phase = rows.phase(EventId(e));
      if (!phase.valid()) continue;
      const PhaseKind kind = from.kind[phase.index()];
      const std::int32_t micro_batch =
          here_->micro_batch >= 0 ? here_->micro_batch : from.micro_batch[phase.index()];
      const EventId event = here(EventId(e));
      if (to.size() == 0 || to.kind.back() != kind || to.micro_batch.back() != micro_batch) {
        to.kind.push_back(kind);
        to.micro_batch.push_back(micro_batch);
        to.first_event.push_back(event);
        to.last_event.push_back(event);
      }
      to.last_event.back() = event;
      phase_of_[event.index()] = PhaseId(to.size() - 1);
    }
  }

  void add_ops() {
    const Ops& from = source_->ops;
    Ops& to = trace_.ops;
    each(RowTable::ops, [&](std::size_t o) {
      const EventId home = home_of(RowTable::ops, o);
      to.name.push_back(names_.string(source_row_, from.name[o]));
      to.layer.push_back(names_.layer(source_row_, from.layer[o]));
      to.phase.push_back(phase_of_[here(home).index()]);
      to.parent.push_back(earlier_op(from.parent[o]));
      to.thread.push_back(from.thread[o]);
      to.start.push_back(std::max<Nanoseconds>(from.start[o] + shift(home), 0));
      to.duration.push_back(from.duration[o]);
      to.sequence.push_back(from.sequence[o]);
      to.forward_op.push_back(earlier_op(from.forward_op[o]));
      to.in_place.push_back(from.in_place[o]);
    });
    each(RowTable::uses, [&](std::size_t u) {
      trace_.uses.op.push_back(op(source_->uses.op[u]));
      trace_.uses.tensor.push_back(layout_.tensor(here_->group, source_->uses.tensor[u]));
      trace_.uses.mode.push_back(source_->uses.mode[u]);
    });
  }

  // A device row may have begun long behind its launch, so those of two pieces may overlap.
  void add_device_rows() {
    const Gpu& from = source_->gpu;
    Gpu& to = trace_.gpu;
    each(RowTable::gpu, [&](std::size_t g) {
      const EventId home = home_of(RowTable::gpu, g);
      const Nanoseconds start = std::max<Nanoseconds>(from.start[g] + shift(home), 0);
      to.start.push_back(to.size() == 0 ? start : std::max(start, to.start.back()));
      to.kind.push_back(from.kind[g]);
      to.op.push_back(op(from.op[g]));
      to.name.push_back(names_.string(source_row_, from.name[g]));
      to.correlation.push_back(from.correlation[g]);
      to.stream.push_back(from.stream[g]);
      to.duration.push_back(from.duration[g]);
      to.launch_start.push_back(from.launch_start[g] + shift(home));
      to.launch_duration.push_back(from.launch_duration[g]);
      to.bytes.push_back(from.bytes[g]);
      to.event.push_back(ahead_of(home, from.event[g]));
    });
    each(RowTable::syncs, [&](std::size_t s) {
      const EventId home = home_of(RowTable::syncs, s);
      trace_.syncs.event.push_back(ahead_of(home, source_->syncs.event[s]));
      trace_.syncs.duration.push_back(source_->syncs.duration[s]);
    });
  }

  void add_tensors() {
    each(RowTable::tensors, [&](std::size_t t) { add_tensor(TensorId(t)); });
    for (const BorrowedTensor& borrowed : here_->borrowed) add_tensor(borrowed.tensor);
  }

  void add_tensor(TensorId tensor) {
    const Tensors& from = source_->tensors;
    Tensors& to = trace_.tensors;
    const std::size_t t = tensor.index();
    const StorageId of = from.storage[t];
    to.storage.push_back(of.valid() ? storages_.row(here_->group, of) : of);
    if (of.valid() && !to.storage.back().valid()) {
      fail(
          "tensor " + std::to_string(t) + in_pass() + " is of storage " + std::to_string(of.value) +
          ", which is not in the step: no piece makes it, and it stands for none of the recording");
    }
    to.dtype.push_back(from.dtype[t]);
    to.shape.push_back(names_.list(source_row_, from.shape[t]));
    to.strides.push_back(names_.list(source_row_, from.strides[t]));
    to.offset.push_back(from.offset[t]);
    to.producer.push_back(op(from.producer[t]));
    to.version.push_back(from.version[t]);
  }

  void add_saved() {
    const Saved& from = source_->saved;
    Saved& to = trace_.saved;
    each(RowTable::saved, [&](std::size_t s) {
      to.site.push_back(names_.string(source_row_, from.site[s]));
      to.layer.push_back(names_.layer(source_row_, from.layer[s]));
      to.call.push_back(from.call[s]);
      to.ordinal.push_back(from.ordinal[s]);
      to.tensor.push_back(layout_.tensor(here_->group, from.tensor[s]));
      to.storage.push_back(from.storage[s].valid() ? storages_.row(here_->group, from.storage[s])
                                                   : StorageId());
      to.storage_index.push_back(from.storage_index[s]);
      to.op.push_back(op(from.op[s]));
      to.event.push_back(here(from.event[s]));
      to.version.push_back(from.version[s]);
    });
  }

  void add_unpacks() {
    const Unpacks& from = source_->unpacks;
    Unpacks& to = trace_.unpacks;
    each(RowTable::unpacks, [&](std::size_t u) {
      const SavedId saved(layout_.row(RowTable::saved, here_->group, from.saved[u].index()));
      if (!saved.valid()) {
        fail("unpack " + std::to_string(u) + in_pass() +
             " is of a saved tensor that no piece of its instance packs");
      }
      to.saved.push_back(saved);
      to.op.push_back(op(from.op[u]));
      to.event.push_back(here(from.event[u]));
      to.released_event.emplace_back();
    });
  }

  void finish() {
    if (error_) return;
    find_frees();
    if (error_) return;
    find_holds(layout_, storages_, trace_);
    number_saved_storages();
    add_setup();
    trace_.fingerprint = stowage::fingerprint(trace_);
  }

  void find_frees() {
    Storages& storages = trace_.storages;
    for (std::size_t e = 0; e < trace_.events.size(); ++e) {
      if (trace_.events.kind[e] != EventKind::free) continue;
      EventId& free = storages.free_event[static_cast<std::size_t>(trace_.events.ref[e])];
      if (free.valid()) fail("event " + std::to_string(e) + " of the step frees a storage again");
      free = EventId(e);
    }
    for (std::size_t s = 0; s < storages.size(); ++s) {
      if (storages.free_event[s].valid()) continue;
      const auto [source, row] = origin_of(layout_, StorageId(s));
      const StepSource& of = layout_.sources()[static_cast<std::size_t>(source)];
      if (!of.trace->storages.free_event[row.index()].valid()) continue;
      fail("storage " + std::to_string(row.value) + " of pass '" + of.name +
           "' is freed there, and by no piece of the step");
    }
  }

  // By first pack, as the fingerprint has it.
  void number_saved_storages() {
    std::vector<std::int32_t> number(trace_.storages.size(), -1);
    std::int32_t next = 0;
    for (std::size_t s = 0; s < trace_.saved.size(); ++s) {
      const StorageId storage = trace_.saved.storage[s];
      if (!storage.valid()) continue;
      std::int32_t& known = number[storage.index()];
      if (known < 0) known = next++;
      trace_.saved.storage_index[s] = known;
    }
  }

  void add_setup() {
    trace_.setup = layout_.sources().front().trace->setup;
    EventId before;
    for (std::size_t row = 0; row < trace_.setup.size(); ++row) {
      if (StorageId& of = trace_.setup.storage[row]; of.valid()) of = storages_.recorded(of);
      EventId& event = trace_.setup.event[row];
      if (!event.valid()) continue;
      event = std::max({layout_.event_at_or_before(0, event), before, EventId(std::size_t{0})});
      before = event;
    }
  }

  // Rows of the piece, in order.
  template <class F>
  void each(RowTable table, F&& add) const {
    const PassRows& rows = *layout_.source_of(*here_).rows;
    const std::int32_t from = here_->from[index_of(table)];
    const std::int32_t end = from + here_->count[index_of(table)];
    for (std::int32_t p = from; p < end; ++p) add(rows.row(table, p));
  }
  [[nodiscard]] EventId home_of(RowTable table, std::size_t row) const {
    return layout_.source_of(*here_).rows->home(table, row);
  }
  // The event of the step that one of the piece is.
  [[nodiscard]] EventId here(EventId event) const {
    return EventId(here_->at.value + event.value - here_->first.value);
  }
  // Of what stands in the gap ahead of `home`, whose recorded event was `event`.
  [[nodiscard]] EventId ahead_of(EventId home, EventId event) const {
    return EventId(here(home).value - (home.value - event.value));
  }
  // Time of the step less time of the source at an event of the piece.
  [[nodiscard]] Nanoseconds shift(EventId event) const {
    return trace_.events.time[here(event).index()] - source_->events.time[event.index()];
  }
  [[nodiscard]] std::int32_t own(RowTable table, std::size_t row) const {
    return here_->to[index_of(table)] + layout_.source_of(*here_).rows->position(table, row) -
           here_->from[index_of(table)];
  }
  // None: it is not in the step.
  [[nodiscard]] OpId op(OpId of_source) const {
    if (!of_source.valid()) return of_source;
    if (here_->holds(home_of(RowTable::ops, of_source.index()))) {
      return OpId(own(RowTable::ops, of_source.index()));
    }
    return OpId(layout_.row(RowTable::ops, here_->group, of_source.index()));
  }
  // What is now behind the row that names it is not named: rows name earlier ones.
  [[nodiscard]] OpId earlier_op(OpId of_source) const {
    const OpId row = op(of_source);
    return row.value < static_cast<std::int32_t>(trace_.ops.parent.size()) ? row : OpId();
  }

  const StepLayout& layout_;
  Trace trace_;
  StepStorages storages_;
  StepNames names_;
  std::vector<PhaseId> phase_of_;  // by event of the step
  Nanoseconds now_ = 0;
  const Placement* here_ = nullptr;
  const Trace* source_ = nullptr;
  std::int32_t source_row_ = 0;
  std::optional<Error> error_;
};

}  // namespace

Result<Trace> compose(const StepLayout& layout) {
  return Composer(layout).run();
}

}  // namespace stowage::simulator
