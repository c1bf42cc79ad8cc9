#include "simulator/hazards/hazards.h"

#include <algorithm>
#include <array>
#include <cstdint>
#include <tuple>
#include <utility>

#include "simulator/hazards/happens_before.h"
#include "simulator/hazards/residency_hazards.h"
#include "simulator/hazards/schedule_structure.h"

namespace stowage::simulator {
namespace {

// What the compute stream comes by in one period, in program order.
struct Item {
  enum Kind : std::uint8_t { before, unpack, write, after, buffer_gone, storage_gone };
  EventId event;
  Kind kind = before;
  std::int32_t row = -1;  // instruction, unpack, storage or reload
};

class Graph {
 public:
  Graph(const StepIndex& index, const Schedule& schedule)
      : index_(index), trace_(index.trace()), s_(schedule) {
    for (auto& period : copy_out_) period.resize(s_.offloads.size());
    for (auto& period : copy_in_) period.resize(s_.reloads.size());
    reloads_of_.resize(s_.offloads.size());
    for (std::size_t r = 0; r < s_.reloads.size(); ++r) {
      reloads_of_[s_.reloads[r].offload.index()].push_back(r);
    }
    list_items();
  }

  std::vector<Hazard> run() && {
    for (period_ = 0; period_ < kPeriods; ++period_) {
      storage_gone_.assign(trace_.storages.size(), false);
      buffer_gone_.assign(s_.reloads.size(), false);
      for (const Item& item : items_) step(item);
    }
    check_host_slots();
    return std::move(hazards_);
  }

 private:
  void report(HazardKind kind, OffloadId first, OffloadId second, EventId event, std::string text) {
    for (const Hazard& known : hazards_) {  // the second period repeats the first
      if (known.kind == kind && known.text == text) return;
    }
    hazards_.push_back({kind, first, second, event, std::move(text)});
  }
  [[nodiscard]] std::string name(OffloadId o) const { return label(trace_, s_, o); }
  [[nodiscard]] std::string slot(OffloadId o) const {
    const Offload& offload = s_.offloads[o.index()];
    return "host slot [" + std::to_string(offload.host_offset) + ", " +
           std::to_string(offload.host_offset + offload.bytes) + ")";
  }
  static std::string at(EventId event) { return " at event " + std::to_string(event.value); }

  void list_items() {
    const auto& list = s_.instructions;
    std::vector<std::int32_t> last_release(trace_.storages.size(), -1);
    std::vector<EventId> dropped(s_.reloads.size());
    for (std::size_t i = 0; i < list.size(); ++i) {
      items_.push_back({list[i].anchor.event,
                        list[i].anchor.side == Side::before ? Item::before : Item::after,
                        static_cast<std::int32_t>(i)});
      if (list[i].action == Action::release) {
        last_release[s_.offloads[list[i].offload.index()].storage.index()] =
            static_cast<std::int32_t>(i);
      }
      if (list[i].action == Action::drop) dropped[list[i].reload.index()] = list[i].anchor.event;
    }
    for (std::size_t u = 0; u < s_.reload_of.size(); ++u) {
      if (!s_.reload_of[u].valid()) continue;
      items_.push_back({trace_.unpacks.event[u], Item::unpack, static_cast<std::int32_t>(u)});
    }
    std::vector<bool> seen(trace_.storages.size(), false);
    for (const Offload& offload : s_.offloads) {
      const auto s = offload.storage.index();
      if (seen[s]) continue;
      seen[s] = true;
      for (const EventId event : index_.writes_of(offload.storage)) {
        items_.push_back({event, Item::write, offload.storage.value});
      }
      if (!trace_.storages.alloc_event[s].valid() || last_release[s] < 0) continue;
      const EventId natural = trace_.storages.natural_free_event[s];
      if (!natural.valid()) continue;
      const EventId released = list[static_cast<std::size_t>(last_release[s])].anchor.event;
      items_.push_back({std::max(natural, released), Item::storage_gone, offload.storage.value});
    }
    for (std::size_t r = 0; r < s_.reloads.size(); ++r) {
      EventId last = dropped[r];
      bool survives = !last.valid();
      for (const UnpackId u : s_.reloads[r].unpacks) {
        survives = survives || !trace_.unpacks.released_event[u.index()].valid();
        last = std::max(last, trace_.unpacks.released_event[u.index()]);
      }
      if (!survives) items_.push_back({last, Item::buffer_gone, static_cast<std::int32_t>(r)});
    }
    // At one event: what stands before it, its own action, what stands after it, then the gap.
    const auto stage = [](const Item& item) {
      switch (item.kind) {
        case Item::before:
          return 0;
        case Item::unpack:
        case Item::write:
          return 1;
        case Item::after:
          return 2;
        case Item::buffer_gone:
        case Item::storage_gone:
          return 3;
      }
      return 0;
    };
    std::stable_sort(items_.begin(), items_.end(), [&](const Item& a, const Item& b) {
      return std::pair(a.event, stage(a)) < std::pair(b.event, stage(b));
    });
  }

