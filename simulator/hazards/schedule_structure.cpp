#include "simulator/hazards/schedule_structure.h"

#include <algorithm>
#include <array>
#include <string>

#include "simulator/schedule/host_updates.h"
#include "simulator/schedule/tenant_kind.h"

namespace stowage::simulator {
namespace {

template <class Tag>
bool in_range(Id<Tag> id, std::size_t size) {
  return id.valid() && id.index() < size;
}

// Whether all rows can be looked up at all.
class ReadableCheck {
 public:
  ReadableCheck(const StepIndex& index, const Schedule& schedule, CheckedStructure& out)
      : index_(index), trace_(index.trace()), s_(schedule), out_(out) {}

  void run() {
    check_tables();
    for (const Tenant& tenant : s_.tenants) {
      bool fits = tenant.kind != nullptr && in_range(tenant.storage, trace_.storages.size());
      fits =
          fits && (!tenant.previous.valid() || in_range(tenant.previous, trace_.storages.size()));
      for (const SavedId s : tenant.saved) fits = fits && in_range(s, trace_.saved.size());
      if (!fits) unreadable("a tenant names no storage or no saved tensor of the step");
      if (tenant.kind == &kSavedTensor && tenant.saved.empty()) {
        unreadable("a tenant serves no saved tensor");
      }
    }
    for (const Stay& stay : s_.stays) {
      bool fits = in_range(stay.tenant, s_.tenants.size());
      for (const UnpackId u : stay.unpacks) fits = fits && in_range(u, trace_.unpacks.size());
      if (!fits) unreadable("a stay names no tenant of the schedule or no unpack of the step");
    }
    for (const Instruction& i : s_.instructions) check(i);
  }

 private:
  void unreadable(const std::string& text) {
    out_.readable = false;
    out_.hazards.push_back({HazardKind::malformed, {}, {}, {}, text});
  }

  void check_tables() {
    if (s_.tenant_of.size() != trace_.saved.size() || s_.stay_of.size() != trace_.unpacks.size()) {
      unreadable("the schedule is for another trace: " + std::to_string(s_.tenant_of.size()) +
                 " saved tensors and " + std::to_string(s_.stay_of.size()) + " unpacks, not " +
                 std::to_string(trace_.saved.size()) + " and " +
                 std::to_string(trace_.unpacks.size()));
    }
    for (const TenantId t : s_.tenant_of) {
      if (t.valid() && !in_range(t, s_.tenants.size())) unreadable("tenant_of names no tenant");
    }
    for (const StayId s : s_.stay_of) {
      if (s.valid() && !in_range(s, s_.stays.size())) unreadable("stay_of names no stay");
    }
  }

  void check(const Instruction& i) {
    if (!in_range(i.stay, s_.stays.size())) {
      unreadable(std::string("a ") + name_of(i.action) + " names no row of the schedule");
    }
    if (!in_range(i.anchor.event, index_.event_count()) || !index_.is_anchor(i.anchor.event)) {
      return unreadable(std::string("a ") + name_of(i.action) + " stands at no anchor");
    }
    const Anchor anchor = index_.anchor_at(i.anchor.event, i.anchor.side);
    if (anchor.kind == i.anchor.kind && anchor.ordinal == i.anchor.ordinal) return;
    out_.hazards.push_back({HazardKind::malformed,
                            {},
                            {},
                            i.anchor.event,
                            std::string("a ") + name_of(i.action) + " stands at " +
                                name_of(i.anchor.kind) + " " + std::to_string(i.anchor.ordinal) +
                                ", but its event is another anchor"});
  }

  const StepIndex& index_;
  const Trace& trace_;
  const Schedule& s_;
  CheckedStructure& out_;
};

class StructureCheck {
 public:
  StructureCheck(const StepIndex& step, const Schedule& schedule, std::vector<Hazard>& hazards)
      : index_(step, schedule),
        trace_(step.trace()),
        s_(schedule),
        hazards_(hazards),
        updates_(host_updates(step.trace(), schedule)),
        takes_(step.trace().storages.size(), false) {}

