#include "gui/model/explained.h"

#include <utility>

namespace stowage::gui {

Explained::Explained(SimulatedPtr of)
    : simulated(std::move(of)),
      stories(report::storage_stories(trace(), simulated->schedule, simulated->result,
                                      simulated->detail)),
      stalls(report::explain_stalls(simulated->trace->index, simulated->schedule, simulated->result,
                                    simulated->detail, simulated->plan().budget.device)),
      planned(trace(), simulated->schedule),
      recorded(trace()) {
  stall_row.assign(simulated->result.stalls.size(), -1);
  std::vector<Nanoseconds> by_offload(simulated->schedule.offloads.size(), 0);
  for (std::size_t i = 0; i < stalls.size(); ++i) {
    stall_row[static_cast<std::size_t>(stalls[i].stall)] = static_cast<std::int32_t>(i);
    if (stalls[i].offload.valid()) by_offload[stalls[i].offload.index()] += stalls[i].duration;
  }
  saved_stall.assign(trace().saved.size(), 0);
  const std::vector<OffloadId>& served_by = simulated->schedule.offload_of;
  for (std::size_t i = 0; i < served_by.size(); ++i) {
    if (served_by[i].valid()) saved_stall[i] = by_offload[served_by[i].index()];
  }
  for (const std::string& note : simulated->notes) {
    const auto colon = note.find(": ");
    const bool has_site = colon != std::string::npos && !note.starts_with("/") &&
                          note.find(' ') > colon && note.find('#') < colon;
    notes[has_site ? note.substr(0, colon) : std::string()].push_back(
        has_site ? note.substr(colon + 2) : note);
  }
}

Nanoseconds Explained::stall_of(const StreamingLayer& layer) const {
  Nanoseconds sum = 0;
  for (const StorageId storage : layer.storages) sum += stories[storage.index()].stall;
  return sum;
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
      [simulated](const JobContext&) { return std::make_shared<const Explained>(simulated); },
      [this](ExplainedPtr explained) {
        current_ = std::move(explained);
        Q_EMIT changed();
      });
}

}  // namespace stowage::gui
