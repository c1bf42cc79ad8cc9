#include "gui/model/lifetime.h"

#include <algorithm>

#include "gui/model/name_search.h"
#include "gui/model/op_products.h"
#include "report/words.h"
#include "simulator/schedule/host_updates.h"
#include "traces/size_text.h"

namespace stowage::gui {
namespace {

using Kind = Selection::Kind;

// The largest of what is there when it ends.
StorageId made_by(const Trace& trace, OpId op) {
  if (!op.valid() || op.index() >= trace.ops.size()) return {};
  const OpProducts products = products_of(trace, op, ops_inside(trace, op));
  return products.kept.empty() ? StorageId() : products.kept.front();
}

// Rows of the planned step.
StorageId storage_of(const Explained& x, const Selection& selection) {
  if (selection.row < 0) return {};
  const auto row = static_cast<std::size_t>(selection.row);
  const simulator::Schedule& schedule = x.simulated->schedule;
  const simulator::ReplayDetail& detail = x.simulated->detail;
  switch (selection.kind) {
    case Kind::op:
      return made_by(x.trace(), OpId(row));
    case Kind::gpu:
      return row < x.trace().gpu.size() ? made_by(x.trace(), x.trace().gpu.op[row]) : StorageId();
    case Kind::saved:
      return row < x.trace().saved.size() ? x.trace().saved.storage[row] : StorageId();
    case Kind::storage:
      return row < x.trace().storages.size() ? StorageId(row) : StorageId();
    case Kind::transfer:
      if (row >= detail.transfers.size()) return {};
      return schedule.tenant(detail.transfers[row].stay).storage;
    case Kind::stall:
      if (row >= x.simulated->result.stalls.size()) return {};
      return schedule.tenant(x.simulated->result.stalls[row].stay).storage;
    case Kind::update:
      if (row >= detail.host_updates.size()) return {};
      return schedule.tenant(detail.host_updates[row].stay).storage;
    default:
      return {};
  }
}

}  // namespace

std::optional<Lifetime> lifetime_of(const Explained& explained, const Selection& selection,
                                    bool recorded, Nanoseconds end) {
  StorageId storage = storage_of(explained, selection);
  if (!storage.valid()) return std::nullopt;
  const StepRowsPtr& rows = explained.simulated->rows;
  if (recorded) {
    const Selection there = in_recording(rows, {Kind::storage, storage.value});
    if (there.row < 0) return std::nullopt;
    storage = StorageId(there.row);
  }
  const Trace& trace = recorded ? explained.simulated->trace->trace : explained.trace();
  const std::vector<Nanoseconds>& time =
      recorded ? trace.events.time : explained.simulated->detail.time;
  const report::AliveSpans& spans = (recorded ? explained.recorded : explained.planned)->spans();
  Lifetime life;
  life.storage = storage;
  life.name = name_of(trace, {Kind::storage, storage.value});
  life.bytes = trace.storages.bytes[storage.index()];
  life.storage_class = trace.storages.storage_class[storage.index()];
  const auto at = [&](report::StepPosition position) {
    return std::min(end, time[spans.event_of(position).index()]);
  };
  for (const report::AliveSpan& span : spans.all()) {
    if (span.storage != storage) continue;
    const Nanoseconds from = span.begin == report::kBefore ? 0 : at(span.begin);
    life.there.push_back({from, span.end == report::kNever ? end : at(span.end)});
  }
  const EventId made = trace.storages.alloc_event[storage.index()];
  const EventId freed = trace.storages.free_event[storage.index()];
  if (made.valid()) life.made = time[made.index()];
  if (freed.valid()) life.freed = time[freed.index()];
  const bool is_own_step = !recorded || !rows;
  const auto uses =
      is_own_step ? explained.uses : std::make_shared<const report::StorageUses>(trace);
  Nanoseconds last = life.made.value_or(0);
  for (const report::StorageUse& use : (*uses)[storage]) {
    life.uses.push_back({time[use.first.index()], std::min(end, time[use.last.index()])});
    last = std::max(last, life.uses.back().end);
  }
  if (life.freed && last < *life.freed) life.dead = TimeRange{last, *life.freed};
  return life;
}

std::string lifetime_text(const Lifetime& lifetime) {
  std::string text =
      lifetime.made ? "made at " + format_time(*lifetime.made) : "older than the step";
  text += ", used " + report::count_of(static_cast<std::int64_t>(lifetime.uses.size()), "time");
  TimeRange idle;
  Nanoseconds busy_until = lifetime.made.value_or(0);
  for (const TimeRange& use : lifetime.uses) {
    if (use.begin - busy_until > idle.duration()) idle = {busy_until, use.begin};
    busy_until = std::max(busy_until, use.end);
  }
  if (idle.duration() > 0) {
    text += ", idle at most " + format_time(idle.duration()) + " from " + format_time(idle.begin);
  }
  if (lifetime.dead) text += ", dead from " + format_time(lifetime.dead->begin);
  return text +
         (lifetime.freed ? ", freed at " + format_time(*lifetime.freed) : ", outlives the step");
}

}  // namespace stowage::gui
