#include "simulator/lowering/offload_groups.h"

#include <algorithm>
#include <cstdint>
#include <span>
#include <string>
#include <utility>

#include "simulator/schedule/saved_tensor_tenant.h"
#include "simulator/schedule/tenant_kind.h"
#include "traces/result.h"

namespace stowage::simulator {
namespace {

class Grouper {
 public:
  Grouper(const StepIndex& index, const Decisions& decisions, const std::vector<bool>& streamed)
      : index_(index), trace_(index.trace()), decisions_(decisions), streamed_(streamed) {}

  Movement run() && {
    for (std::size_t s = 0; s < trace_.saved.size(); ++s) {
      const SavedId saved(s);
      if (!wants(saved)) continue;
      const StorageId storage = trace_.saved.storage[s];
      if (!storage.valid()) {
        note(saved,
             "stays: it is no plain tensor in the training device's memory, or its op writes to it "
             "once it is saved");
        continue;
      }
      // A storage is handled at the first of its saved tensors that wants to move.
      const auto& all = index_.saved_of(storage);
      if (saved != *std::find_if(all.begin(), all.end(), [&](SavedId i) { return wants(i); })) {
        continue;
      }
      if (const std::string reason = reason_to_stay(storage); !reason.empty()) {
        for (const SavedId i : all) {
          if (wants(i)) note(i, reason);
        }
        continue;
      }
      add(storage);
    }
    sort_tenants();
    add_stays();
    std::stable_sort(
        out_.notes.begin(), out_.notes.end(),
        [](const LoweringNote& a, const LoweringNote& b) { return a.saved < b.saved; });
    return std::move(out_);
  }

 private:
  [[nodiscard]] const SavedDecision& decision(SavedId s) const {
    return decisions_.saved[s.index()];
  }
  [[nodiscard]] bool wants(SavedId s) const {
    return decision(s).decision == Decision::offload && !index_.is_of_segment(s);
  }
  [[nodiscard]] const std::string& site(SavedId s) const {
    return trace_.string(trace_.saved.site[s.index()]);
  }
  void note(SavedId s, const std::string& text) { out_.notes.push_back({s, text}); }

  // First and last event at which the storage's saved tensors are unpacked; -1 for none.
  [[nodiscard]] EventId last_unpack(StorageId storage) const {
    EventId last;
    for (const SavedId s : index_.saved_of(storage)) {
      for (const UnpackId u : index_.unpacks_of(s)) {
        last = std::max(last, trace_.unpacks.event[u.index()]);
      }
    }
    return last;
  }
  [[nodiscard]] EventId first_unpack(StorageId storage) const {
    EventId first(index_.event_count());
    for (const SavedId s : index_.saved_of(storage)) {
      for (const UnpackId u : index_.unpacks_of(s)) {
        first = std::min(first, trace_.unpacks.event[u.index()]);
      }
    }
    return first.index() == index_.event_count() ? EventId() : first;
  }

  [[nodiscard]] std::string reason_to_stay(StorageId storage) const {
    if (!streamed_.empty() && streamed_[storage.index()]) return "stays: its parameter streams";
    if (trace_.storages.device[storage.index()] != 0) {
      return "stays: its storage is not on the training device";
    }
    const auto& all = index_.saved_of(storage);
    const SavedDecision& first = decision(all.front());
    for (const SavedId s : all) {
      if (!wants(s)) return "stays: its storage is also saved at " + site(s) + ", which is kept";
      const SavedDecision& other = decision(s);
      if (other.share != first.share || other.copy_out != first.copy_out ||
          other.copy_in != first.copy_in) {
        return "stays: its storage is saved at " + site(all.front()) + " and at " + site(s) +
               ", which are copied in different ways";
      }
      if (trace_.saved.version[s.index()] != trace_.saved.version[all.front().index()]) {
        return "stays: its storage is saved at " + site(all.front()) +
               " and, changed in place, at " + site(s);
      }
    }
    // What a backward of backward saves is the reload buffer, which is no longer this storage.
    if (const EventId used = first_unpack(storage); used.valid()) {
      const SavedId last = all.back();
      if (trace_.saved.event[last.index()] > used) {
        return "stays: its storage is saved again, at " + site(last) + ", after it was unpacked";
      }
    }
    const EventId packed = trace_.saved.event[all.front().index()];
    const EventId needed = last_unpack(storage);
    const auto& writes = index_.writes_of(storage);
    const auto write = std::upper_bound(writes.begin(), writes.end(), packed);
    if (write != writes.end() && *write < needed) {
      return "stays: its storage is written after it was saved, before it is needed again";
    }
    return {};
  }

  void add(StorageId storage) {
    const auto& all = index_.saved_of(storage);
    note_useless(storage);
    if (decision(all.front()).share) {
      add_tenant(storage, all);
    } else {
      for (const SavedId& s : all) add_tenant(storage, {&s, 1});
    }
  }

