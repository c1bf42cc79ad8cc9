#include "simulator/lowering/touching_stays.h"

#include <algorithm>
#include <utility>

namespace stowage::simulator {
namespace {

// The stays of one tenant that serve no unpacks, [first, last) of a vector.
class Run {
 public:
  Run(std::vector<PlacedStay>& stays, std::size_t first, PeriodPosition period)
      : stays_(stays), first_(first), last_(first + 1), period_(period) {
    if (stays[first].serves_unpacks()) return;
    while (last_ < stays.size() && follows(stays, last_)) ++last_;
  }

  [[nodiscard]] std::size_t first() const { return first_; }
  [[nodiscard]] std::size_t last() const { return last_; }

  // What is left stands at the front; nothing when the tenant never leaves.
  void merge() {
    for (std::size_t i = first_; i < last_ && last_ - first_ > 1;) {
      if (!touches_next(i)) {
        ++i;
        continue;
      }
      const NextStay next = next_of(i);
      append(stays_[i], stays_[next.row], next.later);
      const auto begin = stays_.begin();
      std::move(begin + static_cast<std::ptrdiff_t>(next.row + 1),
                begin + static_cast<std::ptrdiff_t>(last_),
                begin + static_cast<std::ptrdiff_t>(next.row));
      --last_;
      i = first_;  // a stay that got longer may touch others
    }
    if (last_ - first_ == 1 && touches_next(first_)) last_ = first_;
  }

 private:
  [[nodiscard]] NextStay next_of(std::size_t row) const {
    return row + 1 < last_ ? NextStay{row + 1, 0} : NextStay{first_, period_};
  }

  // Whether the stay in `row` goes on in the next one, as wanted.
  [[nodiscard]] bool touches_next(std::size_t row) const {
    if (stays_[row].update != kNoPosition) return false;
    const NextStay next = next_of(row);
    return stays_[next.row].has_fixed_load() &&
           stays_[next.row].wanted_load + next.later <= stays_[row].earliest_evict;
  }

  // `next` follows `stay` without a gap, `later` in time: it goes on in it.
  static void append(PlacedStay& stay, const PlacedStay& next, PeriodPosition later) {
    stay.earliest_evict = std::max(stay.earliest_evict, next.earliest_evict + later);
    stay.latest_evict = std::max(stay.latest_evict, next.latest_evict + later);
    stay.evict = std::max(stay.evict, next.evict + later);
    if (next.has_store()) stay.store = next.store + later;
    if (next.update != kNoPosition) stay.update = next.update + later;
  }

  std::vector<PlacedStay>& stays_;
  std::size_t first_;
  std::size_t last_;
  PeriodPosition period_;
};

void remove_tenants_without_stays(Movement& movement) {
  std::vector<TenantId> renamed(movement.tenants.size());
  for (const PlacedStay& stay : movement.stays) {
    renamed[stay.tenant.index()] = stay.tenant;
  }
  std::vector<Tenant> left;
  for (std::size_t t = 0; t < movement.tenants.size(); ++t) {
    if (!renamed[t].valid() && !movement.tenants[t].is_updated_at_home) {
      movement.notes.push_back(
          {{}, "stays: it would come back where it leaves", movement.tenants[t].storage});
      continue;
    }
    renamed[t] = TenantId(left.size());
    left.push_back(std::move(movement.tenants[t]));
  }
  movement.tenants = std::move(left);
  for (PlacedStay& stay : movement.stays) stay.tenant = renamed[stay.tenant.index()];
}

}  // namespace

bool merge_touching(const StepIndex& index, Movement& movement) {
  const PeriodPosition period = period_of(index.event_count());
  std::vector<PlacedStay>& stays = movement.stays;
  std::size_t kept = 0;
  bool is_gone = false;
  for (std::size_t begin = 0; begin < stays.size();) {
    Run run(stays, begin, period);
    begin = run.last();
    run.merge();
    is_gone = is_gone || run.first() == run.last();
    for (std::size_t i = run.first(); i < run.last(); ++i, ++kept) {
      if (kept != i) stays[kept] = std::move(stays[i]);
    }
  }
  if (kept == stays.size()) return false;
  stays.resize(kept);
  if (is_gone) remove_tenants_without_stays(movement);
  return true;
}

bool merge_where_placed(const StepIndex& index, Movement& movement) {
  const PeriodPosition period = period_of(index.event_count());
  std::vector<PlacedStay>& stays = movement.stays;
  bool touching = false;
  for (std::size_t i = 0; i < stays.size(); ++i) {
    if (stays[i].serves_unpacks() || stays[i].update != kNoPosition) continue;
    const auto [next, later] = next_stay(stays, i, period);
    if (stays[next].is_made || stays[next].load + later > stays[i].evict) continue;
    stays[next].wanted_load = stays[i].earliest_evict - later;
    touching = true;
  }
  return touching && merge_touching(index, movement);
}

void merge_placed(const StepIndex& index, Movement& movement) {
  for (PlacedStay& stay : movement.stays) {
    stay.wanted_load = stay.load;
    stay.earliest_evict = stay.latest_evict = stay.evict;
  }
  merge_touching(index, movement);
}

}  // namespace stowage::simulator
