#include "simulator/hazards/access_walk.h"

#include <algorithm>
#include <array>
#include <map>
#include <string>
#include <utility>

#include "simulator/hazards/happens_before.h"
#include "simulator/schedule/departures.h"
#include "simulator/schedule/host_updates.h"
#include "simulator/schedule/tenant_kind.h"

namespace stowage::simulator {
namespace {

// What the compute stream comes by in one period, in program order.
struct Item {
  enum Kind : std::uint8_t { instruction, use_begin, use_end, departure };
  EventId event;
  std::uint8_t stage = 0;  // at one event: ahead of it, its own action, behind it, the gap then
  Kind kind = instruction;
  std::int32_t row = -1;  // instruction; use; departure
};

struct Use {
  TenantId tenant;
  TenantUse what;
  StayId began_with;
};

// A stay, now.
struct StayState {
  Access load;
  Access store;
  bool here = false;
  bool arrived = false;
  bool stored = false;       // its store has started
  bool gone = false;         // it was here
  std::int64_t version = 0;  // of the bytes in it, where they change
};

class AccessWalk {
 public:
  AccessWalk(const StepIndex& step, const Schedule& schedule)
      : index_(step, schedule),
        trace_(step.trace()),
        s_(schedule),
        departures_(departures(step.trace(), schedule)),
        leaves_at_(schedule.instructions.size(), -1),
        states_(schedule.stays.size()),
        tenants_(schedule.tenants.size()),
        made_(step.trace().storages.size()) {
    for (auto& period : fill_) period.resize(schedule.tenants.size());
    for (auto& period : read_) period.resize(schedule.stays.size());
    for (auto& period : write_) period.resize(schedule.stays.size());
    for (auto& period : update_) period.resize(schedule.tenants.size());
    for (std::size_t i = 0; i < schedule.stays.size(); ++i) {
      if (!schedule.stays[i].is_made) continue;
      made_[schedule.tenant(StayId(i)).storage.index()].push_back(StayId(i));
    }
    for (HostUpdate& each : host_updates(trace_, s_)) updates_of_[each.stay] = std::move(each);
    list_items();
  }

  std::vector<Hazard> run() && {
    for (period_ = 0; period_ < kPeriods; ++period_) {
      begin_period();
      for (const Item& item : items_) step(item);
      for (const Access& update : updates_) streams_.wait_for(update);  // the step's end does
    }
    check_host_slots();
    return std::move(hazards_);
  }

 private:
  struct TenantState {
    StayId stay;               // the last one that was loaded, or made; none when it was evicted
    Access store;              // the last one, of any stay, of any period where the storage lasts
    std::int64_t latest = 0;   // version: how often it was written
    std::int64_t at_home = 0;  // the version that the last store took
  };

  void report(HazardKind kind, TenantId first, TenantId second, EventId event, std::string text) {
    for (const Hazard& known : hazards_) {  // the second period repeats the first
      if (known.kind == kind && known.text == text) return;
    }
    hazards_.push_back({kind, first, second, event, std::move(text)});
  }
  [[nodiscard]] std::string name(TenantId t) const { return label(trace_, s_, t); }
  [[nodiscard]] std::string slot(TenantId t) const {
    const Tenant& tenant = s_.tenants[t.index()];
    return "host slot [" + std::to_string(tenant.host_offset) + ", " +
           std::to_string(tenant.host_offset + tenant.bytes) + ")";
  }
  static std::string at(EventId event) { return " at event " + std::to_string(event.value); }
  [[nodiscard]] const Stay& stay_of(StayId stay) const { return s_.stays[stay.index()]; }
  [[nodiscard]] const Tenant& tenant_of(TenantId tenant) const {
    return s_.tenants[tenant.index()];
  }
  [[nodiscard]] bool lasts(TenantId tenant) const {
    return !trace_.storages.alloc_event[tenant_of(tenant).storage.index()].valid();
  }