  void run() {
    for (std::size_t t = 0; t < s_.tenants.size(); ++t) check_tenant(TenantId(t));
    check_homes();
    check_served();
    check_order();
    check_updates();
    for (std::size_t i = 0; i < s_.stays.size(); ++i) check_steps(StayId(i));
    for (std::size_t t = 0; t < s_.tenants.size(); ++t) {
      check_overlaps(TenantId(t));
      check_begin(TenantId(t));
      s_.tenants[t].kind->check(index_, TenantId(t), [&](const std::string& text, EventId event) {
        report(text, TenantId(t), event);
      });
    }
  }

 private:
  void report(const std::string& text, TenantId tenant, EventId event = {}) {
    hazards_.push_back({HazardKind::malformed, tenant, {}, event, text});
  }
  [[nodiscard]] std::string name(TenantId t) const { return label(trace_, s_, t); }
  [[nodiscard]] std::string name(StayId stay) const {
    return "stay " + std::to_string(stay.value) + " of " + name(s_.stays[stay.index()].tenant);
  }
  [[nodiscard]] TenantId tenant_of(StayId stay) const { return s_.stays[stay.index()].tenant; }

  void check_tenant(TenantId id) {
    const Tenant& tenant = s_.tenants[id.index()];
    const std::size_t s = tenant.storage.index();
    const Bytes storage_bytes = trace_.storages.bytes[s];
    if (tenant.bytes < 0 || tenant.begin < 0 || tenant.begin > storage_bytes ||
        tenant.bytes > storage_bytes - tenant.begin) {
      report(name(id) + " moves bytes that its storage does not have", id);
    }
    if (tenant.host_offset < 0 || tenant.host_offset % kHostSlotAlignment != 0 ||
        tenant.host_offset > s_.host_bytes || tenant.bytes > s_.host_bytes - tenant.host_offset) {
      report(name(id) + " has a host slot outside the arena or not aligned", id);
    }
    if (!tenant.has_own_home) {
      if (tenant.previous.valid()) report(name(id) + " takes another's place without a home", id);
      return;
    }
    if (tenant.bytes != storage_bytes) {
      report(name(id) + " has another size than its storage", id);
    }
    if (tenant.kind->is_made_anew) return check_made_anew(id);
    if (trace_.storages.device[s] != 0 || trace_.storages.alloc_event[s].valid() ||
        trace_.storages.free_event[s].valid()) {
      report(name(id) + " is not on the training device all through the recorded step", id);
    }
  }

  // Freed ahead of it is what it takes the place of, as large; then it comes and lasts. Or the step
  // has no other of its parameter, and the host updates with it.
  void check_made_anew(TenantId id) {
    const Tenant& tenant = s_.tenants[id.index()];
    const Storages& storages = trace_.storages;
    const std::size_t s = tenant.storage.index();
    const EventId made = storages.alloc_event[s];
    const bool lasts = storages.device[s] == 0 && made.valid() && !storages.free_event[s].valid();
    if (!tenant.previous.valid()) {
      if (!lasts || !is_updated_with(id) || has_others(tenant.storage)) {
        report(name(id) + " takes the place of none", id);
      }
      return;
    }
    const std::size_t previous = tenant.previous.index();
    const EventId freed = storages.free_event[previous];
    if (!lasts || storages.device[previous] != 0 || storages.alloc_event[previous].valid() ||
        !freed.valid() || freed > made || storages.bytes[previous] != storages.bytes[s]) {
      report(name(id) + " is not made in the place of one that the step frees", id);
    }
    if (!takes_[previous]) {
      takes_[previous] = true;
    } else {
      report(name(id) + " takes the place of what another one does, too", id);
    }
  }