  Access on_compute(EventId event) { return streams_.on_compute(event); }

  Access copy(Stream lane, CopyMode mode, EventId event) {
    if (mode == CopyMode::compute) return on_compute(event);
    const Access access = streams_.on_lane(lane, event);
    if (mode == CopyMode::blocking) streams_.wait_for(access);
    return access;
  }

  void step(const Item& item) {
    const auto row = static_cast<std::size_t>(item.row);
    switch (item.kind) {
      case Item::before:
      case Item::after:
        execute(s_.instructions[row]);
        break;
      case Item::unpack: {
        const ReloadId r = s_.reload_of[row];
        const Access use = on_compute(item.event);
        const Access& copied = copy_in_[period_][r.index()];
        if (!copied.happened || !ordered(copied, use) || buffer_gone_[r.index()]) {
          const OffloadId o = s_.reloads[r.index()].offload;
          report(HazardKind::buffer_used_before_reload, o, {}, item.event,
                 "unpack " + std::to_string(row) + at(item.event) +
                     " uses the buffer without waiting for the reload of " + name(o));
        }
        break;
      }
      case Item::write:
        check_write(StorageId(row), on_compute(item.event));
        break;
      case Item::storage_gone: {
        const Access gone = on_compute(item.event);
        storage_gone_[row] = true;
        for_offloads_of(StorageId(row), [&](OffloadId o) {
          const Access& copied = copy_out_[period_][o.index()];
          if (!copied.happened || ordered(copied, gone)) return;
          report(HazardKind::freed_while_copied, o, {}, item.event,
                 "the storage of " + name(o) + " goes" + at(item.event) + " while its copy into " +
                     slot(o) + " may still read it");
        });
        break;
      }
      case Item::buffer_gone: {
        const Access gone = on_compute(item.event);
        const Access& copied = copy_in_[period_][row];
        buffer_gone_[row] = true;
        if (!copied.happened || ordered(copied, gone)) break;
        const OffloadId o = s_.reloads[row].offload;
        report(HazardKind::freed_while_copied, o, {}, item.event,
               "the reload buffer of " + name(o) + " goes" + at(item.event) +
                   " while the copy from " + slot(o) + " may still write it");
        break;
      }
    }
  }

  void execute(const Instruction& i) {
    const EventId event = i.anchor.event;
    switch (i.action) {
      case Action::start_offload: {
        const Offload& offload = s_.offloads[i.offload.index()];
        copy_out_[period_][i.offload.index()] = copy(d2h, offload.copy_out, event);
        if (!storage_gone_[offload.storage.index()] || offload.bytes == 0) break;
        report(HazardKind::freed_while_copied, i.offload, {}, event,
               "the copy of " + name(i.offload) + at(event) + " reads a storage that is gone");
        break;
      }
      case Action::release: {
        const Access& copied = copy_out_[period_][i.offload.index()];
        streams_.wait_for(copied);
        break;
      }
      case Action::start_reload: {
        const Reload& reload = s_.reloads[i.reload.index()];
        Access& read = copy_in_[period_][i.reload.index()] = copy(h2d, reload.copy_in, event);
        const Access& written = copy_out_[period_][reload.offload.index()];
        if (buffer_gone_[i.reload.index()]) {
          report(HazardKind::freed_while_copied, reload.offload, {}, event,
                 "the reload of " + name(reload.offload) + at(event) +
                     " writes a buffer that is gone");
        }
        if (written.happened && ordered(written, read)) break;
        report(HazardKind::reload_before_offload_finished, reload.offload, {}, event,
               "the reload of " + name(reload.offload) + at(event) + " may read " +
                   slot(reload.offload) + " before the copy out has written it");
        break;
      }
      case Action::await: {
        const Access& copied = copy_in_[period_][i.reload.index()];
        streams_.wait_for(copied);
        break;
      }
      case Action::drop:
      case Action::start_load:
      case Action::await_load:
      case Action::start_store:
      case Action::evict:
        break;
    }
  }

  // Those that read bytes of the storage.
  template <class Visit>
  void for_offloads_of(StorageId storage, Visit visit) {
    OffloadId last;  // several saved tensors may share one offload
    for (const SavedId s : index_.saved_of(storage)) {
      const OffloadId o = s_.offload_of[s.index()];
      if (o.valid() && o != last && s_.offloads[o.index()].bytes > 0) visit(o);
      last = o;
    }
  }

