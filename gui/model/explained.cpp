#include "gui/model/explained.h"

#include <algorithm>
#include <utility>

namespace stowage::gui {

namespace {

std::shared_ptr<const report::AliveIndex> planned_index(const Simulated& simulated) {
  return std::make_shared<const report::AliveIndex>(simulated.step_trace(), simulated.schedule);
}

// What refers to its trace can be used again for that very one alone.
bool of_same_trace(const Simulated& simulated, const Explained* before) {
  return before != nullptr && before->simulated->trace == simulated.trace;
}

bool of_same_step(const Simulated& simulated, const Explained* before) {
  return of_same_trace(simulated, before) && before->simulated->rows == simulated.rows;
}

std::shared_ptr<const report::AliveIndex> recorded_index(
    const Simulated& simulated, const std::shared_ptr<const report::AliveIndex>& planned,
    const Explained* before) {
  if (of_same_trace(simulated, before)) return before->recorded;
  if (simulated.schedule.instructions.empty() && !simulated.rows) return planned;
  return std::make_shared<const report::AliveIndex>(simulated.trace->trace);
}

std::shared_ptr<const std::vector<Nanoseconds>> times_on_device(const Simulated& simulated,
                                                                const Explained* before) {
  if (of_same_trace(simulated, before)) return before->device_times;
  const TraceData& data = *simulated.trace;
  std::vector<Nanoseconds> times = data.trace.events.time;
  Nanoseconds end = times.empty() ? 0 : times.back();
  if (data.trace.gpu.size() > 0) {
    simulator::ReplayDetail detail;
    end = simulator::replay(data.index, simulator::resident_schedule(data.index), &detail).step_ns;
    times = std::move(detail.time);
  }
  times.push_back(end);
  return std::make_shared<const std::vector<Nanoseconds>>(std::move(times));
}

// Another machine is another trace with the same step in it.
std::shared_ptr<const PlanTree> tree_of(const Simulated& simulated, const Explained* before) {
  const TracePtr& trace = simulated.trace;
  const bool same_step = before != nullptr &&
                         (before->simulated->trace == trace ||
                          before->simulated->trace->trace.run.uuid == trace->trace.run.uuid) &&
                         before->simulated->trace->trace.saved.size() == trace->trace.saved.size();
  return same_step ? before->tree : std::make_shared<const PlanTree>(trace);
}

}  // namespace

void RowFigures::add_uses(const RowFigures& of) {
  if (of.first >= 0 && (first < 0 || of.first < first)) first = of.first;
  last = std::max(last, of.last);
}

Explained::Explained(SimulatedPtr of, const Explained* before)
    : simulated(std::move(of)),
      stories(trace(), simulated->schedule, simulated->result, simulated->detail,
              of_same_step(*simulated, before) ? &before->stories : nullptr),
      stalls(report::explain_stalls(*simulated->index, simulated->schedule, simulated->result,
                                    simulated->detail, simulated->plan().budget.device)),
      waits(stall_waits(*simulated->index, simulated->result, simulated->detail)),
      planned(planned_index(*simulated)),
      uses(of_same_step(*simulated, before) ? before->uses
                                            : std::make_shared<const report::StorageUses>(trace())),
      recorded(recorded_index(*simulated, planned, before)),
      device_times(times_on_device(*simulated, before)),
      prices(of_same_trace(*simulated, before) ? before->prices
                                               : std::make_shared<const Prices>(simulated->trace)),
      tree(tree_of(*simulated, before)) {
  stall_row.assign(simulated->result.stalls.size(), -1);
  std::vector<Nanoseconds> by_tenant(simulated->schedule.tenants.size(), 0);
  for (std::size_t i = 0; i < stalls.size(); ++i) {
    stall_row[static_cast<std::size_t>(stalls[i].stall)] = static_cast<std::int32_t>(i);
    const simulator::Stay& stay = simulated->schedule.stays[stalls[i].stay.index()];
    by_tenant[stay.tenant.index()] += stalls[i].duration;
  }
  saved_stall.assign(trace().saved.size(), 0);
  const std::vector<TenantId>& served_by = simulated->schedule.tenant_of;
  for (std::size_t i = 0; i < served_by.size(); ++i) {
    if (served_by[i].valid()) saved_stall[i] = by_tenant[served_by[i].index()];
  }
  for (const std::string& note : simulated->notes) {
    const auto colon = note.find(": ");
    const bool has_site = colon != std::string::npos && !note.starts_with("/") &&
                          note.find(' ') > colon && note.find('#') < colon;
    notes[has_site ? note.substr(0, colon) : std::string()].push_back(
        has_site ? note.substr(colon + 2) : note);
  }
  add_figures();
}

std::int32_t Explained::parent_of(std::int32_t row) const {
  return tree->rows[static_cast<std::size_t>(row)].parent;
}

// By storage of the recording: of those of the step that are it, or are it again.
std::vector<RowFigures> Explained::figures_of_storages() const {
  std::vector<RowFigures> figures_of(simulated->trace->trace.storages.size());
  const auto time_of = [&](EventId event) {
    return event.valid() ? simulated->detail.time[event.index()] : -1;
  };
  const auto original = [&](StorageId storage) {
    return simulated->rows ? simulated->rows->step().origin(storage).row : storage;
  };
  for (std::size_t i = 0; i < trace().storages.size(); ++i) {
    const StorageId from = original(StorageId(i));
    if (!from.valid()) continue;
    figures_of[from.index()].add_uses(
        {time_of(stories.first_use(StorageId(i))), time_of(stories.last_use(StorageId(i))), 0});
  }
  for (const report::StorageStory& story : stories.moving()) {
    const StorageId from = original(story.storage);
    if (from.valid()) figures_of[from.index()].stall += story.stall;
  }
  return figures_of;
}

void Explained::add_figures() {
  figures.assign(tree->rows.size(), {});
  const std::vector<RowFigures> of_storage = figures_of_storages();
  const Trace& recording = simulated->trace->trace;
  for (std::size_t i = 0; i < tree->rows.size(); ++i) {
    const PlanRow& row = tree->rows[i];
    RowFigures& own = figures[i];
    if (row.kind == PlanRowKind::saved) {
      const StorageId storage = recording.saved.storage[row.saved.index()];
      if (storage.valid()) own.add_uses(of_storage[storage.index()]);
      const Selection at = in_step(simulated->rows, {Selection::Kind::saved, row.saved.value});
      if (at.row >= 0) own.stall = saved_stall[static_cast<std::size_t>(at.row)];
    }
    if (row.streaming >= 0) {
      for (const StorageId storage : tree->streaming_of(row).storages) {
        own.add_uses(of_storage[storage.index()]);
        own.stall += of_storage[storage.index()].stall;
      }
      for (std::int32_t at = row.parent; at >= 0; at = parent_of(at)) {
        figures[static_cast<std::size_t>(at)].stall += own.stall;
      }
    }
  }
  // From the innermost layer on that has all that save the storage.
  const std::vector<std::int32_t> home = tree->home_of_storages();
  for (std::size_t i = 0; i < home.size(); ++i) {
    for (std::int32_t at = home[i]; at >= 0; at = parent_of(at)) {
      figures[static_cast<std::size_t>(at)].add_uses(of_storage[i]);
    }
  }
  // A copy that serves several saved tensors is in the figures of each of them, in a layer's once.
  for (const report::StallRow& stall : stalls) {
    const std::vector<SavedId>& saved = simulated->schedule.tenant(stall.stay).saved;
    if (saved.empty()) continue;
    // What a segment is given has no row, its layer may have one.
    const Selection first =
        in_recording(simulated->rows, {Selection::Kind::saved, saved.front().value});
    std::int32_t at = first.row >= 0
                          ? parent_of(tree->row_of_saved[static_cast<std::size_t>(first.row)])
                          : tree->row_of_layer[trace().saved.layer[saved.front().index()].index()];
    for (; at >= 0; at = parent_of(at)) {
      figures[static_cast<std::size_t>(at)].stall += stall.duration;
    }
  }
}

Explanations::Explanations(PlanDocument& document, QObject* parent)
    : QObject(parent), document_(document), job_(this) {
  connect(&document_, &PlanDocument::opened, this, [this] {
    // What explains another trace is of no use.
    if (!current_ || (document_.current() && current_->simulated->trace == document_.trace())) {
      return;
    }
    current_.reset();
    Q_EMIT changed();
  });
  connect(&document_, &PlanDocument::changed, this, &Explanations::follow);
  follow();
}

void Explanations::follow() {
  const SimulatedPtr& simulated = document_.current();
  if (!simulated) {
    job_.cancel();
    if (!current_) return;
    current_.reset();
    Q_EMIT changed();
    return;
  }
  if (current_ && current_->simulated == simulated && !job_.busy()) return;
  job_.run<ExplainedPtr>(
      tr("Explaining"),
      [simulated, before = current_](const JobContext&) {
        return std::make_shared<const Explained>(simulated, before.get());
      },
      [this](ExplainedPtr explained) {
        current_ = std::move(explained);
        Q_EMIT changed();
      });
}

}  // namespace stowage::gui