  [[nodiscard]] bool is_updated_with(TenantId gradient) const {
    return std::any_of(updates_.begin(), updates_.end(),
                       [&](const HostUpdate& update) { return update.gradient == gradient; });
  }
  // Other storages of its class are its parameter's.
  [[nodiscard]] bool has_others(StorageId storage) const {
    const Storages& storages = trace_.storages;
    for (std::size_t s = 0; s < storages.size(); ++s) {
      if (s != storage.index() && storages.parameter[s] == storages.parameter[storage.index()] &&
          storages.storage_class[s] == storages.storage_class[storage.index()]) {
        return true;
      }
    }
    return false;
  }

  // Of what is made anew in each step: first the made stay, once, then the others.
  void check_begin(TenantId id) {
    if (!s_.tenants[id.index()].kind->is_made_anew) return;
    std::int32_t made = -1;  // row of its evict
    int made_stays = 0;
    for (const StayId stay : index_.stays_of(id)) {
      if (!s_.stays[stay.index()].is_made) continue;
      ++made_stays;
      made = index_.row_of(stay, Action::evict);
    }
    if (made_stays != 1) report(name(id) + " is not made once", id);
    for (const StayId stay : index_.stays_of(id)) {
      if (s_.stays[stay.index()].wraps) report(name(stay) + " goes over the step's end", id);
      const std::int32_t load = index_.row_of(stay, Action::load);
      if (load >= 0 && load < made)
        report(name(stay) + " is loaded ahead of the made one's end", id);
    }
  }

  // A storage whose home is its own has one tenant, and its slot is nobody else's.
  void check_homes() {
    struct Slot {
      Bytes begin;
      Bytes end;
      TenantId own;  // none: shared over time
    };
    std::vector<Slot> slots;
    std::vector<TenantId> home_of(trace_.storages.size());
    for (std::size_t t = 0; t < s_.tenants.size(); ++t) {
      const Tenant& tenant = s_.tenants[t];
      if (tenant.bytes > 0) {
        slots.push_back({tenant.host_offset, tenant.host_offset + tenant.bytes,
                         tenant.has_own_home ? TenantId(t) : TenantId()});
      }
      if (!tenant.has_own_home) continue;
      TenantId& home = home_of[tenant.storage.index()];
      if (home.valid()) report(name(TenantId(t)) + " streams twice", TenantId(t));
      home = TenantId(t);
    }
    for (std::size_t t = 0; t < s_.tenants.size(); ++t) {
      if (takes_[s_.tenants[t].storage.index()]) {
        report(name(TenantId(t)) + " is of a storage that is gone from the begin on", TenantId(t));
      }
      const TenantId home = home_of[s_.tenants[t].storage.index()];
      if (s_.tenants[t].has_own_home || !home.valid()) continue;
      report(name(TenantId(t)) + " is of a storage that is at home on the host", TenantId(t));
    }
    std::sort(slots.begin(), slots.end(),
              [](const Slot& a, const Slot& b) { return a.begin < b.begin; });
    Slot reaching{0, 0, {}};       // the slot so far that ends last
    Slot reaching_home{0, 0, {}};  // the own one
    for (const Slot& slot : slots) {
      const Slot& other = slot.own.valid() ? reaching : reaching_home;
      if (slot.begin < other.end) {
        const TenantId which = slot.own.valid() ? slot.own : other.own;
        report("the host slot of " + name(which) + " is also another's", which);
      }
      if (slot.end > reaching.end) reaching = slot;
      if (slot.own.valid() && slot.end > reaching_home.end) reaching_home = slot;
    }
  }

