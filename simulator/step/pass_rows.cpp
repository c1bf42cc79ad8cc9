#include "simulator/step/pass_rows.h"

#include <algorithm>
#include <utility>

namespace stowage::simulator {
namespace {

// The event behind the gap that such a row stands in.
std::vector<EventId> behind_gap(const std::vector<EventId>& events, std::size_t count) {
  std::vector<EventId> home;
  home.reserve(events.size());
  for (const EventId event : events) home.emplace_back(std::min(event.index() + 1, count - 1));
  return home;
}

}  // namespace

PassRows::PassRows(const Trace& trace) {
  const std::size_t events = trace.events.size();
  find_op_homes(trace);
  homes(RowTable::gpu) = behind_gap(trace.gpu.event, events);
  homes(RowTable::syncs) = behind_gap(trace.syncs.event, events);
  homes(RowTable::storages) = trace.storages.alloc_event;
  homes(RowTable::saved) = trace.saved.event;
  homes(RowTable::unpacks) = trace.unpacks.event;
  const std::vector<EventId>& op_home = homes(RowTable::ops);
  for (const OpId op : trace.uses.op) homes(RowTable::uses).push_back(op_home[op.index()]);
  find_tensor_homes(trace);
  for (Homes& table : tables_) rank(table, events);
  phase_.resize(events);
  for (std::size_t p = 0; p < trace.phases.size(); ++p) {
    const std::size_t last = trace.phases.last_event[p].index();
    for (std::size_t e = trace.phases.first_event[p].index(); e <= last; ++e) {
      phase_[e] = PhaseId(p);
    }
  }
}

// An op without an op_begin comes with the op ahead of it.
void PassRows::find_op_homes(const Trace& trace) {
  std::vector<EventId>& home = homes(RowTable::ops);
  home.resize(trace.ops.size());
  for (std::size_t e = 0; e < trace.events.size(); ++e) {
    if (trace.events.kind[e] != EventKind::op_begin) continue;
    home[static_cast<std::size_t>(trace.events.ref[e])] = EventId(e);
  }
  EventId before(std::size_t{0});
  for (EventId& event : home) {
    if (!event.valid()) event = before;
    before = event;
  }
}

void PassRows::find_tensor_homes(const Trace& trace) {
  std::vector<EventId>& home = homes(RowTable::tensors);
  home.resize(trace.tensors.size());
  const auto need = [&](TensorId tensor, EventId event) {
    EventId& known = home[tensor.index()];
    if (!known.valid() || event < known) known = event;
  };
  const std::vector<EventId>& op_home = homes(RowTable::ops);
  for (std::size_t t = 0; t < home.size(); ++t) {
    const OpId producer = trace.tensors.producer[t];
    if (producer.valid()) need(TensorId(t), op_home[producer.index()]);
  }
  std::vector<std::pair<std::size_t, EventId>> needs;
  needs.reserve(trace.uses.size() + trace.saved.size());
  for (std::size_t u = 0; u < trace.uses.size(); ++u) {
    needs.emplace_back(trace.uses.tensor[u].index(), op_home[trace.uses.op[u].index()]);
  }
  for (std::size_t s = 0; s < trace.saved.size(); ++s) {
    needs.emplace_back(trace.saved.tensor[s].index(), trace.saved.event[s]);
  }
  for (const auto& [tensor, event] : needs) need(TensorId(tensor), event);
  needs_ = {trace.tensors.size(), needs};
  for (std::size_t t = 0; t < home.size(); ++t) {
    if (home[t].valid()) continue;
    const StorageId of = trace.tensors.storage[t];
    const EventId made = of.valid() ? trace.storages.alloc_event[of.index()] : EventId();
    home[t] = made.valid() ? made : EventId(std::size_t{0});
  }
}

void PassRows::rank(Homes& homes, std::size_t events) {
  std::vector<std::uint32_t> first(events + 1, 0);
  for (const EventId event : homes.home) {
    if (event.valid()) ++first[event.index() + 1];
  }
  for (std::size_t e = 0; e < events; ++e) first[e + 1] += first[e];
  homes.rows.resize(first.back());
  homes.position.assign(homes.home.size(), -1);
  for (std::size_t row = 0; row < homes.home.size(); ++row) {
    if (!homes.home[row].valid()) continue;
    const std::uint32_t position = first[homes.home[row].index()]++;
    homes.rows[position] = static_cast<std::uint32_t>(row);
    homes.position[row] = static_cast<std::int32_t>(position);
  }
}

std::int32_t PassRows::first_at(RowTable table, EventId event) const {
  const Homes& homes = of(table);
  const auto found =
      std::lower_bound(homes.rows.begin(), homes.rows.end(), event,
                       [&](std::uint32_t row, EventId wanted) { return homes.home[row] < wanted; });
  return static_cast<std::int32_t>(found - homes.rows.begin());
}

}  // namespace stowage::simulator