  // A storage of the step is another one in the next period; one that existed before is the same.
  void check_write(StorageId storage, const Access& write) {
    const bool lasting = !trace_.storages.alloc_event[storage.index()].valid();
    for_offloads_of(storage, [&](OffloadId o) {
      for (std::size_t p = lasting ? 0 : period_; p <= period_; ++p) {
        const Access& copied = copy_out_[p][o.index()];
        if (!copied.happened || ordered(copied, write)) continue;
        report(HazardKind::written_while_copied, o, {}, write.event,
               "an op writes the storage of " + name(o) + at(write.event) +
                   " while its copy into " + slot(o) + " may still read it");
      }
    });
  }

  // `write` may not come between the copy into a slot and the last copy back out of it.
  [[nodiscard]] bool spoils(const Access& write, OffloadId kept, std::size_t period) const {
    const Access& filled = copy_out_[period][kept.index()];
    if (!write.happened || !filled.happened || ordered(write, filled)) return false;
    if (!ordered(filled, write)) return true;
    return std::any_of(reloads_of_[kept.index()].begin(), reloads_of_[kept.index()].end(),
                       [&](std::size_t r) {
                         const Access& read = copy_in_[period][r];
                         return read.happened && !ordered(read, write);
                       });
  }

  void check_slot_pair(OffloadId kept, OffloadId other) {
    for (std::size_t p = 0; p < kPeriods; ++p) {
      for (std::size_t q = 0; q < kPeriods; ++q) {
        if (kept == other && p == q) continue;
        const Access& write = copy_out_[q][other.index()];
        if (!spoils(write, kept, p)) continue;
        report(HazardKind::host_slot_overwritten, kept, other, write.event,
               name(other) + " writes " + slot(other) + at(write.event) + " before " + name(kept) +
                   " was read back from " + slot(kept));
      }
    }
  }

  void check_host_slots() {
    std::vector<OffloadId> by_offset;
    for (std::size_t o = 0; o < s_.offloads.size(); ++o) {
      if (s_.offloads[o].bytes > 0) by_offset.emplace_back(o);
    }
    const auto begin = [&](OffloadId o) { return s_.offloads[o.index()].host_offset; };
    std::sort(by_offset.begin(), by_offset.end(), [&](OffloadId a, OffloadId b) {
      return std::pair(begin(a), a) < std::pair(begin(b), b);
    });
    for (std::size_t i = 0; i < by_offset.size(); ++i) {
      const OffloadId a = by_offset[i];
      const Bytes end = begin(a) + s_.offloads[a.index()].bytes;
      check_slot_pair(a, a);
      for (std::size_t j = i + 1; j < by_offset.size() && begin(by_offset[j]) < end; ++j) {
        check_slot_pair(a, by_offset[j]);
        check_slot_pair(by_offset[j], a);
      }
    }
  }

  const StepIndex& index_;
  const Trace& trace_;
  const Schedule& s_;
  std::vector<Item> items_;
  std::vector<std::vector<std::size_t>> reloads_of_;
  std::size_t period_ = 0;
  Streams streams_;
  std::array<std::vector<Access>, kPeriods> copy_out_;
  std::array<std::vector<Access>, kPeriods> copy_in_;
  std::vector<bool> storage_gone_;  // in this period
  std::vector<bool> buffer_gone_;
  std::vector<Hazard> hazards_;
};

}  // namespace

const char* name_of(HazardKind value) {
  switch (value) {
    case HazardKind::reload_before_offload_finished:
      return "reload_before_offload_finished";
    case HazardKind::host_slot_overwritten:
      return "host_slot_overwritten";
    case HazardKind::buffer_used_before_reload:
      return "buffer_used_before_reload";
    case HazardKind::freed_while_copied:
      return "freed_while_copied";
    case HazardKind::written_while_copied:
      return "written_while_copied";
    case HazardKind::parameter_absent:
      return "parameter_absent";
    case HazardKind::load_before_store_finished:
      return "load_before_store_finished";
    case HazardKind::update_lost:
      return "update_lost";
    case HazardKind::malformed:
      return "malformed";
  }
  return "?";
}

std::vector<Hazard> find_hazards(const StepIndex& index, const Schedule& schedule) {
  Structure structure = check_structure(index, schedule);
  std::vector<Hazard> hazards = std::move(structure.hazards);
  if (structure.readable) {
    std::vector<Hazard> unordered = Graph(index, schedule).run();
    hazards.insert(hazards.end(), std::make_move_iterator(unordered.begin()),
                   std::make_move_iterator(unordered.end()));
    std::vector<Hazard> absent = find_residency_hazards(index, schedule);
    hazards.insert(hazards.end(), std::make_move_iterator(absent.begin()),
                   std::make_move_iterator(absent.end()));
  }
  std::stable_sort(hazards.begin(), hazards.end(),
                   [](const Hazard& a, const Hazard& b) { return a.event < b.event; });
  return hazards;
}

}  // namespace stowage::simulator
