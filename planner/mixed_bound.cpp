#include "planner/mixed_bound.h"

#include <algorithm>
#include <cstddef>
#include <map>

#include "simulator/machine/host_lane.h"
#include "simulator/machine/rest_gain.h"

namespace stowage::planner {
namespace {

struct Held {
  Bytes bytes = 0;  // of a parameter, its gradient, its state
  Bytes rounded = 0;
  Nanoseconds work = 0;  // of its update on the device
};

}  // namespace

MixedBound::MixedBound(const simulator::StepIndex& index, const std::vector<StorageId>& may)
    : link_(index.trace().calibration), updates_(2 * index.event_count() + 1) {
  const Trace& trace = index.trace();
  const Storages& storages = trace.storages;
  std::map<StorageId, Held> held;
  Nanoseconds first = index.resident_time().back();
  for (std::size_t s = 0; s < storages.size(); ++s) {
    const StorageId owner = storages.parameter[s].valid() ? storages.parameter[s] : StorageId(s);
    if (storages.storage_class[owner.index()] != StorageClass::parameter) continue;
    const StorageId recorded = index.step().origin(owner).row;
    if (std::find(may.begin(), may.end(), recorded) == may.end()) continue;
    const bool is_gradient = storages.storage_class[s] == StorageClass::gradient;
    if (is_gradient && !storages.alloc_event[s].valid()) continue;  // of the step before
    held[owner].bytes += storages.bytes[s];
    held[owner].rounded += index.rounded_bytes()[s];
    if (!is_gradient) continue;
    first = std::min(first, index.resident_time()[storages.alloc_event[s].index()]);
  }
  Held* updated = nullptr;
  const Events& events = trace.events;
  for (std::size_t e = 0; e < events.size(); ++e) {
    if (events.kind[e] == EventKind::parameter_update_begin) {
      const auto of = held.find(StorageId(events.ref[e]));
      updated = of == held.end() ? nullptr : &of->second;
    }
    if (updated == nullptr) continue;
    updates_[2 * e] = updates_[2 * e + 1] = true;
    updated->work += index.compute_ns(e);
    if (!index.launch_ns().empty()) updated->work += index.launch_ns()[e];
    if (events.kind[e] == EventKind::parameter_update_end) updated = nullptr;
  }
  Nanoseconds all_work = 0;
  for (const auto& [parameter, of] : held) {
    rests_ += std::max<Bytes>(of.rounded - of.bytes, 0);
    all_work += of.work;
    by_work_.push_back({of.bytes, of.work});
  }
  std::stable_sort(by_work_.begin(), by_work_.end(), [](const Update& a, const Update& b) {
    return Wide{a.work} * b.bytes > Wide{b.work} * a.bytes;
  });
  // Compute is never faster than in rests.
  const Ppm boost = std::max<Ppm>(simulator::rest_gain(link_).boost, kPpm);
  const Wide ahead = std::max<Nanoseconds>(first - all_work, 0);
  first_arrival_ = static_cast<Nanoseconds>(ahead * kPpm / boost);
}

Bytes MixedBound::away_in(Nanoseconds step) const {
  const Wide time = std::max<Nanoseconds>(step - first_arrival_, 0);
  return static_cast<Bytes>((time << 30) / simulator::host_update_ns_per_gib(link_)) + 1 + rests_;
}

Nanoseconds MixedBound::work_of(Bytes away) const {
  Nanoseconds work = 0;
  for (const Update& each : by_work_) {
    if (each.bytes > away) {
      return work + static_cast<Nanoseconds>(Wide{each.work} * away / each.bytes) + 1;
    }
    work += each.work;
    away -= each.bytes;
  }
  return work;
}

Nanoseconds MixedBound::shortest_step(const Bound& on_device, Bytes budget,
                                      Nanoseconds most) const {
  Nanoseconds low = 0;
  Nanoseconds high = most;
  Nanoseconds bound = 0;
  for (int i = 0; i <= kHalvings && low <= high; ++i) {
    const Nanoseconds step = std::max(i == 0 ? most : low + (high - low) / 2, bound);
    const Bytes away = away_in(step);
    const Nanoseconds other = on_device(budget + away) - work_of(away);
    bound = std::max(bound, std::min(step, other));
    if (other > step) {
      low = step + 1;
    } else {
      high = step - 1;
    }
  }
  return bound;
}

}  // namespace stowage::planner