  void list_items() {
    for (std::size_t i = 0; i < s_.instructions.size(); ++i) {
      const Anchor& anchor = s_.instructions[i].anchor;
      items_.push_back({anchor.event,
                        static_cast<std::uint8_t>(anchor.side == Side::before ? 0 : 2),
                        Item::instruction, static_cast<std::int32_t>(i)});
    }
    std::vector<TenantUse> uses;
    for (std::size_t t = 0; t < s_.tenants.size(); ++t) {
      uses.clear();
      s_.tenants[t].kind->list_uses(index_, TenantId(t), uses);
      for (const TenantUse& use : uses) {
        const auto row = static_cast<std::int32_t>(uses_.size());
        uses_.push_back({TenantId(t), use, {}});
        items_.push_back({use.begin, 1, Item::use_begin, row});
        const std::uint8_t stage = use.ends_behind ? 3 : 1;
        items_.push_back({use.end, stage, Item::use_end, row});
      }
    }
    for (std::size_t d = 0; d < departures_.size(); ++d) {
      const Departure& departure = departures_[d];
      const auto row = static_cast<std::int32_t>(d);
      if (departure.instruction >= 0) {
        leaves_at_[static_cast<std::size_t>(departure.instruction)] = row;
      } else if (departure.event.valid()) {
        items_.push_back({departure.event, 3, Item::departure, row});
      }
    }
    std::stable_sort(items_.begin(), items_.end(), [](const Item& a, const Item& b) {
      return std::pair(a.event, a.stage) < std::pair(b.event, b.stage);
    });
  }

  // What wraps goes on; ahead of the first period an executor has loaded it. Made stays begin with
  // the storage, somewhere ahead of their first use.
  void begin_period() {
    for (std::size_t i = 0; i < states_.size(); ++i) {
      const Stay& stay = s_.stays[i];
      TenantState& tenant = tenants_[stay.tenant.index()];
      if (stay.wraps) {
        if (period_ > 0) continue;
        const std::int32_t await = index_.row_of(StayId(i), Action::await);
        states_[i].here = true;
        states_[i].arrived = await < 0 || await > index_.row_of(StayId(i), Action::evict);
        tenant.stay = StayId(i);
        continue;
      }
      states_[i] = {};
      states_[i].here = stay.is_made;
      if (!stay.is_made) continue;
      tenant.stay = StayId(i);
      states_[i].version = tenant.latest;
      if (lasts(stay.tenant)) continue;
      tenant.store = {};
      tenant.at_home = tenant.latest;
    }
  }

  Access copy(Stream lane, CopyMode mode, EventId event) {
    if (mode == CopyMode::compute) return streams_.on_compute(event);
    const Access access = streams_.on_stream(lane, event);
    if (mode == CopyMode::blocking) streams_.wait_for(access);
    return access;
  }

  void step(const Item& item) {
    const auto row = static_cast<std::size_t>(item.row);
    switch (item.kind) {
      case Item::instruction:
        execute(s_.instructions[row], leaves_at_[row]);
        break;
      case Item::use_begin:
        begin_use(uses_[row]);
        break;
      case Item::use_end:
        end_use(uses_[row]);
        break;
      case Item::departure:
        leave(departures_[row], item.event);
        break;
    }
  }

  void execute(const Instruction& i, std::int32_t leaves) {
    StayState& state = states_[i.stay.index()];
    switch (i.action) {
      case Action::load:
        load(i.stay, state, i.anchor.event);
        break;
      case Action::await:
        if (!state.here) break;
        streams_.wait_for(state.load);
        state.arrived = true;
        break;
      case Action::store:
        store(i.stay, state, i.anchor.event);
        break;
      case Action::evict:
        if (stay_of(i.stay).is_stored) streams_.wait_for(state.store);
        if (leaves >= 0) leave(departures_[static_cast<std::size_t>(leaves)], i.anchor.event);
        break;
      case Action::update:
        update(i.stay, state, i.anchor.event);
        break;
    }
  }

