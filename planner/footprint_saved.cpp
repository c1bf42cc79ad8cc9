// The options for saved tensors.
#include <algorithm>
#include <optional>

#include "planner/again_options.h"
#include "planner/footprint.h"
#include "planner/pins.h"
#include "simulator/lowering/offload_groups.h"
#include "simulator/plan/rule_match.h"
#include "simulator/step/lifetimes.h"

namespace stowage::planner {
namespace {

std::int32_t ahead_of(EventId event) {
  return 2 * event.value;
}
std::int32_t behind(EventId event) {
  return 2 * event.value + 2;
}

simulator::Movement all_offloaded(const simulator::StepIndex& index, bool share) {
  simulator::Decisions decisions;
  decisions.saved.resize(index.trace().saved.size());
  for (auto& decision : decisions.saved) {
    decision.decision = simulator::Decision::offload;
    decision.share = share;
  }
  return simulator::group_offloads(index, decisions);
}

// Options of one way to copy, by storage.
class SavedOptions {
 public:
  SavedOptions(const Footprints& footprints, const simulator::Movement& movement, Choice choice)
      : footprints_(footprints),
        index_(footprints.index()),
        trace_(index_.trace()),
        options_(trace_.storages.size()) {
    for (const simulator::PlacedStay& stay : movement.stays) {
      const simulator::Tenant& tenant = movement.tenants[stay.tenant.index()];
      if (simulator::pre_existing(trace_, tenant.storage)) continue;
      if (stay.is_made) {
        add(tenant, choice);
      } else {
        add(stay, tenant);
      }
    }
  }

  // Null when the storage cannot leave so.
  [[nodiscard]] const Option* of(StorageId storage) const {
    const Option& option = options_[storage.index()];
    return option.choice == Choice::keep ? nullptr : &option;
  }

 private:
  void add(const simulator::Tenant& tenant, Choice choice) {
    Option& option = options_[tenant.storage.index()];
    option.choice = choice;
    // Tenants come in pack order: the last one decides.
    option.spans.assign(1, original(tenant.storage, tenant.saved.back(), choice));
    const EventId pack = trace_.saved.event[tenant.saved.front().index()];
    option.out.push_back({ahead_of(pack), tenant.bytes});
  }

  void add(const simulator::Stay& stay, const simulator::Tenant& tenant) {
    Option& option = options_[tenant.storage.index()];
    const simulator::Hold hold = simulator::hold_of(trace_, stay.unpacks);
    const std::int32_t first = ahead_of(trace_.unpacks.event[stay.unpacks.front().index()]);
    option.spans.push_back({first, hold.outlives ? footprints_.positions() : behind(hold.event),
                            footprints_.buffer_bytes(tenant.bytes)});
    option.back.push_back({first, tenant.bytes});
  }

  // When the original is gone at the earliest: behind its natural free, at the pack when that is
  // earlier. A shared copy is out at the first pack, separate ones at the last.
  [[nodiscard]] FootprintSpan original(StorageId storage, SavedId last, Choice choice) const {
    const SavedId saved = choice == Choice::shared ? index_.saved_of(storage).front() : last;
    const EventId pack = trace_.saved.event[saved.index()];
    const simulator::Hold hold = simulator::hold_of(trace_, storage);
    std::int32_t end = footprints_.positions();
    switch (simulator::leaving(hold, pack)) {
      case simulator::Leaving::behind_hold:
        end = behind(hold.event);
        break;
      case simulator::Leaving::at_eviction:
        end = ahead_of(pack) + 1;
        break;
      case simulator::Leaving::never:
        break;
    }
    return {ahead_of(trace_.storages.alloc_event[storage.index()]) + 1, end,
            footprints_.storage_bytes(storage)};
  }

  const Footprints& footprints_;
  const simulator::StepIndex& index_;
  const Trace& trace_;
  std::vector<Option> options_;  // by storage; `keep`: none
};

// In order of first packs.
std::vector<StorageId> saved_storages(const simulator::StepIndex& index) {
  const Trace& trace = index.trace();
  std::vector<StorageId> storages;
  for (std::size_t s = 0; s < trace.saved.size(); ++s) {
    const StorageId storage = trace.saved.storage[s];
    if (!storage.valid() || index.is_of_segment(SavedId(s))) continue;
    if (index.saved_of(storage).front() == SavedId(s)) {
      storages.push_back(storage);
    }
  }
  return storages;
}

}  // namespace

void Footprints::find_saved(const Allowed& allowed) {
  const Trace& trace = index_->trace();
  const auto moved = [&](bool share) {
    const bool pinned = pinned_ != nullptr && pinned_->offloads();
    return allowed.offload || pinned ? all_offloaded(*index_, share) : simulator::Movement{};
  };
  const SavedOptions shared(*this, moved(true), Choice::shared);
  const SavedOptions separate(*this, moved(false), Choice::separate);
  const AgainOptions again(*this, allowed.recompute);
  for (const StorageId storage : saved_storages(*index_)) {
    const simulator::SavedDecision* const pinned =
        pinned_ != nullptr ? pinned_->of(*index_, storage) : nullptr;
    if (pinned != nullptr) {
      const Option* const leaves = (pinned->share ? shared : separate).of(storage);
      const bool is_kept = pinned->decision == simulator::Decision::keep;
      if (!is_kept && leaves != nullptr) pinned_spans_[storage] = leaves->spans;
      continue;
    }
    const Option* const whole = allowed.offload ? shared.of(storage) : nullptr;
    const Option* const views = allowed.offload ? separate.of(storage) : nullptr;
    const std::optional<Option> made_again = again.of(storage);
    if (whole == nullptr && views == nullptr && !made_again) continue;
    Movable movable;
    movable.storages = {storage};
    movable.leaves = trace.saved.event[index_->saved_of(storage).front().index()];
    const EventId alloc = trace.storages.alloc_event[storage.index()];
    const EventId free = trace.storages.free_event[storage.index()];
    Option keep;
    keep.spans.push_back({ahead_of(alloc) + 1, free.valid() ? ahead_of(free) + 1 : positions_,
                          storage_bytes(storage)});
    movable.options.push_back(std::move(keep));
    if (whole != nullptr) movable.options.push_back(*whole);
    // One view and at most one unpack: the same as shared, which says it shorter.
    const bool same =
        whole != nullptr && views != nullptr && views->out.size() == 1 && views->back.size() <= 1;
    if (views != nullptr && !same) movable.options.push_back(*views);
    if (made_again) movable.options.push_back(*made_again);
    unit_of_[storage.index()] = static_cast<std::int32_t>(units_.size());
    units_.push_back({storage, movable.options});
    movable_.push_back(std::move(movable));
  }
}

}  // namespace stowage::planner
