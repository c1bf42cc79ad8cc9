#include "simulator/lowering/offload_groups.h"

#include <algorithm>
#include <numeric>
#include <span>
#include <string>

#include "traces/result.h"

namespace stowage::simulator {
namespace {

class Grouper {
 public:
  Grouper(const StepIndex& index, const Decisions& decisions, const std::vector<bool>& streamed)
      : index_(index), trace_(index.trace()), decisions_(decisions), streamed_(streamed) {}

  OffloadGroups run() && {
    for (std::size_t s = 0; s < trace_.saved.size(); ++s) {
      const SavedId saved(s);
      if (!wants(saved)) continue;
      const StorageId storage = trace_.saved.storage[s];
      if (!storage.valid()) {
        note(saved, "stays: it is no plain tensor in the training device's memory");
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
    in_order();
    return std::move(out_);
  }

 private:
  [[nodiscard]] const SavedDecision& decision(SavedId s) const {
    return decisions_.saved[s.index()];
  }
  [[nodiscard]] bool wants(SavedId s) const { return decision(s).decision == Decision::offload; }
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
    const SavedDecision& d = decision(all.front());
    if (d.share) {
      add_offload(storage, all, d);
    } else {
      for (const SavedId& s : all) add_offload(storage, {&s, 1}, d);
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

  void add_offload(StorageId storage, std::span<const SavedId> saved, const SavedDecision& d) {
    const std::size_t id = out_.offloads.size();
    Offload offload{storage, {saved.begin(), saved.end()}, 0, 0, d.copy_out};
    ByteRange range;
    std::vector<UnpackId> unpacks;
    for (const SavedId s : saved) {
      ByteRange view = byte_range(trace_, trace_.saved.tensor[s.index()]);
      view.end = std::min(view.end, trace_.storages.bytes[storage.index()]);
      if (view.size() > 0) {
        const bool first = range.size() == 0;
        range.begin = first ? view.begin : std::min(range.begin, view.begin);
        range.end = first ? view.end : std::max(range.end, view.end);
      }
      const auto& of = index_.unpacks_of(s);
      unpacks.insert(unpacks.end(), of.begin(), of.end());
    }
    offload.begin = range.begin;
    offload.bytes = range.size();
    out_.offloads.push_back(std::move(offload));
    std::sort(unpacks.begin(), unpacks.end());
    if (d.share) {
      if (!unpacks.empty()) out_.reloads.push_back({id, unpacks, d.copy_in});
    } else {
      for (const UnpackId u : unpacks) out_.reloads.push_back({id, {u}, d.copy_in});
    }
  }

  // Saved rows are in pack order, unpack rows in unpack order, so rows order both tables.
  void in_order() {
    auto& offloads = out_.offloads;
    std::vector<std::size_t> by_pack(offloads.size());
    std::iota(by_pack.begin(), by_pack.end(), std::size_t{0});
    std::sort(by_pack.begin(), by_pack.end(), [&](std::size_t a, std::size_t b) {
      return offloads[a].saved.front() < offloads[b].saved.front();
    });
    std::vector<std::size_t> renamed(offloads.size());
    std::vector<Offload> sorted;
    sorted.reserve(offloads.size());
    for (const std::size_t old : by_pack) {
      renamed[old] = sorted.size();
      sorted.push_back(std::move(offloads[old]));
    }
    offloads = std::move(sorted);
    for (Reload& reload : out_.reloads) reload.offload = renamed[reload.offload];
    std::sort(out_.reloads.begin(), out_.reloads.end(), [](const Reload& a, const Reload& b) {
      return a.unpacks.front() < b.unpacks.front();
    });
    std::stable_sort(
        out_.notes.begin(), out_.notes.end(),
        [](const LoweringNote& a, const LoweringNote& b) { return a.saved < b.saved; });
  }

  const StepIndex& index_;
  const Trace& trace_;
  const Decisions& decisions_;
  const std::vector<bool>& streamed_;
  OffloadGroups out_;
};

}  // namespace

OffloadGroups group_offloads(const StepIndex& index, const Decisions& decisions,
                             const std::vector<bool>& streamed) {
  STOWAGE_ASSERT(decisions.saved.size() == index.trace().saved.size());
  return Grouper(index, decisions, streamed).run();
}

}  // namespace stowage::simulator
