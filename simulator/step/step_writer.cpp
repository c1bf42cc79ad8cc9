#include "simulator/step/step_writer.h"

#include <algorithm>

#include "traces/columns.h"

namespace stowage::simulator {

void StepWriter::resize() {
  const auto size = [](auto& table, std::size_t rows) {
    visit_columns(table, [&](const char*, auto& column, Rule) { column.resize(rows); });
  };
  size(trace_.events, layout_.event_count());
  size(trace_.ops, layout_.row_count(RowTable::ops));
  size(trace_.gpu, layout_.row_count(RowTable::gpu));
  size(trace_.syncs, layout_.row_count(RowTable::syncs));
  size(trace_.storages, layout_.row_count(RowTable::storages));
  size(trace_.tensors, layout_.row_count(RowTable::tensors));
  size(trace_.uses, layout_.row_count(RowTable::uses));
  size(trace_.saved, layout_.row_count(RowTable::saved));
  size(trace_.unpacks, layout_.row_count(RowTable::unpacks));
}

void StepWriter::fail(const std::string& text) {
  if (error_) return;
  error_.emplace();
  error_->code = ErrorCode::bad_input;
  error_->message = text;
}

void StepWriter::stand_at(const Placement& placement) {
  here_ = &placement;
  source_ = layout_.source_of(placement).trace.get();
  rows_ = layout_.source_of(placement).rows.get();
  source_row_ = layout_.groups()[static_cast<std::size_t>(placement.group)].source;
}

std::string StepWriter::in_pass() const {
  return " of pass '" + layout_.sources()[static_cast<std::size_t>(source_row_)].name + "'";
}

void StepWriter::existing_storages() {
  source_ = layout_.sources().front().trace.get();
  source_row_ = 0;
  for (std::size_t row = 0; row < layout_.existing().size(); ++row) {
    storage(layout_.existing()[row].index(), row);
    const StorageId owner = source_->storages.parameter[layout_.existing()[row].index()];
    const auto at = std::find(layout_.existing().begin(), layout_.existing().end(), owner);
    if (owner.valid() && at != layout_.existing().end()) {
      trace_.storages.parameter[row] =
          StorageId(static_cast<std::size_t>(at - layout_.existing().begin()));
    }
  }
}

void StepWriter::piece(const Placement& placement) {
  for (EventId e = placement.first; e < placement.end; ++e.value) event(placement, e);
  for (std::size_t t = 0; t < kRowTables; ++t) {
    for (std::int32_t i = 0; i < placement.count[t]; ++i) {
      const auto table = static_cast<RowTable>(t);
      row(table, placement, layout_.source_of(placement).rows->row(table, placement.from[t] + i));
    }
  }
  borrowed(placement);
}

void StepWriter::borrowed(const Placement& placement) {
  for (const BorrowedTensor& each : placement.borrowed) {
    stand_at(placement);
    source_row_ = layout_.groups()[static_cast<std::size_t>(each.group)].source;
    source_ = layout_.source_of_group(each.group).trace.get();
    tensor(each.group, each.tensor.index(), layout_.tensor(each.group, each.tensor).index());
  }
  here_ = nullptr;
}

void StepWriter::event(const Placement& placement, EventId event) {
  if (here_ != &placement) stand_at(placement);
  Events& to = trace_.events;
  const std::size_t row = here(event).index();
  to.kind[row] = source_->events.kind[event.index()];
  to.op[row] = op_row(source_->events.op[event.index()]);
  to.ref[row] = ref_of(event.index());
}

void StepWriter::row(RowTable table, const Placement& placement, std::size_t row) {
  stand_at(placement);
  const auto to = static_cast<std::size_t>(own(table, row));
  switch (table) {
    case RowTable::ops:
      return op(row, to);
    case RowTable::gpu:
      return gpu(row, to);
    case RowTable::syncs:
      trace_.syncs.event[to] = ahead_of(home_of(table, row), source_->syncs.event[row]);
      trace_.syncs.duration[to] = source_->syncs.duration[row];
      return;
    case RowTable::storages:
      storage(row, to);
      trace_.storages.alloc_op[to] = op_row(source_->storages.alloc_op[row]);
      trace_.storages.alloc_event[to] = here(source_->storages.alloc_event[row]);
      if (const StorageId owner = source_->storages.parameter[row]; owner.valid()) {
        trace_.storages.parameter[to] = storages_.row(placement.group, owner);
      }
      return;
    case RowTable::tensors:
      return tensor(placement.group, row, to);
    case RowTable::uses:
      trace_.uses.op[to] = op_row(source_->uses.op[row]);
      trace_.uses.tensor[to] = layout_.tensor(placement.group, source_->uses.tensor[row]);
      trace_.uses.mode[to] = source_->uses.mode[row];
      return;
    case RowTable::saved:
      return saved(row, to);
    case RowTable::unpacks:
      return unpack(row, to);
  }
}

std::int32_t StepWriter::ref_of(std::size_t event) {
  const std::int32_t ref = source_->events.ref[event];
  const auto row = static_cast<std::size_t>(std::max(ref, 0));
  switch (source_->events.kind[event]) {
    case EventKind::alloc:
    case EventKind::free:
    case EventKind::gradient_accumulated:
    case EventKind::parameter_update_begin:
    case EventKind::parameter_update_end:
      return storage_of(StorageId(row), event).value;
    case EventKind::pack:
      return own(RowTable::saved, row);
    case EventKind::unpack:
      return own(RowTable::unpacks, row);
    case EventKind::layer_forward_begin:
    case EventKind::layer_forward_end:
    case EventKind::layer_backward_begin:
    case EventKind::layer_backward_end:
    case EventKind::recompute_begin:
    case EventKind::recompute_end:
      return names_.layer(source_row_, LayerId(row)).value;
    case EventKind::op_begin:
    case EventKind::op_end:
      return op_of_event(OpId(row), event).value;
    default:
      return -1;
  }
}

StorageId StepWriter::storage_of(StorageId storage, std::size_t event) {
  const StorageId row = storages_.row(here_->group, storage);
  if (!row.valid()) {
    fail("storage " + std::to_string(storage.value) + in_pass() + ", which its event " +
         std::to_string(event) +
         " needs, is not in the step: no piece makes it, and it stands for none of the recording");
  }
  return row;
}

OpId StepWriter::op_of_event(OpId op, std::size_t event) {
  const OpId row = op_row(op);
  if (!row.valid()) {
    fail("event " + std::to_string(event) + in_pass() + " is of an op that begins in no piece");
  }
  return row;
}

// None: it is not in the step.
OpId StepWriter::op_row(OpId op) const {
  if (!op.valid()) return op;
  if (here_->holds(home_of(RowTable::ops, op.index()))) {
    return OpId(own(RowTable::ops, op.index()));
  }
  return OpId(layout_.row(RowTable::ops, here_->group, op.index()));
}

// Rows of ops name earlier ones; what is behind them in this step is not named.
OpId StepWriter::earlier_op(OpId op, std::size_t row) const {
  const OpId found = op_row(op);
  return found.value < static_cast<std::int32_t>(row) ? found : OpId();
}

void StepWriter::op(std::size_t from, std::size_t to) {
  const Ops& source = source_->ops;
  Ops& ops = trace_.ops;
  ops.name[to] = names_.string(source_row_, source.name[from]);
  ops.layer[to] = names_.layer(source_row_, source.layer[from]);
  ops.parent[to] = earlier_op(source.parent[from], to);
  ops.thread[to] = source.thread[from];
  const EventId home = home_of(RowTable::ops, from);
  const Nanoseconds behind = source.start[from] - source_->events.time[home.index()];
  ops.start[to] = std::max<Nanoseconds>(trace_.events.time[here(home).index()] + behind, 0);
  ops.duration[to] = source.duration[from];
  ops.sequence[to] = source.sequence[from];
  ops.forward_op[to] = earlier_op(source.forward_op[from], to);
  ops.in_place[to] = source.in_place[from];
  ops.primitive[to] = source.primitive[from];
}

void StepWriter::gpu(std::size_t from, std::size_t to) {
  const Gpu& source = source_->gpu;
  Gpu& gpu = trace_.gpu;
  const EventId home = home_of(RowTable::gpu, from);
  gpu.kind[to] = source.kind[from];
  gpu.op[to] = op_row(source.op[from]);
  gpu.name[to] = names_.string(source_row_, source.name[from]);
  gpu.correlation[to] = source.correlation[from];
  gpu.stream[to] = source.stream[from];
  gpu.duration[to] = source.duration[from];
  gpu.launch_start[to] = source.launch_start[from] + trace_.events.time[here(home).index()] -
                         source_->events.time[home.index()];
  gpu.launch_duration[to] = source.launch_duration[from];
  gpu.bytes[to] = source.bytes[from];
  gpu.event[to] = ahead_of(home, source.event[from]);
}

void StepWriter::device_starts(const Placement& placement, Nanoseconds& least) {
  stand_at(placement);
  const std::size_t table = index_of(RowTable::gpu);
  for (std::int32_t i = 0; i < placement.count[table]; ++i) {
    const std::size_t from = rows_->row(RowTable::gpu, placement.from[table] + i);
    const EventId home = home_of(RowTable::gpu, from);
    const Nanoseconds shift =
        trace_.events.time[here(home).index()] - source_->events.time[home.index()];
    least = std::max(source_->gpu.start[from] + shift, least);
    trace_.gpu.start[static_cast<std::size_t>(placement.to[table] + i)] = least;
  }
}

void StepWriter::storage(std::size_t from, std::size_t to) {
  const Storages& source = source_->storages;
  Storages& storages = trace_.storages;
  storages.device[to] = source.device[from];
  storages.bytes[to] = source.bytes[from];
  storages.rounded_bytes[to] = source.rounded_bytes[from];
  storages.storage_class[to] = source.storage_class[from];
  storages.evidence[to] = source.evidence[from];
  storages.layer[to] = names_.layer(source_row_, source.layer[from]);
  storages.alloc_op[to] = OpId();
  storages.alloc_event[to] = EventId();
  storages.free_event[to] = EventId();
  storages.natural_free_event[to] = EventId();
  storages.parameter[to] = StorageId();
}

void StepWriter::tensor(std::int32_t group, std::size_t from, std::size_t to) {
  const Tensors& source = source_->tensors;
  Tensors& tensors = trace_.tensors;
  const StorageId of = source.storage[from];
  tensors.storage[to] = of.valid() ? storages_.row(group, of) : of;
  if (of.valid() && !tensors.storage[to].valid()) {
    fail("tensor " + std::to_string(from) + in_pass() + " is of storage " +
         std::to_string(of.value) +
         ", which is not in the step: no piece makes it, and it stands for none of the recording");
  }
  tensors.dtype[to] = source.dtype[from];
  tensors.shape[to] = names_.list(source_row_, source.shape[from]);
  tensors.strides[to] = names_.list(source_row_, source.strides[from]);
  tensors.offset[to] = source.offset[from];
  const OpId producer = source.producer[from];
  tensors.producer[to] =
      producer.valid() ? OpId(layout_.row(RowTable::ops, group, producer.index())) : producer;
  tensors.version[to] = source.version[from];
  tensors.item_bytes[to] = source.item_bytes[from];
}

void StepWriter::saved(std::size_t from, std::size_t to) {
  const Saved& source = source_->saved;
  Saved& saved = trace_.saved;
  const StorageId of = source.storage[from];
  saved.site[to] = names_.string(source_row_, source.site[from]);
  saved.layer[to] = names_.layer(source_row_, source.layer[from]);
  saved.call[to] = source.call[from];
  saved.ordinal[to] = source.ordinal[from];
  saved.tensor[to] = layout_.tensor(here_->group, source.tensor[from]);
  saved.storage[to] = of.valid() ? storages_.row(here_->group, of) : of;
  saved.storage_index[to] = source.storage_index[from];
  saved.op[to] = op_row(source.op[from]);
  saved.event[to] = here(source.event[from]);
  saved.version[to] = source.version[from];
}

void StepWriter::unpack(std::size_t from, std::size_t to) {
  const Unpacks& source = source_->unpacks;
  const SavedId saved(layout_.row(RowTable::saved, here_->group, source.saved[from].index()));
  if (!saved.valid()) {
    fail("unpack " + std::to_string(from) + in_pass() +
         " is of a saved tensor that no piece of its instance packs");
  }
  trace_.unpacks.saved[to] = saved;
  trace_.unpacks.op[to] = op_row(source.op[from]);
  trace_.unpacks.event[to] = here(source.event[from]);
  trace_.unpacks.released_event[to] = EventId();
}

}  // namespace stowage::simulator
