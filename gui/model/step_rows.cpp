#include "gui/model/step_rows.h"

#include <utility>

namespace stowage::gui {
namespace {

using Kind = Selection::Kind;

// By row of the recording, the first row of the step that comes from it.
template <class IdT>
std::vector<IdT> firsts(const simulator::Step& step, std::size_t recorded, std::size_t rows) {
  std::vector<IdT> first(recorded);
  for (std::size_t i = rows; i-- > 0;) {
    const IdT from = step.origin(IdT(i)).row;
    if (from.valid()) first[from.index()] = IdT(i);
  }
  return first;
}

template <class IdT>
Selection selected(Kind kind, IdT row) {
  return row.valid() ? Selection{kind, row.value} : Selection{};
}

}  // namespace

StepRows::StepRows(simulator::Step step) : step_(std::move(step)) {
  const Trace& from = step_.recording();
  const Trace& to = step_.trace();
  events_ = firsts<EventId>(step_, from.events.size(), to.events.size());
  ops_ = firsts<OpId>(step_, from.ops.size(), to.ops.size());
  storages_ = firsts<StorageId>(step_, from.storages.size(), to.storages.size());
  saved_ = firsts<SavedId>(step_, from.saved.size(), to.saved.size());
}

Selection StepRows::in_step(const Selection& recorded) const {
  if (recorded.row < 0) return {};
  const auto row = static_cast<std::size_t>(recorded.row);
  switch (recorded.kind) {
    case Kind::op:
      return selected(Kind::op, ops_[row]);
    case Kind::gpu: {
      const OpId op = step_.recording().gpu.op[row];
      return op.valid() ? selected(Kind::op, ops_[op.index()]) : Selection{};
    }
    case Kind::saved:
      return selected(Kind::saved, saved_[row]);
    case Kind::storage:
      return selected(Kind::storage, storages_[row]);
    case Kind::event:
      return selected(Kind::event, events_[row]);
    case Kind::none:
    case Kind::layer:  // layers are the same
    case Kind::transfer:
    case Kind::stall:
    case Kind::update:
      break;
  }
  return recorded;
}

Selection StepRows::in_recording(const Selection& of_step) const {
  if (of_step.row < 0) return {};
  const auto row = static_cast<std::size_t>(of_step.row);
  switch (of_step.kind) {
    case Kind::op:
      return selected(Kind::op, step_.origin(OpId(row)).row);
    case Kind::gpu: {
      const OpId op = step_.trace().gpu.op[row];
      return op.valid() ? selected(Kind::op, step_.origin(op).row) : Selection{};
    }
    case Kind::saved:
      return selected(Kind::saved, step_.origin(SavedId(row)).row);
    case Kind::storage:
      return selected(Kind::storage, step_.origin(StorageId(row)).row);
    case Kind::event:
      return selected(Kind::event, step_.origin(EventId(row)).row);
    case Kind::none:
    case Kind::layer:
    case Kind::transfer:
    case Kind::stall:
    case Kind::update:
      break;
  }
  return of_step;
}

OpId StepRows::original_of(OpId op) const {
  if (!is_again(op)) return {};
  const OpId from = step_.origin(op).row;
  return from.valid() ? ops_[from.index()] : from;
}

Selection in_step(const StepRowsPtr& rows, const Selection& recorded) {
  return rows ? rows->in_step(recorded) : recorded;
}

Selection in_recording(const StepRowsPtr& rows, const Selection& of_step) {
  return rows ? rows->in_recording(of_step) : of_step;
}

}  // namespace stowage::gui
