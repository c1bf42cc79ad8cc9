#include "report/peak_content.h"

#include <algorithm>
#include <map>
#include <optional>
#include <tuple>

#include "report/alive.h"
#include "report/alive_spans.h"
#include "report/moment.h"

namespace stowage::report {
namespace {

// Rows under construction, in the order in which they are shown.
class ContentRows {
 public:
  explicit ContentRows(const Trace& trace) : trace_(trace), first_saved_(first_packs(trace)) {}

  void add(const AliveSpan& span) {
    const std::size_t s = span.storage.index();
    const SavedId saved = span.saved.valid() ? span.saved : first_saved_[s];
    const StorageClass storage_class = trace_.storages.storage_class[s];
    const bool older = !trace_.storages.alloc_event[s].valid();
    // What is older than the step belongs where it was registered, whoever saves it.
    LayerId layer = trace_.storages.layer[s];
    if (saved.valid() && !older) layer = trace_.saved.layer[saved.index()];
    const OpId op = trace_.storages.alloc_op[s];
    const std::string op_name =
        older || !op.valid() ? std::string() : trace_.string(trace_.ops.name[op.index()]);
    const std::int32_t order =
        layer.valid() ? trace_.layers.forward_order[layer.index()] : std::int32_t{-1};
    const std::string name_of_layer = layer_name(trace_, layer);
    PeakRow& row = rows_[{storage_class, order, name_of_layer, op_name, span.holding}];
    row.holding = span.holding;
    row.storage_class = storage_class;
    row.layer = name_of_layer;
    row.op = op_name;
    if (saved.valid() && !older) sites_[&row].push_back(saved);
    ++row.storages;
    row.bytes += span.bytes;
  }

  [[nodiscard]] std::vector<PeakRow> take() {
    std::vector<PeakRow> rows;
    for (auto& [key, row] : rows_) {
      std::vector<SavedId>& saved = sites_[&row];
      std::sort(saved.begin(), saved.end());
      for (const SavedId each : saved) {
        std::string site = trace_.string(trace_.saved.site[each.index()]);
        if (row.sites.empty() || row.sites.back() != site) row.sites.push_back(std::move(site));
      }
      rows.push_back(std::move(row));
    }
    return rows;
  }

 private:
  using Key = std::tuple<StorageClass, std::int32_t, std::string, std::string, Holding>;
  const Trace& trace_;
  std::vector<SavedId> first_saved_;
  std::map<Key, PeakRow> rows_;
  std::map<const PeakRow*, std::vector<SavedId>> sites_;
};

}  // namespace

PeakContent peak_content(const simulator::StepIndex& index, const simulator::Schedule& schedule) {
  const Trace& trace = index.trace();
  PeakContent content;
  if (trace.events.size() == 0) return content;
  const AliveSpans spans(trace, schedule);
  const StepPosition peak = spans.highest();
  ContentRows rows(trace);
  for (const AliveSpan& span : spans.all()) {
    if (span.begin > peak || span.end <= peak || span.bytes == 0) continue;
    rows.add(span);
    content.peak_requested += span.bytes;
  }
  content.on_device = rows.take();
  const Moment moment = moment_at(trace, spans.event_of(peak));
  content.op_name = moment.op_name;
  content.layer = moment.layer;
  if (moment.phase) content.phase = stowage::name_of(*moment.phase);

  ContentRows host(trace);
  for (const bool at_home : {true, false}) {
    for (const simulator::Tenant& each : schedule.tenants) {
      if (each.has_own_home != at_home) continue;
      host.add({.holding = Holding::host,
                .storage = each.storage,
                .saved = each.saved.empty() ? SavedId{} : each.saved.front(),
                .bytes = each.bytes});
    }
  }
  content.on_host = host.take();
  return content;
}

}  // namespace stowage::report