  void note_useless(StorageId storage) {
    const auto row = storage.index();
    const EventId natural = trace_.storages.natural_free_event[row];
    const EventId unpack = first_unpack(storage);
    std::string why;
    if (!trace_.storages.alloc_event[row].valid()) {
      why = "frees nothing: its storage existed before the step";
    } else if (!natural.valid()) {
      why = "frees nothing: its storage outlives the step";
    } else if (unpack.valid() && natural >= unpack) {
      why = "frees nothing: the model itself holds its storage until it is unpacked";
    } else {
      return;
    }
    for (const SavedId s : index_.saved_of(storage)) note(s, why);
  }

  void add_tenant(StorageId storage, std::span<const SavedId> saved) {
    ByteRange range;
    for (const SavedId s : saved) {
      ByteRange view = byte_range(trace_, trace_.saved.tensor[s.index()]);
      view.end = std::min(view.end, trace_.storages.bytes[storage.index()]);
      if (view.size() <= 0) continue;
      const bool first = range.size() == 0;
      range.begin = first ? view.begin : std::min(range.begin, view.begin);
      range.end = first ? view.end : std::max(range.end, view.end);
    }
    out_.tenants.push_back({&kSavedTensor,
                            storage,
                            range.begin,
                            range.size(),
                            0,
                            false,
                            {saved.begin(), saved.end()}});
  }

  // Saved rows are in pack order, and so are the tenants but for copies that are not shared.
  void sort_tenants() {
    const auto by_pack = [](const Tenant& a, const Tenant& b) {
      return a.saved.front() < b.saved.front();
    };
    if (!std::is_sorted(out_.tenants.begin(), out_.tenants.end(), by_pack)) {
      std::sort(out_.tenants.begin(), out_.tenants.end(), by_pack);
    }
  }

  // Unpack rows are in unpack order: `load_at` orders the loads by their first one.
  void add_stays() {
    std::vector<std::int32_t> load_at(trace_.unpacks.size(), -1);
    std::vector<PlacedStay> loads;
    const auto add_load = [&](TenantId tenant, std::vector<UnpackId> unpacks) {
      load_at[unpacks.front().index()] = static_cast<std::int32_t>(loads.size());
      loads.push_back(loaded(tenant, std::move(unpacks)));
    };
    for (std::size_t t = 0; t < out_.tenants.size(); ++t) {
      std::vector<UnpackId> unpacks;
      for (const SavedId s : out_.tenants[t].saved) {
        const auto& of = index_.unpacks_of(s);
        unpacks.insert(unpacks.end(), of.begin(), of.end());
      }
      std::sort(unpacks.begin(), unpacks.end());
      out_.stays.push_back(made(TenantId(t), unpacks));
      if (!decision(out_.tenants[t].saved.front()).share) {
        for (const UnpackId u : unpacks) add_load(TenantId(t), {u});
      } else if (!unpacks.empty()) {
        add_load(TenantId(t), std::move(unpacks));
      }
    }
    out_.stays.reserve(out_.stays.size() + loads.size());
    for (const std::int32_t row : load_at) {
      if (row >= 0) out_.stays.push_back(std::move(loads[static_cast<std::size_t>(row)]));
    }
  }

  [[nodiscard]] PlacedStay made(TenantId id, std::span<const UnpackId> unpacks) const {
    const Tenant& tenant = out_.tenants[id.index()];
    const Place store = store_place(trace_, tenant.saved);
    Place latest{EventId(index_.event_count() - 1), Side::before};
    if (!unpacks.empty()) latest = await_place(trace_, unpacks);
    const auto& writes = index_.writes_of(tenant.storage);
    const auto write = std::upper_bound(writes.begin(), writes.end(), store.event);
    if (write != writes.end()) {
      const EventId ahead = index_.previous_anchor(EventId(write->index() - 1));
      latest = std::min(latest, Place{ahead, Side::after});
    }
    PlacedStay placed;
    placed.tenant = id;
    placed.is_made = true;
    placed.store_mode = decision(tenant.saved.front()).copy_out;
    placed.store = placed.earliest_evict = position_of(store);
    placed.latest_evict = position_of(latest);
    return placed;
  }

  [[nodiscard]] PlacedStay loaded(TenantId id, std::vector<UnpackId> unpacks) const {
    PlacedStay placed;
    placed.tenant = id;
    placed.load_mode = decision(out_.tenants[id.index()].saved.front()).copy_in;
    placed.await = position_of(await_place(trace_, unpacks));
    placed.earliest_evict = placed.latest_evict = position_of(evict_place(trace_, unpacks));
    placed.unpacks = std::move(unpacks);
    return placed;
  }

  const StepIndex& index_;
  const Trace& trace_;
  const Decisions& decisions_;
  const std::vector<bool>& streamed_;
  Movement out_;
};

}  // namespace

Movement group_offloads(const StepIndex& index, const Decisions& decisions,
                        const std::vector<bool>& streamed) {
  STOWAGE_ASSERT(decisions.saved.size() == index.trace().saved.size());
  return Grouper(index, decisions, streamed).run();
}

}  // namespace stowage::simulator