  // The host reads the gradient's home and writes those of the parameter and of its state.
  void update(StayId id, const StayState& state, EventId event) {
    const TenantId gradient = stay_of(id).tenant;
    const TenantState& of_gradient = tenants_[gradient.index()];
    const Access access = streams_.on_stream_behind(host, state.store, event);
    updates_.push_back(access);
    update_[period_][gradient.index()] = access;
    if (!state.store.happened || !state.stored || of_gradient.at_home != of_gradient.latest) {
      report(HazardKind::load_before_store_finished, gradient, {}, event,
             "the host updates with " + name(gradient) + at(event) + " before it is stored");
    }
    const HostUpdate& update = updates_of_.at(id);
    std::vector<TenantId> all = update.state;
    if (update.parameter.valid()) all.push_back(update.parameter);
    for (const TenantId updated : all) {
      TenantState& tenant = tenants_[updated.index()];
      if (tenant.stay.valid() || tenant.at_home != tenant.latest) {
        report(HazardKind::update_lost, updated, {}, event,
               name(updated) + " is updated on the host" + at(event) +
                   " while it is on the device, or newer there");
      }
      tenant.store = access;
      tenant.at_home = ++tenant.latest;
      update_[period_][updated.index()] = access;
    }
  }

  void load(StayId id, StayState& state, EventId event) {
    const Stay& stay = stay_of(id);
    TenantState& tenant = tenants_[stay.tenant.index()];
    // Whoever issues it waits for the home's update.
    if (tenant_of(stay.tenant).is_updated_at_home) streams_.wait_for(tenant.store);
    const Access access = copy(h2d, stay.load_mode, event);
    read_[period_][id.index()] = state.load = access;
    if (state.gone && !stay.wraps) {
      report(HazardKind::freed_while_copied, stay.tenant, {}, event,
             "the load of " + name(stay.tenant) + at(event) + " writes a buffer that is gone");
    }
    // The home of what is older than the step has bytes from the begin on; another one has those of
    // this period's store.
    const bool filled = tenant.store.happened
                            ? ordered(tenant.store, access)
                            : tenant_of(stay.tenant).has_own_home && lasts(stay.tenant);
    if (!filled) {
      report(HazardKind::load_before_store_finished, stay.tenant, {}, event,
             "the load of " + name(stay.tenant) + at(event) + " may read " + slot(stay.tenant) +
                 " before the store has written it");
    }
    if (tenant.at_home != tenant.latest) {
      report(HazardKind::update_lost, stay.tenant, {}, event,
             name(stay.tenant) + " is loaded over an update that was not stored" + at(event));
    }
    tenant.stay = id;
    state.version = tenant.at_home;
    state.here = true;
    state.arrived = state.stored = state.gone = false;
  }

  void store(StayId id, StayState& state, EventId event) {
    const Stay& stay = stay_of(id);
    TenantState& tenant = tenants_[stay.tenant.index()];
    const Access access = copy(d2h, stay.store_mode, event);
    const bool readable = stay.is_made ? state.here || tenant_of(stay.tenant).bytes == 0
                                       : state.here && state.arrived && ordered_load(state, access);
    if (!readable) {
      report(HazardKind::freed_while_copied, stay.tenant, {}, event,
             "the store of " + name(stay.tenant) + at(event) +
                 " reads memory that is gone or has not got its bytes");
    }
    write_[period_][id.index()] = state.store = tenant.store = access;
    if (Access& first = fill_[period_][stay.tenant.index()]; !first.happened) first = access;
    state.stored = state.here;
    tenant.at_home = state.version;
  }

  static bool ordered_load(const StayState& state, const Access& access) {
    return !state.load.happened || ordered(state.load, access);
  }

