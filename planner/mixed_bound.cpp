#include "planner/mixed_bound.h"

#include <algorithm>
#include <cstddef>
#include <map>
#include <set>
#include <utility>

#include "simulator/machine/host_lane.h"
#include "simulator/machine/launch_pace.h"
#include "simulator/machine/rest_gain.h"

namespace stowage::planner {
namespace {

struct Held {
  Bytes bytes = 0;  // of a parameter, its gradient, its state
  Bytes rounded = 0;
  Nanoseconds work = 0;  // of its update on the device
};

// At its slowest, behind a wait.
Nanoseconds slow_launch(const simulator::StepIndex& index, std::size_t event) {
  if (index.launch_ns().empty()) return 0;
  const Nanoseconds launch = std::max(index.launch_ns()[event], index.hooked_launch_ns()[event]);
  const Ppm speed =
      std::clamp(index.trace().calibration.woken_launch, simulator::LaunchPace::kSlowest, kPpm);
  return static_cast<Nanoseconds>(Wide{launch} * kPpm / speed) + 1;
}

}  // namespace

MixedBound::MixedBound(const simulator::StepIndex& index, const std::vector<StorageId>& may)
    : link_(index.trace().calibration), updates_(2 * index.event_count() + 1) {
  const Trace& trace = index.trace();
  const Storages& storages = trace.storages;
  std::map<StorageId, Held> held;
  std::set<LayerId> layers;
  Nanoseconds first = index.resident_time().back();
  for (std::size_t s = 0; s < storages.size(); ++s) {
    const StorageId owner = storages.parameter[s].valid() ? storages.parameter[s] : StorageId(s);
    if (storages.storage_class[owner.index()] != StorageClass::parameter) continue;
    const StorageId recorded = index.step().origin(owner).row;
    if (std::find(may.begin(), may.end(), recorded) == may.end()) continue;
    const bool is_gradient = storages.storage_class[s] == StorageClass::gradient;
    if (is_gradient && !storages.alloc_event[s].valid()) continue;  // of the step before
    if (storages.layer[owner.index()].valid()) layers.insert(storages.layer[owner.index()]);
    held[owner].bytes += storages.bytes[s];
    held[owner].rounded += index.rounded_bytes()[s];
    if (!is_gradient) continue;
    first = std::min(first, index.resident_time()[storages.alloc_event[s].index()]);
  }
  is_of_several_ = layers.size() > 1;
  Nanoseconds compute = 0;
  Nanoseconds both = 0;  // of the event that both take the longest for, compute or launch
  Held* updated = nullptr;
  const Events& events = trace.events;
  for (std::size_t e = 0; e < events.size(); ++e) {
    if (events.kind[e] == EventKind::parameter_update_begin) {
      const auto of = held.find(StorageId(events.ref[e]));
      updated = of == held.end() ? nullptr : &of->second;
    }
    if (updated == nullptr) continue;
    updates_[2 * e] = updates_[2 * e + 1] = true;
    has_syncs_ = has_syncs_ || index.syncs_at(e);
    compute += index.compute_ns(e);
    const Nanoseconds launch = slow_launch(index, e);
    updated->work += std::max(index.compute_ns(e), launch);
    both = std::max(both, std::min(index.compute_ns(e), launch));
    if (events.kind[e] == EventKind::parameter_update_end) {
      updated->work += std::exchange(both, 0);
      updated = nullptr;
    }
  }
  Nanoseconds all_work = 0;
  for (const auto& [parameter, of] : held) {
    rests_ += std::max<Bytes>(of.rounded - of.bytes, 0);
    all_work += of.work;
    if (of.bytes > 0 || of.work > 0) by_work_.push_back({of.bytes, of.work});
  }
  std::stable_sort(by_work_.begin(), by_work_.end(), [](const Update& a, const Update& b) {
    return Wide{a.work} * b.bytes > Wide{b.work} * a.bytes;
  });
  // Compute is never faster than in rests.
  const Ppm boost = std::max<Ppm>(simulator::rest_gain(link_).boost, kPpm);
  const auto at_least = [&](Nanoseconds time) {
    return static_cast<Nanoseconds>(Wide{std::max<Nanoseconds>(time, 0)} * kPpm / boost);
  };
  first_arrival_ = at_least(first - all_work);
  least_compute_ = at_least(index.compute_until().back() - compute);
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
  Nanoseconds bound = std::min(least_compute_, most);
  if (has_syncs_) return bound;
  Nanoseconds low = 0;
  Nanoseconds high = most;
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
