#include "gui/model/prices.h"

#include <algorithm>
#include <utility>

#include "gui/model/plan_edits.h"
#include "simulator/machine/link_model.h"
#include "traces/size_text.h"

namespace stowage::gui {

Prices::Prices(TracePtr trace)
    : data_(std::move(trace)), segments_(data_->trace), ops_(data_->trace) {}

Price Prices::of(SavedId saved) const {
  Price price;
  const Trace& trace = data_->trace;
  const StorageId storage = trace.saved.storage[saved.index()];
  std::vector<std::string> sites{trace.string(trace.saved.site[saved.index()])};
  for (std::size_t i = 0; storage.valid() && i < trace.saved.size(); ++i) {
    if (trace.saved.storage[i] == storage && i != saved.index()) {
      sites.push_back(trace.string(trace.saved.site[i]));
    }
  }
  const auto chains = ops_.find(sites);
  if (chains) {
    const std::vector<Nanoseconds>& work = data_->index.compute_until();
    price.compute = 0;
    for (const simulator::Segment& chain : *chains) {
      for (const OpId op : chain.ops) {
        const auto [begin, end] = ops_.events_of(op);
        *price.compute += work[end.index()] - work[begin.index()];
      }
    }
  } else {
    price.why_not = chains.error().message;
  }
  add_link({saved}, price);
  return price;
}

Price Prices::of(LayerId layer) const {
  Price price;
  const Trace& trace = data_->trace;
  const std::string& name = trace.string(trace.layers.name[layer.index()]);
  const std::vector<Nanoseconds>& work = data_->index.compute_until();
  for (const auto& call : data_->calls) {
    if (call.layer != name) continue;
    const auto segment = segments_.find(call.name);
    if (!segment) {
      price.compute.reset();
      price.why_not = segment.error().message;
      break;
    }
    const EventId last = trace.saved.event[segment->last_needed.index()];
    price.compute = price.compute.value_or(0) + work[last.index()] - work[segment->first.index()];
  }
  if (!price.compute && price.why_not.empty()) price.why_not = name + " is no layer that is called";
  add_link(saved_in(trace, layer), price);
  return price;
}

void Prices::add_link(const std::vector<SavedId>& rows, Price& price) const {
  const Trace& trace = data_->trace;
  const Calibration& link = trace.calibration;
  std::vector<StorageId> storages;
  for (const SavedId row : rows) {
    const StorageId of = trace.saved.storage[row.index()];
    const bool moves = of.valid() && trace.storages.alloc_event[of.index()].valid() &&
                       trace.storages.device[of.index()] == 0;
    if (moves) storages.push_back(of);
  }
  if (storages.empty() || !simulator::is_usable(link.d2h) || !simulator::is_usable(link.h2d))
    return;
  std::sort(storages.begin(), storages.end());
  storages.erase(std::unique(storages.begin(), storages.end()), storages.end());
  price.out = price.back = 0;
  for (const StorageId of : storages) {
    *price.out += simulator::transfer_ns(link.d2h, trace.storages.bytes[of.index()]);
    *price.back += simulator::transfer_ns(link.h2d, trace.storages.bytes[of.index()]);
  }
}

std::string recompute_text(const Price& price) {
  return price.compute ? format_time(*price.compute) + " of compute"
                       : "not possible: " + price.why_not;
}

std::string offload_text(const Price& price) {
  if (!price.out) return "frees nothing: all of it is older than the step";
  return format_time(*price.out + *price.back) + " of link: " + format_time(*price.out) + " out, " +
         format_time(*price.back) + " back";
}

}  // namespace stowage::gui
