#include "simulator/hazards/skipped_update_check.h"

#include <algorithm>
#include <cstddef>
#include <string>
#include <utility>

#include "simulator/schedule/tenant_kind.h"
#include "simulator/step/kept_rows.h"

namespace stowage::simulator {
namespace {

bool are_equal(const Anchor& a, const Anchor& b) {
  return a.kind == b.kind && a.ordinal == b.ordinal && a.side == b.side && a.event == b.event;
}

class SkippedCheck {
 public:
  SkippedCheck(const StepIndex& taken, const Schedule& schedule, const StepIndex& skipped,
               const Schedule& without, const KeptRows& rows)
      : taken_(taken, schedule),
        skipped_(skipped, without),
        s_(schedule),
        w_(without),
        rows_(rows) {}

  std::vector<Hazard> run() && {
    if (!check_tables()) return std::move(hazards_);
    for (std::size_t i = 0; i < s_.stays.size(); ++i) check_stay(StayId(i));
    check_ahead();
    check_ends();
    for (std::size_t i = 0; i < s_.stays.size(); ++i) check_store(StayId(i));
    return std::move(hazards_);
  }

 private:
  void report(const std::string& text, StayId stay = {}, EventId event = {}) {
    const TenantId tenant = stay.valid() ? s_.stays[stay.index()].tenant : TenantId();
    hazards_.push_back({HazardKind::malformed, tenant, {}, event, text});
  }
  [[nodiscard]] std::string name(StayId stay) const {
    return "stay " + std::to_string(stay.value) + " of " +
           label(taken_.trace(), s_, s_.stays[stay.index()].tenant);
  }

  bool check_tables() {
    bool same = s_.tenants.size() == w_.tenants.size() && s_.stays.size() == w_.stays.size() &&
                s_.host_bytes == w_.host_bytes && s_.has_hooks == w_.has_hooks &&
                s_.tenant_of == w_.tenant_of && s_.stay_of == w_.stay_of;
    for (std::size_t t = 0; same && t < s_.tenants.size(); ++t) {
      const Tenant& a = s_.tenants[t];
      const Tenant& b = w_.tenants[t];
      same = a.kind == b.kind && rows_.storage(a.storage) == b.storage && a.begin == b.begin &&
             a.bytes == b.bytes && a.host_offset == b.host_offset &&
             a.has_own_home == b.has_own_home && a.saved == b.saved &&
             a.previous.valid() == b.previous.valid() &&
             (!a.previous.valid() || rows_.storage(a.previous) == b.previous);
    }
    if (!same) report("the period that skips the update has other tenants, or other homes");
    return same;
  }

  void check_stay(StayId id) {
    const Stay& a = s_.stays[id.index()];
    const Stay& b = w_.stays[id.index()];
    const bool same = a.tenant == b.tenant && a.is_made == b.is_made &&
                      a.load_mode == b.load_mode && a.store_mode == b.store_mode &&
                      a.unpacks == b.unpacks && !a.is_left_out && (a.is_stored || !b.is_stored);
    if (!same) report(name(id) + " is another one in the period that skips the update", id);
  }

  void check_ahead() {
    const auto is_behind = [&](const std::vector<Instruction>& list, std::size_t row) {
      return row >= list.size() || list[row].anchor.event >= rows_.section().first;
    };
    for (std::size_t i = 0;; ++i) {
      const bool ends = is_behind(s_.instructions, i);
      if (ends && is_behind(w_.instructions, i)) return;
      const bool both = ends == is_behind(w_.instructions, i);
      if (both && s_.instructions[i].action == w_.instructions[i].action &&
          s_.instructions[i].stay == w_.instructions[i].stay &&
          are_equal(s_.instructions[i].anchor, w_.instructions[i].anchor)) {
        continue;
      }
      const Instruction& first = ends ? w_.instructions[i] : s_.instructions[i];
      return report(std::string("ahead of the update the periods differ: a ") +
                        name_of(first.action) + " of " + name(first.stay),
                    first.stay, first.anchor.event);
    }
  }

  void check_ends() {
    const auto a = stays_at_end(taken_.step(), s_);
    const auto b = stays_at_end(skipped_.step(), w_);
    const auto [here, there] = std::mismatch(a.begin(), a.end(), b.begin(), b.end());
    if (here == a.end() && there == b.end()) return;
    const StayId id = here != a.end() ? here->stay : there->stay;
    report("the two periods end in different states: " + name(id), id);
  }

  // Going round from its load it may take what an update at the end of the step before wrote.
  void check_store(StayId id) {
    if (!s_.stays[id.index()].is_stored || w_.stays[id.index()].is_stored) return;
    const std::int32_t load = taken_.row_of(id, Action::load);
    const std::int32_t store = taken_.row_of(id, Action::store);
    if (load < store) return;
    std::vector<TenantUse> uses;
    const TenantId tenant = s_.stays[id.index()].tenant;
    s_.tenants[tenant.index()].kind->list_uses(taken_, tenant, uses);
    for (const TenantUse& use : uses) {
      if (!use.writes || use.end < taken_.place_of(load).event) continue;
      return report(name(id) +
                        " is not stored where the update is skipped, so the update of the "
                        "step before is lost",
                    id, use.end);
    }
  }

  const ScheduleIndex taken_;
  const ScheduleIndex skipped_;
  const Schedule& s_;
  const Schedule& w_;
  const KeptRows& rows_;
  std::vector<Hazard> hazards_;
};

}  // namespace

std::vector<StayAtEnd> stays_at_end(const StepIndex& index, const Schedule& schedule) {
  struct State {
    bool here = false;
    bool awaited = false;
  };
  const ScheduleIndex rows(index, schedule);
  std::vector<State> states(schedule.stays.size());
  for (std::size_t i = 0; i < states.size(); ++i) {
    const StayId id(i);
    states[i].here = schedule.stays[i].wraps;
    states[i].awaited = rows.row_of(id, Action::await) > rows.row_of(id, Action::evict);
  }
  for (const Instruction& each : schedule.instructions) {
    State& state = states[each.stay.index()];
    if (each.action == Action::load) state = {true, false};
    if (each.action == Action::await) state.awaited = state.here;
    if (each.action == Action::evict) state = {};
  }
  std::vector<StayAtEnd> out;
  for (std::size_t i = 0; i < states.size(); ++i) {
    if (states[i].here) out.push_back({StayId(i), states[i].awaited});
  }
  return out;
}

std::vector<Hazard> check_skipped_update(const StepIndex& taken, const Schedule& schedule,
                                         const StepIndex& skipped, const Schedule& without) {
  std::vector<Hazard> hazards = find_hazards(skipped, without);
  if (!hazards.empty()) return hazards;
  Result<KeptRows> rows = KeptRows::find(taken.trace(), skipped.trace());
  if (!rows) {
    hazards.push_back({HazardKind::malformed, {}, {}, {}, rows.error().message});
    return hazards;
  }
  return SkippedCheck(taken, schedule, skipped, without, *rows).run();
}

}  // namespace stowage::simulator