  void begin_use(Use& use) {
    const EventId event = use.what.begin;
    const TenantState& tenant = tenants_[use.tenant.index()];
    const Access access = streams_.on_compute(event);
    use.began_with = use.what.stay.valid() ? use.what.stay : tenant.stay;
    bool is_there = use.began_with.valid();
    if (is_there) {
      const StayState& state = states_[use.began_with.index()];
      is_there = state.here && (stay_of(use.began_with).is_made ||
                                (state.arrived && ordered_load(state, access)));
    }
    // Ops write a storage while the model itself holds it; what was copied of it before must be.
    if (use.what.writes && tenant.store.happened && tenant_of(use.tenant).bytes > 0 &&
        !ordered(tenant.store, access)) {
      report(HazardKind::written_while_copied, use.tenant, {}, event,
             "an op writes the storage of " + name(use.tenant) + at(event) +
                 " while its copy into " + slot(use.tenant) + " may still read it");
    }
    if (is_there || (use.what.writes && tenant_of(use.tenant).kind->is_snapshot)) return;
    report(HazardKind::used_while_away, use.tenant, {}, event,
           name(use.tenant) + " is used" + at(event) +
               " without being on the device, or without waiting for its load");
  }

  void end_use(const Use& use) {
    const EventId event = use.what.end;
    TenantState& tenant = tenants_[use.tenant.index()];
    streams_.on_compute(event);
    if (!use.what.stay.valid() && use.began_with.valid() && use.began_with != tenant.stay) {
      report(HazardKind::used_while_away, use.tenant, {}, event,
             name(use.tenant) + " leaves during a use that ends" + at(event));
    }
    if (!use.what.writes || tenant_of(use.tenant).kind->is_snapshot) return;
    ++tenant.latest;
    if (!tenant.stay.valid()) return;
    states_[tenant.stay.index()].version = tenant.latest;
    if (!states_[tenant.stay.index()].stored) return;
    report(HazardKind::update_lost, use.tenant, {}, event,
           name(use.tenant) + " is updated behind the start of its store" + at(event));
  }

  void leave(const Departure& departure, EventId event) {
    const Access gone = streams_.on_compute(event);
    if (departure.stay.valid()) return leave(departure.stay, gone);
    for (const StayId stay : made_[departure.storage.index()]) leave(stay, gone);
  }

  void leave(StayId id, const Access& gone) {
    const Stay& stay = stay_of(id);
    StayState& state = states_[id.index()];
    TenantState& tenant = tenants_[stay.tenant.index()];
    const bool was_here = state.here;
    state.here = state.arrived = false;
    state.gone = true;
    if (tenant.stay == id) tenant.stay = {};
    if (!was_here) return;
    const bool moves = tenant_of(stay.tenant).bytes > 0;
    if (moves && (!ordered_load(state, gone) || (state.stored && !ordered(state.store, gone)))) {
      report(HazardKind::freed_while_copied, stay.tenant, {}, gone.event,
             "the memory of " + name(stay.tenant) + " goes" + at(gone.event) +
                 " while a copy may still use it");
    }
    if (state.version > tenant.at_home) {
      report(HazardKind::update_lost, stay.tenant, {}, gone.event,
             name(stay.tenant) + " leaves with an update not stored" + at(gone.event));
    }
  }

  // `write` may not come between the first store into a slot and the last access to it.
  [[nodiscard]] bool spoils(const Access& write, TenantId kept, std::size_t period) const {
    const Access& filled = fill_[period][kept.index()];
    if (!write.happened || !filled.happened || ordered(write, filled)) return false;
    const auto stays = index_.stays_of(kept);
    return std::any_of(stays.begin(), stays.end(), [&](StayId stay) {
      const Access& store = write_[period][stay.index()];
      const Access& load = read_[period][stay.index()];
      return (store.happened && !ordered(store, write)) || (load.happened && !ordered(load, write));
    });
  }

  void report_overwritten(const Access& write, TenantId kept, TenantId other) {
    report(HazardKind::host_slot_overwritten, kept, other, write.event,
           name(other) + " writes " + slot(other) + at(write.event) + " before " + name(kept) +
               " was read back from " + slot(kept));
  }