  void check_served() {
    for (std::size_t s = 0; s < s_.tenant_of.size(); ++s) {
      const TenantId t = s_.tenant_of[s];
      if (!t.valid()) continue;
      const auto& saved = s_.tenants[t.index()].saved;
      if (std::find(saved.begin(), saved.end(), SavedId(s)) == saved.end()) {
        report(name(t) + " does not list " + trace_.string(trace_.saved.site[s]), t);
      }
    }
    for (std::size_t u = 0; u < s_.stay_of.size(); ++u) {
      const TenantId t = s_.tenant_of[trace_.unpacks.saved[u].index()];
      const StayId s = s_.stay_of[u];
      const EventId event = trace_.unpacks.event[u];
      if (!t.valid() && !s.valid()) continue;
      if (!s.valid()) {
        report("unpack " + std::to_string(u) + " of " + name(t) + " has no stay", t, event);
        continue;
      }
      const Stay& stay = s_.stays[s.index()];
      if (stay.tenant != t) {
        report("unpack " + std::to_string(u) + " gets the bytes of " + name(stay.tenant),
               stay.tenant, event);
      }
      if (std::find(stay.unpacks.begin(), stay.unpacks.end(), UnpackId(u)) == stay.unpacks.end()) {
        report(name(s) + " does not list unpack " + std::to_string(u), stay.tenant, event);
      }
    }
  }

  void check_order() {
    const auto& list = s_.instructions;
    for (std::size_t i = 0; i < list.size(); ++i) {
      const auto row = static_cast<std::int32_t>(i);
      if (i > 0 && index_.place_of(row) < index_.place_of(row - 1)) {
        report(std::string("a ") + name_of(list[i].action) + " is listed behind a later one",
               tenant_of(list[i].stay), list[i].anchor.event);
      }
      if (index_.row_of(list[i].stay, list[i].action) == row) continue;
      report(std::string("second ") + name_of(list[i].action) + " of " + name(list[i].stay),
             tenant_of(list[i].stay), list[i].anchor.event);
    }
  }

  // What is updated at home is so once, with all of its state.
  void check_updates() {
    std::vector<int> updated(s_.tenants.size());
    for (const HostUpdate& update : updates_) {
      const Tenant& gradient = s_.tenants[update.gradient.index()];
      const StorageId parameter = trace_.storages.parameter[gradient.storage.index()];
      const std::int32_t store = index_.row_of(update.stay, Action::store);
      if (!gradient.kind->is_made_anew || store < 0 ||
          index_.row_of(update.stay, Action::update) < store) {
        report(name(update.stay) + " is no gradient that is stored ahead of the update",
               update.gradient);
      }
      if (!update.parameter.valid()) {
        report(name(update.gradient) + " updates a parameter that is not at home", update.gradient);
        continue;
      }
      ++updated[update.parameter.index()];
      for (const TenantId state : update.state) ++updated[state.index()];
      std::size_t pieces = 0;
      for (std::size_t s = 0; s < trace_.storages.size(); ++s) {
        const bool is_state = trace_.storages.storage_class[s] == StorageClass::optimizer_state;
        pieces += is_state && trace_.storages.parameter[s] == parameter ? 1 : 0;
      }
      if (pieces == update.state.size()) continue;
      report(name(update.parameter) + " is updated on the host without all of its state",
             update.parameter);
    }
    for (std::size_t t = 0; t < updated.size(); ++t) {
      if (updated[t] == (s_.tenants[t].is_updated_at_home ? 1 : 0)) continue;
      report(name(TenantId(t)) + " is updated on the host " + std::to_string(updated[t]) + " times",
             TenantId(t));
    }
  }

  void check_left_out(StayId id) {
    const Stay& stay = s_.stays[id.index()];
    if (stay.is_made || stay.is_stored || stay.wraps || !stay.unpacks.empty()) {
      report(name(id) + " is left out, but made, stored, over the step's end or for an unpack",
             stay.tenant);
    }
    for (const Action action : {Action::load, Action::await, Action::store, Action::evict}) {
      if (index_.row_of(id, action) < 0) continue;
      report(name(id) + " is left out, but has a " + name_of(action), stay.tenant);
    }
  }

