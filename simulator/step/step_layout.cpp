#include "simulator/step/step_layout.h"

#include <algorithm>

namespace stowage::simulator {
namespace {

std::uint64_t key_of(std::int32_t group, TensorId tensor) {
  return static_cast<std::uint64_t>(group) << 32U | static_cast<std::uint32_t>(tensor.value);
}

}  // namespace

StepLayout::StepLayout(std::shared_ptr<const Trace> recording) {
  const Storages& storages = recording->storages;
  existing_row_.resize(storages.size());
  for (std::size_t s = 0; s < storages.size(); ++s) {
    if (storages.alloc_event[s].valid()) continue;
    existing_row_[s] = StorageId(existing_.size());
    existing_.emplace_back(s);
  }
  add_group(add_source("step", std::move(recording)), {});
}

std::int32_t StepLayout::add_source(const std::string& name, std::shared_ptr<const Trace> trace) {
  for (std::size_t s = 0; s < sources_.size(); ++s) {
    if (sources_[s].trace == trace && sources_[s].name == name) return static_cast<std::int32_t>(s);
  }
  auto rows = std::make_shared<const PassRows>(*trace);
  sources_.push_back({name, std::move(trace), std::move(rows)});
  return static_cast<std::int32_t>(sources_.size()) - 1;
}

std::int32_t StepLayout::add_group(std::int32_t source,
                                   std::vector<std::pair<StorageId, StorageId>> same) {
  std::sort(same.begin(), same.end());
  groups_.push_back({source, std::move(same), {}});
  return static_cast<std::int32_t>(groups_.size()) - 1;
}

void StepLayout::add_piece(std::int32_t group, EventId first, EventId end, std::optional<Pass> pass,
                           std::int32_t micro_batch, std::int32_t owner) {
  Placement placement;
  placement.group = group;
  placement.first = first;
  placement.end = end;
  placement.pass = pass;
  placement.micro_batch = micro_batch;
  placement.owner = owner;
  placements_.push_back(std::move(placement));
}

void StepLayout::clear_pieces() {
  placements_.clear();
  spans_.clear();
}

Status StepLayout::lay_out() {
  if (Status sorted = sort_groups(); !sorted) return sorted;
  for (Placement& placement : placements_) {
    measure(placement);
    placement.borrowed.clear();
    if (placement.group != 0) borrow_needed(placement);
  }
  std::vector<std::int32_t> hosts;  // owners that have their host
  for (Placement& placement : placements_) {
    if (placement.owner < 0) continue;
    if (std::find(hosts.begin(), hosts.end(), placement.owner) != hosts.end()) continue;
    hosts.push_back(placement.owner);
    borrow_replaced(placement.owner, placement);
  }
  for (const ReplacedSpan& span : spans_) {
    if (!span.leaves_out) continue;
    if (std::find(hosts.begin(), hosts.end(), span.owner) != hosts.end()) continue;
    hosts.push_back(span.owner);
    const auto behind =
        std::find_if(placements_.begin(), placements_.end(),
                     [&](const Placement& at) { return at.group == 0 && span.end <= at.first; });
    STOWAGE_ASSERT(behind != placements_.end());  // the step's end, at the latest
    borrow_replaced(span.owner, *behind);
  }
  number_all();
  return Unit{};
}

void StepLayout::lay_out_again(std::vector<Placement> placements, std::vector<ReplacedSpan> spans) {
  placements_ = std::move(placements);
  spans_ = std::move(spans);
  const Status sorted = sort_groups();
  STOWAGE_ASSERT(sorted.ok());
  number_all();
}

void StepLayout::number_all() {
  borrowed_.clear();
  events_ = 0;
  rows_ = {};
  rows_[index_of(RowTable::storages)] = static_cast<std::int32_t>(existing_.size());
  for (Placement& placement : placements_) number(placement);
}

Status StepLayout::sort_groups() {
  for (PieceGroup& group : groups_) group.placements.clear();
  for (std::size_t p = 0; p < placements_.size(); ++p) {
    groups_[index(placements_[p].group)].placements.push_back(static_cast<std::int32_t>(p));
  }
  for (PieceGroup& group : groups_) {
    const auto by_event = [&](std::int32_t a, std::int32_t b) {
      return placements_[index(a)].first < placements_[index(b)].first;
    };
    std::sort(group.placements.begin(), group.placements.end(), by_event);
    for (std::size_t i = 1; i < group.placements.size(); ++i) {
      const Placement& before = placements_[index(group.placements[i - 1])];
      const Placement& here = placements_[index(group.placements[i])];
      if (before.end <= here.first) continue;
      Error error;
      error.code = ErrorCode::bad_input;
      error.message = "event " + std::to_string(here.first.value) + " of pass '" +
                      source_of(here).name + "' is in two pieces of one instance";
      return error;
    }
  }
  return Unit{};
}

void StepLayout::measure(Placement& placement) const {
  const PassRows& rows = *source_of(placement).rows;
  for (std::size_t t = 0; t < kRowTables; ++t) {
    const auto table = static_cast<RowTable>(t);
    placement.from[t] = rows.first_at(table, placement.first);
    placement.count[t] = rows.first_at(table, placement.end) - placement.from[t];
  }
}

// Tensors that the pass makes ahead of the group's pieces, in the first piece that needs them.
void StepLayout::borrow_needed(Placement& placement) const {
  const StepSource& source = source_of(placement);
  const auto is_borrowed = [&](const Placement& of, TensorId tensor) {
    const BorrowedTensor wanted{placement.group, tensor};
    return std::find(of.borrowed.begin(), of.borrowed.end(), wanted) != of.borrowed.end();
  };
  const auto borrow = [&](TensorId tensor) {
    const EventId home = source.rows->home(RowTable::tensors, tensor.index());
    if (placement_of(placement.group, home) >= 0 || is_borrowed(placement, tensor)) return;
    // Of the step, not of the source: the pieces that are measured already.
    for (const Placement* before = placements_.data(); before != &placement; ++before) {
      if (before->group == placement.group && is_borrowed(*before, tensor)) return;
    }
    placement.borrowed.push_back({placement.group, tensor});
  };
  const auto each = [&](RowTable table, const std::vector<TensorId>& tensors) {
    const std::int32_t from = placement.from[index_of(table)];
    const std::int32_t end = from + placement.count[index_of(table)];
    for (std::int32_t p = from; p < end; ++p) borrow(tensors[source.rows->row(table, p)]);
  };
  each(RowTable::uses, source.trace->uses.tensor);
  each(RowTable::saved, source.trace->saved.tensor);
}

// Tensors of the recording that a template replaces and others than it need.
void StepLayout::borrow_replaced(std::int32_t owner, Placement& host) const {
  const PassRows& rows = *sources_.front().rows;
  const auto is_replaced = [&](EventId event) {
    return std::any_of(spans_.begin(), spans_.end(), [&](const ReplacedSpan& span) {
      return span.owner == owner && span.first <= event && event < span.end;
    });
  };
  for (const ReplacedSpan& span : spans_) {
    if (span.owner != owner) continue;
    const std::int32_t end = rows.first_at(RowTable::tensors, span.end);
    for (std::int32_t p = rows.first_at(RowTable::tensors, span.first); p < end; ++p) {
      const TensorId tensor(rows.row(RowTable::tensors, p));
      if (placement_of(0, rows.home(RowTable::tensors, tensor.index())) >= 0) continue;
      const auto needs = rows.needs_of(tensor);
      if (std::all_of(needs.begin(), needs.end(), is_replaced)) continue;
      host.borrowed.push_back({0, tensor});
    }
  }
}

void StepLayout::number(Placement& placement) {
  placement.at = EventId(events_);
  events_ += placement.events();
  placement.to = rows_;
  for (std::size_t t = 0; t < kRowTables; ++t) rows_[t] += placement.count[t];
  std::int32_t& tensors = rows_[index_of(RowTable::tensors)];
  for (const BorrowedTensor& borrowed : placement.borrowed) {
    borrowed_[key_of(borrowed.group, borrowed.tensor)] = TensorId(tensors++);
  }
}

bool StepLayout::leaves_out(EventId recorded) const {
  return std::any_of(spans_.begin(), spans_.end(), [&](const ReplacedSpan& span) {
    return span.leaves_out && span.first <= recorded && recorded < span.end;
  });
}

std::int32_t StepLayout::placement_of(std::int32_t group, EventId event) const {
  const std::vector<std::int32_t>& of = groups_[index(group)].placements;
  const auto behind = std::upper_bound(
      of.begin(), of.end(), event,
      [&](EventId wanted, std::int32_t p) { return wanted < placements_[index(p)].first; });
  if (behind == of.begin()) return -1;
  const std::int32_t found = *std::prev(behind);
  return placements_[index(found)].holds(event) ? found : -1;
}

EventId StepLayout::event(std::int32_t group, EventId event) const {
  const std::int32_t found = placement_of(group, event);
  if (found < 0) return {};
  const Placement& placement = placements_[index(found)];
  return EventId(placement.at.value + event.value - placement.first.value);
}

EventId StepLayout::event_at_or_before(std::int32_t group, EventId event) const {
  const std::vector<std::int32_t>& of = groups_[index(group)].placements;
  auto behind = std::upper_bound(of.begin(), of.end(), event, [&](EventId wanted, std::int32_t p) {
    return wanted < placements_[index(p)].first;
  });
  while (behind != of.begin()) {
    const Placement& placement = placements_[index(*--behind)];
    if (placement.events() == 0) continue;
    const std::int32_t last = std::min(event.value, placement.end.value - 1);
    return EventId(placement.at.value + last - placement.first.value);
  }
  return {};
}

std::int32_t StepLayout::row(RowTable table, std::int32_t group, std::size_t row) const {
  const PassRows& rows = *source_of_group(group).rows;
  const EventId home = rows.home(table, row);
  if (!home.valid()) return -1;
  const std::int32_t found = placement_of(group, home);
  if (found < 0) return -1;
  const Placement& placement = placements_[index(found)];
  return placement.to[index_of(table)] + rows.position(table, row) -
         placement.from[index_of(table)];
}

TensorId StepLayout::tensor(std::int32_t group, TensorId tensor) const {
  const std::int32_t own = row(RowTable::tensors, group, tensor.index());
  if (own >= 0) return TensorId(own);
  const auto found = borrowed_.find(key_of(group, tensor));
  return found == borrowed_.end() ? TensorId() : found->second;
}

const Placement& StepLayout::at(EventId event) const {
  const auto behind =
      std::upper_bound(placements_.begin(), placements_.end(), event,
                       [](EventId wanted, const Placement& p) { return wanted < p.at; });
  return *std::prev(behind);
}

const Placement& StepLayout::at(RowTable table, std::int32_t row) const {
  const auto behind = std::upper_bound(
      placements_.begin(), placements_.end(), row,
      [&](std::int32_t wanted, const Placement& p) { return wanted < p.to[index_of(table)]; });
  return *std::prev(behind);
}

}  // namespace stowage::simulator