  void check_slot_pair(TenantId kept, TenantId other) {
    for (std::size_t p = 0; p < kPeriods; ++p) {
      for (std::size_t q = 0; q < kPeriods; ++q) {
        if (kept == other && p == q) continue;
        for (const StayId stay : index_.stays_of(other)) {
          const Access& write = write_[q][stay.index()];
          if (spoils(write, kept, p)) report_overwritten(write, kept, other);
        }
      }
    }
  }

  // A home that is stored into more than once: no load runs beside a store.
  void check_home(TenantId home) {
    const auto stays = index_.stays_of(home);
    for (const StayId stored : stays) {
      for (const Access& write : {write_[0][stored.index()], write_[1][stored.index()]}) {
        if (!write.happened) continue;
        const bool runs_beside = std::any_of(stays.begin(), stays.end(), [&](StayId loaded) {
          return std::any_of(read_.begin(), read_.end(), [&](const std::vector<Access>& reads) {
            const Access& read = reads[loaded.index()];
            return read.happened && !ordered(read, write) && !ordered(write, read);
          });
        });
        if (runs_beside) report_overwritten(write, home, home);
      }
    }
    check_update_of(home);
  }

  // Nor does a copy from or to a home run beside the host's update.
  void check_update_of(TenantId home) {
    for (const auto& period : update_) {
      const Access& update = period[home.index()];
      if (!update.happened) continue;
      for (const StayId stay : index_.stays_of(home)) {
        for (std::size_t p = 0; p < kPeriods; ++p) {
          for (const Access& copy : {read_[p][stay.index()], write_[p][stay.index()]}) {
            if (!copy.happened || ordered(copy, update) || ordered(update, copy)) continue;
            report_overwritten(update, home, home);
          }
        }
      }
    }
  }

  void check_host_slots() {
    std::vector<TenantId> by_offset;
    for (std::size_t t = 0; t < s_.tenants.size(); ++t) {
      if (s_.tenants[t].bytes == 0) continue;
      if (s_.tenants[t].has_own_home) {
        check_home(TenantId(t));
      } else {
        by_offset.emplace_back(t);
      }
    }
    const auto begin = [&](TenantId t) { return tenant_of(t).host_offset; };
    std::sort(by_offset.begin(), by_offset.end(), [&](TenantId a, TenantId b) {
      return std::pair(begin(a), a) < std::pair(begin(b), b);
    });
    for (std::size_t i = 0; i < by_offset.size(); ++i) {
      const TenantId a = by_offset[i];
      const Bytes end = begin(a) + tenant_of(a).bytes;
      check_slot_pair(a, a);
      for (std::size_t j = i + 1; j < by_offset.size() && begin(by_offset[j]) < end; ++j) {
        check_slot_pair(a, by_offset[j]);
        check_slot_pair(by_offset[j], a);
      }
    }
  }

  const ScheduleIndex index_;
  const Trace& trace_;
  const Schedule& s_;
  const std::vector<Departure> departures_;
  std::vector<std::int32_t> leaves_at_;  // by instruction: row of departures_
  std::vector<Use> uses_;
  std::vector<Item> items_;
  std::vector<StayState> states_;
  std::vector<TenantState> tenants_;
  std::vector<std::vector<StayId>> made_;             // by storage
  std::array<std::vector<Access>, kPeriods> fill_;    // by tenant: its first store
  std::array<std::vector<Access>, kPeriods> write_;   // by stay: its store
  std::array<std::vector<Access>, kPeriods> read_;    // by stay: its load
  std::map<StayId, HostUpdate> updates_of_;           // by stay of a gradient
  std::array<std::vector<Access>, kPeriods> update_;  // by tenant: the update that has its home
  std::vector<Access> updates_;
  std::size_t period_ = 0;
  Streams streams_;
  std::vector<Hazard> hazards_;
};

}  // namespace

std::vector<Hazard> unordered_accesses(const StepIndex& index, const Schedule& schedule) {
  return AccessWalk(index, schedule).run();
}

}  // namespace stowage::simulator