  // Every instruction that the stay wants and no other, in order, going round from its begin.
  void check_steps(StayId id) {
    static constexpr std::array kOrder = {Action::load, Action::await, Action::store,
                                          Action::evict};
    const Stay& stay = s_.stays[id.index()];
    if (stay.is_left_out) return check_left_out(id);
    if (stay.is_made && stay.wraps) report(name(id) + " is made and wraps", stay.tenant);
    const Tenant& tenant = s_.tenants[stay.tenant.index()];
    if (stay.is_made && tenant.has_own_home && !tenant.kind->is_made_anew) {
      report(name(id) + " is made, but its home has the bytes", stay.tenant);
    }
    bool complete = true;
    for (const Action action : kOrder) {
      const bool wanted = action == Action::evict || (action == Action::store && stay.is_stored) ||
                          (action != Action::store && !stay.is_made);
      const bool is_there = index_.row_of(id, action) >= 0;
      if (wanted && !is_there) {
        report(name(id) + " has no " + name_of(action), stay.tenant);
      } else if (!wanted && is_there) {
        report(name(id) + " has a " + name_of(action) + " that it does not want", stay.tenant);
      }
      complete = complete && wanted == is_there;
    }
    if (!complete) return;
    const auto count = static_cast<std::int32_t>(s_.instructions.size());
    const std::int32_t first = index_.row_of(id, stay.is_made ? Action::evict : Action::load);
    std::int32_t previous = 0;
    for (const Action action : kOrder) {
      const std::int32_t row = index_.row_of(id, action);
      if (row < 0 || stay.is_made) continue;
      const std::int32_t distance = (row - first + count) % count;
      if (distance < previous) {
        report(name(id) + " has its instructions out of order", stay.tenant,
               s_.instructions[static_cast<std::size_t>(row)].anchor.event);
      }
      previous = distance;
    }
    const std::int32_t evict = index_.row_of(id, Action::evict);
    if (stay.is_made && stay.is_stored && evict < index_.row_of(id, Action::store)) {
      report(name(id) + " is evicted ahead of its store", stay.tenant,
             s_.instructions[static_cast<std::size_t>(evict)].anchor.event);
    }
    if (!stay.is_made && stay.wraps != (evict < first)) {
      report(name(id) + (stay.wraps ? " does not go" : " goes") + " over the step's end",
             stay.tenant);
    }
  }

  // Of stays that serve no unpack: behind a load comes the evict of the same one, going round.
  void check_overlaps(TenantId tenant) {
    std::vector<std::int32_t> rows;
    for (const StayId id : index_.stays_of(tenant)) {
      const Stay& stay = s_.stays[id.index()];
      if (stay.is_made || !stay.unpacks.empty()) continue;
      for (const Action action : {Action::load, Action::evict}) {
        if (index_.row_of(id, action) >= 0) rows.push_back(index_.row_of(id, action));
      }
    }
    std::sort(rows.begin(), rows.end());
    for (std::size_t i = 0; i < rows.size(); ++i) {
      const Instruction& here = s_.instructions[static_cast<std::size_t>(rows[i])];
      const Instruction& next =
          s_.instructions[static_cast<std::size_t>(rows[(i + 1) % rows.size()])];
      if (here.action != Action::load) continue;
      if (next.action == Action::evict && next.stay == here.stay) continue;
      report(name(here.stay) + " overlaps " + name(next.stay), tenant, next.anchor.event);
    }
  }

  const ScheduleIndex index_;
  const Trace& trace_;
  const Schedule& s_;
  std::vector<Hazard>& hazards_;
  const std::vector<HostUpdate> updates_;
  std::vector<bool> takes_;  // by storage: some tenant takes its place
};

}  // namespace

CheckedStructure check_structure(const StepIndex& index, const Schedule& schedule) {
  CheckedStructure out;
  ReadableCheck(index, schedule, out).run();
  if (out.readable) StructureCheck(index, schedule, out.hazards).run();
  return out;
}

}  // namespace stowage::simulator
